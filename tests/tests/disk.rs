//! A disk that fills up or breaks under a recording: the command doesn't notice, the user is told, and what was
//! written can be read.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use rtrace_tests::{
    disk::Disk,
    harness::{self, Recorder, eventually},
    victims::victim,
};

/// Children that are to be written before the harm is done.
const CHILDREN: usize = 50;
/// What the command ends with.
const STATUS: i32 = 3;

/// Records a command that goes on and on, does harm, and returns what rtrace said.
fn harmed(trace: &Path, harm: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let (log, said) = (folder.path().join("log"), folder.path().join("said"));
    let command = [
        victim("actor").into_os_string(),
        "pulse".into(),
        STATUS.to_string().into(),
    ];
    let mut call = Recorder::new().call(trace, &command)?;
    call.stdin(Stdio::piped());
    call.stdout(File::create(&log)?)
        .stderr(File::create(&said)?);
    let mut rtrace = call.spawn()?;
    eventually("the first children are written", || {
        Ok(harness::report(trace).is_ok_and(|report| seen(&report) >= CHILDREN))
    })?;
    harm()?;
    eventually("the user is told while the command runs", || {
        Ok(fs::read_to_string(&said)?.ends_with('\n'))
    })?;
    let pulses = || anyhow::Ok(fs::read_to_string(&log)?.lines().count());
    let before = pulses()?;
    eventually("the command goes on", || Ok(pulses()? > before + 5))?;
    drop(rtrace.stdin.take());
    let status = rtrace.wait()?;
    assert!(fs::read_to_string(&log)?.ends_with("\ndone\n"));
    assert_eq!(status.code(), Some(STATUS), "the status is the command's");
    Ok(fs::read_to_string(&said)?)
}

/// Children of which the end is known.
fn seen(report: &rtrace_tests::report::Report) -> usize {
    report.codes().get(&Some(7)).copied().unwrap_or(0)
}

/// What was said names the file and the cause, when it happened and at the end, in a line each.
fn says(stderr: &str, cause: &str) {
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    let [first, last] = [lines[0], lines[1]];
    assert!(
        first.starts_with("rtrace: recording goes on without a trace file: "),
        "{first}"
    );
    assert!(
        last.starts_with("rtrace: the trace is not complete: "),
        "{last}"
    );
    for line in lines {
        assert!(line.contains("t.parquet") && line.contains(cause), "{line}");
    }
}

/// What was written before is there, and nothing claims to be complete.
fn holds_what_was_written(trace: &Path) -> anyhow::Result<()> {
    let report = harness::report(trace)?;
    assert!(seen(&report) >= CHILDREN);
    assert!(!report.trust.complete);
    let is_told = |note: &String| note.contains("cut short");
    assert!(report.trust.notes.iter().any(is_told), "{:?}", report.trust);
    Ok(())
}

fn trace_on(disk: &Disk) -> PathBuf {
    disk.path().join("t.parquet")
}

#[test]
fn a_disk_that_is_full() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let disk = Disk::in_memory(4096)?;
    let trace = trace_on(&disk);
    let said = harmed(&trace, || {
        disk.fill();
        Ok(())
    })?;
    says(&said, "No space left on device");
    holds_what_was_written(&trace)
}

#[test]
fn a_disk_that_breaks() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let disk = Disk::in_a_file()?;
    let trace = trace_on(&disk);
    let said = harmed(&trace, || disk.shut_down())?;
    says(&said, "Input/output error");
    disk.mount_again()?;
    holds_what_was_written(&trace)
}

#[test]
fn a_disk_that_turns_read_only() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let disk = Disk::in_a_file()?;
    let trace = trace_on(&disk);
    let said = harmed(&trace, || disk.abort())?;
    says(&said, "Read-only file system");
    holds_what_was_written(&trace)
}

#[test]
fn a_folder_that_vanishes() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let inner = folder.path().join("inner");
    fs::create_dir(&inner)?;
    let trace = inner.join("t.parquet");
    let said = harmed(&trace, || Ok(fs::remove_dir_all(&inner)?))?;
    says(&said, "was removed or replaced");
    assert!(!inner.exists(), "nothing is made in its place");
    Ok(())
}
