//! What rtrace leaves in the kernel (nothing), and two recorders at once.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Stdio},
};

use anyhow::{Context, ensure};
use rtrace_tests::{
    bpf::{loaded_programs, programs_of},
    harness::{self, Recorder, eventually},
    victims::victim,
};

fn command(children: &str) -> [OsString; 3] {
    [
        victim("actor").into(),
        "wait_for_input".into(),
        children.into(),
    ]
}

/// Starts a recording of a command that waits, and waits until it does.
fn started(trace: &Path, children: &str) -> anyhow::Result<Child> {
    let mut call = Recorder::new().call(trace, &command(children))?;
    let mut rtrace = call.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdout = rtrace.stdout.as_mut().context("stdout")?;
    let ready = BufReader::new(stdout)
        .lines()
        .any(|line| line.is_ok_and(|line| line == "ready"));
    ensure!(ready, "never ready");
    Ok(rtrace)
}

#[test]
fn no_program_stays_loaded() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let mut rtrace = started(&folder.path().join("t.parquet"), "1")?;
    let programs = programs_of(rtrace.id())?;
    assert!(!programs.is_empty(), "a recorder holds its programs");
    assert!(programs.is_subset(&loaded_programs()?), "{programs:?}");
    drop(rtrace.stdin.take());
    assert!(rtrace.wait()?.success());
    // The kernel frees them a little later.
    eventually("the programs are gone", || {
        Ok(programs.is_disjoint(&loaded_programs()?))
    })
}

#[test]
fn two_recorders_see_their_own_tree_only() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let traces = [
        folder.path().join("a.parquet"),
        folder.path().join("b.parquet"),
    ];
    let mut first = started(&traces[0], "30")?;
    let mut second = started(&traces[1], "40")?;
    for rtrace in [&mut first, &mut second] {
        rtrace.stdin.take().context("stdin")?.write_all(b"go on")?;
    }
    assert!(first.wait()?.success() && second.wait()?.success());
    for (trace, processes) in traces.iter().zip([31, 41]) {
        let report = harness::report(trace)?;
        assert_eq!(report.processes.len(), processes);
        assert!(report.trust.complete, "{:?}", report.trust);
        assert!(
            report
                .others()
                .iter()
                .all(|child| child.creator == Some(report.root) && child.code() == Some(7))
        );
    }
    Ok(())
}

#[test]
fn a_recorded_recorder_is_only_a_part_of_the_tree() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let inner = folder.path().join("inner.parquet");
    let rtrace = harness::binary()?.into_os_string();
    let mut line = vec![
        rtrace,
        "record".into(),
        "--quiet".into(),
        "-o".into(),
        inner.clone().into(),
        "--".into(),
    ];
    line.extend([OsString::from(victim("actor")), "forks".into(), "20".into()]);
    let outer = harness::record(&line)?.complete_report()?;
    let inner = harness::report(&inner)?;
    assert_eq!(inner.processes.len(), 21);
    let both: BTreeSet<_> = outer
        .processes
        .iter()
        .map(rtrace_tests::report::Process::id)
        .collect();
    assert!(
        inner
            .processes
            .iter()
            .all(|process| both.contains(&process.id())),
        "the outer tree holds the inner one"
    );
    Ok(())
}
