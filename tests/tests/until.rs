//! When a recording ends: with the command, with its last descendant, when time is up, or when somebody wants it to.

use std::{
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rtrace_tests::{
    harness::{self, Recorder, eventually, files_in, tail_of},
    report::{Process, Report},
};

/// A descendant that lives until it is killed, of which nobody waits for what it would print.
const LIVES_ON: &str = "sleep 1000 </dev/null >/dev/null 2>&1 & exit 3";

/// Ends what a test has left behind.
fn end(process: &Process) -> anyhow::Result<()> {
    kill(Pid::from_raw(process.pid.try_into()?), Signal::SIGKILL)?;
    Ok(())
}

/// The process that lives on; it is ended here.
fn survivor(report: &Report) -> anyhow::Result<&Process> {
    let child = report.only_child()?;
    end(child)?;
    assert_eq!((child.end_ns, &child.exit), (None, &None), "{child:?}");
    Ok(child)
}

#[test]
fn who_outlives_the_command_is_listed() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    // Not quiet: the last lines name it.
    let output = Command::new(harness::binary()?)
        .args(["record", "-o"])
        .arg(&trace)
        .args(["--", "/bin/sh", "-c", LIVES_ON])
        .output()?;
    let report = harness::report(&trace)?;
    let child = survivor(&report)?;
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(child.survived_root, Some(true));
    assert!(report.trust.complete, "{:?}", report.trust);
    let said = String::from_utf8(output.stderr)?;
    let line = format!("alive:     sleep (pid {})", child.pid);
    assert!(said.contains(&line), "no {line:?} in\n{said}");
    Ok(())
}

#[test]
fn the_last_descendant_is_waited_for() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Longer than helpers are waited for; the second one is made when the command has long ended.
    let script = "(sleep 1; sleep 0.5; exit 9) </dev/null >/dev/null 2>&1 & exit 3";
    let recorded = Recorder::new()
        .option("--wait-all")
        .record(&["/bin/sh", "-c", script])?;
    assert_eq!(recorded.status.code(), Some(3));
    let report = recorded.complete_report()?;
    assert!(report.trust.complete, "{:?}", report.trust);
    assert_eq!(report.processes.len(), 4);
    assert!(report.processes.iter().all(|p| p.end_ns.is_some()));
    let root_end = report.root()?.end_ns.context("no end")?;
    let after = report
        .others()
        .iter()
        .filter(|p| p.start_ns > root_end)
        .count();
    assert!(after >= 1, "{:?}", report.processes);
    let shells = report.others().into_iter().filter(|p| p.code() == Some(9));
    assert_eq!(
        shells.map(|p| p.survived_root).collect::<Vec<_>>(),
        [Some(true)]
    );
    Ok(())
}

#[test]
fn waiting_ends_with_its_timeout() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .option("--wait-all=400ms")
        .record(&["/bin/sh", "-c", LIVES_ON])?;
    let report = recorded.complete_report()?;
    let child = survivor(&report)?;
    assert_eq!(recorded.status.code(), Some(3));
    assert_eq!(child.survived_root, Some(true));
    Ok(())
}

/// Starts a recording whose command gets what is written to the child's standard input.
fn started(trace: &Path, option: &str, script: &str) -> anyhow::Result<Child> {
    let call = Recorder::new()
        .option(option)
        .call(trace, &["/bin/sh", "-c", script]);
    Ok(call?
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?)
}

#[test]
fn waiting_ends_when_rtrace_is_interrupted() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let mut rtrace = started(&trace, "--wait-all", LIVES_ON)?;
    let pid = Pid::from_raw(rtrace.id().try_into()?);
    eventually("the beginning", || Ok(tail_of(&trace).exists()))?;
    // As long as the command runs, the signal is its own and rtrace lives through it.
    eventually("the end of rtrace", || {
        kill(pid, Signal::SIGINT)?;
        Ok(rtrace.try_wait()?.is_some())
    })?;
    assert_eq!(rtrace.wait()?.code(), Some(3));
    let report = harness::report(&trace)?;
    survivor(&report)?;
    assert!(report.trust.complete, "{:?}", report.trust);
    Ok(())
}

#[test]
fn when_time_is_up_the_trace_is_finished_and_the_command_goes_on() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let mut rtrace = started(&trace, "--duration=500ms", "read answer; exit $answer")?;
    // The command can't end before it is told how.
    eventually("the finished trace", || {
        let files = files_in(folder.path())?;
        let is_whole = harness::report(&trace).is_ok_and(|report| report.trust.complete);
        Ok(files == ["t.parquet"] && is_whole)
    })?;
    let report = harness::report(&trace)?;
    let root = report.root()?;
    assert_eq!((root.end_ns, &root.exit), (None, &None), "{root:?}");
    assert_eq!(rtrace.try_wait()?, None, "rtrace ended before the command");
    rtrace.stdin.take().context("stdin")?.write_all(b"4\n")?;
    assert_eq!(rtrace.wait()?.code(), Some(4));
    Ok(())
}

#[test]
fn a_command_that_ends_in_time_is_recorded_to_its_end() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .option("--duration=1h")
        .record(&["/bin/sh", "-c", "exit 5"])?;
    assert_eq!(recorded.status.code(), Some(5));
    assert_eq!(recorded.complete_report()?.root()?.code(), Some(5));
    Ok(())
}
