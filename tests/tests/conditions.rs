//! What bounds and shapes the command from outside is written down.

use std::{collections::BTreeMap, fs};

use anyhow::Context;
use rtrace_tests::{
    harness::{self, Recorder},
    report::{Limit, Report},
};

fn read(path: &str) -> anyhow::Result<String> {
    Ok(fs::read_to_string(path)
        .context(path.to_owned())?
        .trim()
        .to_owned())
}

/// Records something under a program that changes its own conditions first.
fn recorded_under(wrapper: &[&str]) -> anyhow::Result<Report> {
    let recorder = Recorder::new().under(wrapper);
    recorder.record(&["/bin/true"])?.complete_report()
}

#[test]
fn limits_of_the_process_and_of_its_groups_are_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = recorded_under(&[
        "/bin/sh",
        "-c",
        "ulimit -S -n 777; ulimit -c 0; exec \"$@\"",
        "sh",
    ])?;
    let conditions = report.recording.conditions.context("no conditions")?;
    let limit = |name: &str| conditions.ulimits.get(name).copied();
    assert_eq!(limit("max_open_files").and_then(|l| l.soft), Some(777));
    let none = Limit {
        soft: Some(0),
        hard: Some(0),
    };
    assert_eq!(limit("max_core_file_size"), Some(none));
    // Each of them as the file itself says.
    for held in &conditions.cgroup_limits {
        let path = format!("{}/{}", held.group, held.file);
        assert_eq!(read(&path)?, held.value, "{path}");
    }
    Ok(())
}

#[test]
fn memory_modes_and_cpus_are_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = recorded_under(&[
        "/usr/bin/python3",
        "-c",
        "import os, sys; os.sched_setaffinity(0, {0}); os.execv(sys.argv[1], sys.argv[1:])",
    ])?;
    let conditions = report.recording.conditions.context("no conditions")?;
    assert_eq!(conditions.allowed_cpus.as_deref(), Some("0"));
    assert_eq!(conditions.uid, Some(0));
    let mode = read("/proc/sys/vm/overcommit_memory")?.parse().ok();
    assert_eq!(conditions.overcommit_memory, mode);
    let pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
    let is_chosen = |word: &String| {
        pages
            .as_ref()
            .is_some_and(|all| all.contains(&format!("[{word}]")))
    };
    assert_eq!(
        conditions.transparent_hugepages.as_ref().map(is_chosen),
        pages.as_ref().map(|_| true)
    );
    Ok(())
}

#[test]
fn a_job_of_grid_engine_is_named() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let environment = [("SGE_TASK_ID", "3"), ("JOB_ID", "77"), ("NOT_A_JOB", "x")];
    let recorder = environment
        .iter()
        .fold(Recorder::new(), |recorder, (name, value)| {
            recorder.env(name, value)
        });
    let report = recorder.record(&["/bin/true"])?.complete_report()?;
    let expected = [("JOB_ID", "77"), ("SGE_TASK_ID", "3")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(report.recording.env, BTreeMap::from(expected));
    Ok(())
}
