//! What signals, failed calls, waits, sessions and control groups tell, of programs that know the truth.

use std::ffi::OsString;

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorder},
    report::{Process, Report, Sender},
    victims::victim,
};

const MS: u64 = 1_000_000;

/// A recording of `watched`: the report, the child, and what else was printed.
struct Watched {
    report: Report,
    child: Process,
    said: Vec<String>,
}

fn watched_with(recorder: &Recorder, act: &str, number: u32) -> anyhow::Result<Watched> {
    let _alone = harness::alone()?;
    let command: [OsString; 3] = [
        victim("watched").into(),
        act.into(),
        number.to_string().into(),
    ];
    let done = recorder.record(&command)?;
    let report = done.complete_report()?;
    ensure!(report.root()?.code() == Some(0), "{}", done.stderr);
    let mut said: Vec<String> = done.stdout.lines().map(str::to_owned).collect();
    ensure!(!said.is_empty(), "{act} said nothing");
    let child = report.by_pid(said.remove(0).parse()?)?.clone();
    Ok(Watched {
        report,
        child,
        said,
    })
}

fn watched(act: &str, number: u32) -> anyhow::Result<Watched> {
    watched_with(&Recorder::new(), act, number)
}

fn sender(process: &Process) -> anyhow::Result<Sender> {
    let exit = process.exit.as_ref().context("it has no end")?;
    exit.sender.clone().context("nobody sent the signal")
}

#[test]
fn who_sent_a_fatal_signal() -> anyhow::Result<()> {
    for (act, number, signal) in [("killed", 15, 15), ("killed", 9, 9), ("raises", 6, 6)] {
        let Watched { report, child, .. } = watched(act, number)?;
        ensure!(child.signal() == Some(signal), "{child:#?}");
        let by = sender(&child)?;
        let expected = if act == "killed" {
            report.root.pid
        } else {
            child.pid
        };
        ensure!((by.kind.as_str(), by.pid) == ("user", expected), "{by:?}");
    }
    Ok(())
}

#[test]
fn the_kernel_s_signals_are_the_kernel_s() -> anyhow::Result<()> {
    for (act, number, signal) in [("faults", 0, 11), ("rings", 5, 14)] {
        let Watched { child, .. } = watched(act, number)?;
        ensure!(child.signal() == Some(signal), "{child:#?}");
        let by = sender(&child)?;
        ensure!((by.kind.as_str(), by.pid) == ("kernel", 0), "{by:?}");
    }
    Ok(())
}

#[test]
fn signals_of_a_timer_that_are_handled_fill_no_trace() -> anyhow::Result<()> {
    // The timer rings so many times, and each would be a row.
    let Watched { report, child, .. } = watched("rings", 1000)?;
    ensure!(child.signal() == Some(14), "{child:#?}");
    ensure!(report.trust.events < 500, "{:?}", report.trust);
    Ok(())
}

#[test]
fn a_child_whose_threads_all_waited_was_blocked() -> anyhow::Result<()> {
    for threads in [0, 3] {
        let Watched { child, .. } = watched("blocks", threads)?;
        let blocked = child.blocked_at_end.context("not blocked")?;
        // Its parent slept for 700 ms; what it did before it waited is part of that.
        ensure!(blocked.kind == "futex", "{blocked:?}");
        ensure!((400 * MS..=5000 * MS).contains(&blocked.ns), "{blocked:?}");
    }
    Ok(())
}

#[test]
fn one_that_runs_until_it_is_killed_was_not() -> anyhow::Result<()> {
    for threads in [0, 2] {
        let Watched { child, .. } = watched("spins", threads)?;
        ensure!(child.blocked_at_end.is_none(), "{child:#?}");
    }
    Ok(())
}

#[test]
fn how_long_a_signal_had_stopped_it() -> anyhow::Result<()> {
    let Watched { child, said, .. } = watched("stops", 300)?;
    let truth: u64 = said.first().context("no time")?.parse()?;
    let stopped = child.stopped_ns.context("not known")?;
    // The parent's measure begins after the stop and ends before the child goes on.
    ensure!(
        stopped >= truth && stopped < truth + 1000 * MS,
        "{stopped} {truth}"
    );
    let wait = child.waits.iter().find(|wait| wait.state == "stopped");
    let wait = wait.context("its stop is no wait")?;
    ensure!(wait.until_ns - wait.since_ns == stopped, "{wait:?}");
    Ok(())
}

#[test]
fn a_long_wait_names_its_call() -> anyhow::Result<()> {
    let Watched { report, .. } = watched("killed", 15)?;
    let root = report.root()?;
    let wait = root.waits.first().context("no wait")?;
    let call = wait.syscall.as_deref();
    ensure!(
        wait.tid == root.pid && call == Some("clock_nanosleep"),
        "{wait:?}"
    );
    ensure!(wait.until_ns - wait.since_ns >= 490 * MS, "{wait:?}");
    Ok(())
}

#[test]
fn first_runs_lie_between_creation_and_end() -> anyhow::Result<()> {
    let Watched { child, .. } = watched("raises", 6)?;
    let first = child.first_run_ns.context("not known")?;
    ensure!(
        Some(first) <= child.end_ns && first >= child.start_ns,
        "{child:#?}"
    );
    Ok(())
}

#[test]
fn calls_of_exec_that_fail() -> anyhow::Result<()> {
    let Watched { child, .. } = watched("fails", 3)?;
    let failures = child.exec_failures.context("not known")?;
    let told: Vec<(&str, &[u8])> = failures
        .iter()
        .map(|failure| (failure.errno.as_str(), &failure.filename.0[..]))
        .collect();
    let expected: [(&str, &[u8]); 5] = [
        ("ENOENT", b"/no/such/0"),
        ("ENOENT", b"/no/such/1"),
        ("ENOENT", b"/no/such/2"),
        ("EACCES", b"/tmp"),
        ("ENOENT", b"/no/such/at"),
    ];
    ensure!(told == expected, "{failures:?}");
    ensure!(child.images.len() == 1, "none of them has succeeded");
    Ok(())
}

#[test]
fn calls_of_clone_that_fail() -> anyhow::Result<()> {
    let Watched { child, .. } = watched("refused", 3)?;
    let failures = child.fork_failures.context("not known")?;
    ensure!(
        failures.len() == 1 && failures.get("EINVAL") == Some(&3),
        "{failures:?}"
    );
    Ok(())
}

#[test]
fn without_failed_calls_they_are_not_known_and_the_rest_is() -> anyhow::Result<()> {
    let recorder = Recorder::new().option("--no-failed-calls");
    let Watched { report, child, .. } = watched_with(&recorder, "fails", 1)?;
    ensure!(child.exec_failures.is_none() && child.fork_failures.is_none());
    ensure!(child.code() == Some(3) && report.trust.complete);
    let is_said = |note: &String| note.contains("--no-failed-calls");
    ensure!(report.trust.notes.iter().any(is_said), "{:?}", report.trust);
    Ok(())
}

#[test]
fn a_session_of_its_own() -> anyhow::Result<()> {
    let Watched { report, child, .. } = watched("session", 4)?;
    ensure!(child.session_ns.is_some() && child.code() == Some(4));
    ensure!(report.root()?.session_ns.is_none());
    Ok(())
}

#[test]
fn the_pid_in_a_namespace_of_its_own() -> anyhow::Result<()> {
    let Watched { report, child, .. } = watched("namespace", 0)?;
    ensure!(child.code() == Some(0), "it isn't the first one there");
    ensure!(
        child.pid_ns == Some(1) && child.pid_ns_level > Some(0),
        "{child:#?}"
    );
    let Watched { child, .. } = watched("raises", 6)?;
    ensure!(child.pid_ns.is_some() && report.root.pid != 1);
    Ok(())
}

#[test]
fn a_move_to_another_control_group() -> anyhow::Result<()> {
    let Watched { child, said, .. } = watched("moves", 5)?;
    let path = said.first().context("no path")?;
    let told: Vec<&[u8]> = child.moves.iter().map(|m| &m.cgroup.0[..]).collect();
    ensure!(told == [path.as_bytes()], "{:?}", child.moves);
    Ok(())
}
