//! What a process has used, at its end: the kernel's own numbers, whatever becomes of the process and its threads.

use std::ffi::OsString;

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness,
    report::{Process, Report, Usage},
    victims::{script, victim},
};

/// Of one call of `work` in `workloads/usage.c`.
const PAGES: u64 = 500;
const BYTES: u64 = 100_000;

/// What `wait4` and `/proc/PID/io` say of the victim's child.
struct Told {
    pid: u32,
    user_us: u64,
    system_us: u64,
    /// The rest, with the times left out.
    usage: Usage,
}

/// Numbers of a line; -1 is not known.
fn told(line: &str) -> anyhow::Result<Told> {
    let numbers: Vec<Option<u64>> = line
        .split_whitespace()
        .map(|word| word.parse::<i64>().map(|number| u64::try_from(number).ok()))
        .collect::<Result<_, _>>()
        .with_context(|| format!("the victim said {line:?}"))?;
    let [pid, user_us, system_us, rest @ ..] = numbers.as_slice() else {
        anyhow::bail!("the victim said {line:?}");
    };
    let [minor, major, voluntary, involuntary, rest @ ..] = rest else {
        anyhow::bail!("the victim said {line:?}");
    };
    let [read_chars, written_chars, read_bytes, written_bytes] = rest else {
        anyhow::bail!("the victim said {line:?}");
    };
    Ok(Told {
        pid: u32::try_from(pid.context("pid")?)?,
        user_us: user_us.context("user time")?,
        system_us: system_us.context("system time")?,
        usage: Usage {
            user_ns: None,
            system_ns: None,
            faults_minor: *minor,
            faults_major: *major,
            switches_voluntary: *voluntary,
            switches_involuntary: *involuntary,
            read_chars: *read_chars,
            written_chars: *written_chars,
            read_bytes: *read_bytes,
            written_bytes: *written_bytes,
        },
    })
}

/// Compares a process with what the kernel told its parent.
fn agrees(process: &Process, told: &Told) -> anyhow::Result<()> {
    let usage = process.usage;
    let (user, system) = (
        usage.user_ns.context("user")?,
        usage.system_ns.context("system")?,
    );
    assert_eq!(Some(user + system), process.cpu_ns);
    // wait4 cuts to microseconds.
    assert_eq!((user / 1000, system / 1000), (told.user_us, told.system_us));
    let without_times = Usage {
        user_ns: None,
        system_ns: None,
        ..usage
    };
    assert_eq!(without_times, told.usage);
    Ok(())
}

/// Records the victim; its child, which must have called `work` so many times at least.
fn worked(what: &str, times: u64) -> anyhow::Result<(Report, Process)> {
    let _alone = harness::alone()?;
    let command: [OsString; 2] = [victim("usage").into(), what.into()];
    let recorded = harness::record(&command)?;
    let told = told(&recorded.stdout)?;
    let report = recorded.complete_report()?;
    let child = report.by_pid(told.pid)?.clone();
    agrees(&child, &told)?;
    let usage = child.usage;
    ensure!(usage.faults_minor >= Some(times * PAGES), "{usage:?}");
    // A kernel may not count bytes; if it does, these are among them.
    for bytes in [usage.read_chars, usage.written_chars]
        .into_iter()
        .flatten()
    {
        ensure!(bytes >= times * BYTES, "{usage:?}");
    }
    Ok((report, child))
}

#[test]
fn of_one_thread() -> anyhow::Result<()> {
    let (_, child) = worked("single", 1)?;
    assert_eq!((child.code(), child.threads_created), (Some(0), Some(0)));
    Ok(())
}

#[test]
fn of_threads_that_ended_before() -> anyhow::Result<()> {
    let (_, child) = worked("threads", 1 + 20 + 1)?;
    assert_eq!((child.code(), child.threads_created), (Some(0), Some(20)));
    Ok(())
}

#[test]
fn of_a_leader_that_left_first_and_the_thread_that_went_on() -> anyhow::Result<()> {
    let (_, child) = worked("leader_first", 2)?;
    assert_eq!((child.code(), child.threads_created), (Some(7), Some(1)));
    Ok(())
}

#[test]
fn of_one_that_was_killed() -> anyhow::Result<()> {
    let (_, child) = worked("killed", 1)?;
    assert_eq!(child.signal(), Some(9));
    Ok(())
}

#[test]
fn of_all_programs_that_a_process_was() -> anyhow::Result<()> {
    let (_, child) = worked("exec", 2)?;
    assert_eq!((child.code(), child.execs().count()), (Some(0), 1));
    Ok(())
}

#[test]
fn of_a_real_program_as_another_program_is_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = harness::record(&[
        OsString::from("/usr/bin/python3"),
        script("rusage.py").into(),
    ])?;
    let told = told(&recorded.stdout)?;
    agrees(recorded.complete_report()?.by_pid(told.pid)?, &told)
}

#[test]
fn of_one_that_lives_on_it_is_not_known() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = harness::record(&["/bin/sh", "-c", "sleep 3 & true"])?.complete_report()?;
    let (root, child) = (report.root()?, report.only_child()?);
    let unknown = Usage {
        user_ns: None,
        system_ns: None,
        faults_minor: None,
        faults_major: None,
        switches_voluntary: None,
        switches_involuntary: None,
        read_chars: None,
        written_chars: None,
        read_bytes: None,
        written_bytes: None,
    };
    assert_eq!((child.usage, child.exit.as_ref()), (unknown, None));
    ensure!(root.usage.user_ns.is_some() && root.usage.faults_minor > Some(0));
    Ok(())
}
