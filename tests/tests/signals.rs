//! Ctrl-C reaches the command as usual, SIGTERM is passed on; the file is finished either way.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Stdio},
};

use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use rtrace_tests::harness::{self, Recorder, files_in};

/// Starts a recording in its own process group, as a shell with job control does, and waits for "ready".
fn started(trace: &Path, script: &str) -> anyhow::Result<(Child, Pid)> {
    let mut call = Recorder::new().call(trace, &["/bin/sh", "-c", script])?;
    let mut rtrace = call
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(rtrace.stdout.take().context("stdout")?).read_line(&mut line)?;
    assert_eq!(line, "ready\n");
    let pid = Pid::from_raw(rtrace.id().try_into()?);
    Ok((rtrace, pid))
}

/// Waits for the end; the trace must be finished, and rtrace's status and the root's exit as given.
fn ends(
    mut rtrace: Child,
    trace: &Path,
    status: i32,
    code: Option<u32>,
    signal: Option<u32>,
) -> anyhow::Result<()> {
    assert_eq!(rtrace.wait()?.code(), Some(status));
    assert_eq!(files_in(trace.parent().context("folder")?)?, ["t.parquet"]);
    let report = harness::report(trace)?;
    assert!(report.trust.complete, "{:?}", report.trust);
    let root = report.root()?;
    assert_eq!((root.code(), root.signal()), (code, signal));
    Ok(())
}

#[test]
fn ctrl_c_ends_the_command_and_the_file_is_finished() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let (rtrace, group) = started(&trace, "echo ready; sleep 8; true")?;
    killpg(group, Signal::SIGINT)?;
    ends(rtrace, &trace, 128 + 2, None, Some(2))
}

#[test]
fn a_command_may_survive_ctrl_c() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let (rtrace, group) = started(
        &trace,
        "sleep 8 & trap 'kill $! 2>/dev/null; exit 9' INT; echo ready; wait $!",
    )?;
    killpg(group, Signal::SIGINT)?;
    ends(rtrace, &trace, 9, Some(9), None)
}

#[test]
fn sigterm_is_passed_on_to_the_command() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let (rtrace, pid) = started(
        &trace,
        "sleep 8 & trap 'kill $! 2>/dev/null; exit 7' TERM; echo ready; wait $!",
    )?;
    kill(pid, Signal::SIGTERM)?;
    ends(rtrace, &trace, 7, Some(7), None)
}

#[test]
fn sigterm_ends_a_command_that_does_not_catch_it() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let (rtrace, pid) = started(&trace, "echo ready; exec sleep 8")?;
    kill(pid, Signal::SIGTERM)?;
    ends(rtrace, &trace, 128 + 15, None, Some(15))
}
