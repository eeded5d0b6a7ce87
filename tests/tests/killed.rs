//! A recorder that is killed: the command lives on, and the trace is readable and says that it was cut short.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};
use rtrace_tests::{
    bpf::{loaded_programs, programs_of},
    clock::boot_ns,
    harness::{self, Recorder, eventually, tail_of},
    victims::victim,
};

/// How many times a recorder is killed; more with `RTRACE_LONG`.
const KILLS: u64 = 20;
const MANY_KILLS: u64 = 200;
/// What happened earlier before the kill than this must be in the trace, ns.
const SAFE_NS: u64 = 1_000_000_000;
/// Kills come up to so long after the start.
const LATEST_MS: u64 = 2_500;
/// By how much an emulated machine is slower, roughly.
const EMULATION: u64 = 4;

#[test]
fn the_command_lives_on_and_the_trace_is_readable() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let command = [
        victim("actor").into_os_string(),
        "wait_for_input".into(),
        "50".into(),
    ];
    let mut call = Recorder::new().call(&trace, &command)?;
    let mut rtrace = call.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdin = rtrace.stdin.take().context("stdin")?;
    let mut stdout = BufReader::new(rtrace.stdout.take().context("stdout")?).lines();
    stdout
        .find(|line| line.as_ref().is_ok_and(|line| line == "ready"))
        .context("never ready")??;
    // Half a second later at most, what happened must be in the file of a recorder that still runs.
    eventually("50 children in the unfinished trace", || {
        Ok(harness::report(&trace).is_ok_and(|report| report.codes().get(&Some(7)) == Some(&50)))
    })?;
    rtrace.kill()?;
    rtrace.wait()?;
    drop(stdin);
    let rest: Vec<_> = stdout.collect::<Result<_, _>>()?;
    assert_eq!(
        rest,
        ["still alive"],
        "the command goes on after its recorder was killed"
    );

    assert!(tail_of(&trace).exists());
    let report = harness::report(&trace)?;
    assert!(!report.trust.complete);
    assert!(
        report
            .trust
            .notes
            .iter()
            .any(|note| note.contains("cut short")),
        "{:?}",
        report.trust.notes
    );
    assert_eq!(report.codes().get(&Some(7)), Some(&50));
    assert_eq!(report.root()?.exit, None, "nobody saw the root end");
    let text = harness::text_report(&trace)?;
    assert!(text.contains("cut short"), "{text}");
    Ok(())
}

/// Children that the command says to have had: pid, and a time after the end of each.
fn pulses(log: &Path) -> anyhow::Result<Vec<(u32, u64)>> {
    let text = fs::read_to_string(log)?;
    // The last line may be only half there.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().filter(|line| *line != "done");
    lines
        .map(|line| {
            let (pid, time) = line.split_once(' ').context("pid and time")?;
            Ok((pid.parse()?, time.parse()?))
        })
        .collect()
}

/// 1 on a real machine.
fn slowness() -> u64 {
    if harness::is_emulated() { EMULATION } else { 1 }
}

/// What a process does, as the kernel tells: for who looks into a failure.
fn what_it_does(pid: &str) -> String {
    let look = |name: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{name}"));
        text.unwrap_or_else(|error| error.to_string())
    };
    let names = ["stat", "syscall", "wchan", "stack"];
    let told = names.map(|name| format!("{name}: {}", look(name).trim()));
    format!("process {pid}: {}", told.join("; "))
}

/// Kills a recorder after so long and checks what is left; how many children were sure to be in the trace.
fn kill_after(delay: Duration) -> anyhow::Result<usize> {
    let folder = tempfile::tempdir()?;
    let (trace, log) = (folder.path().join("t.parquet"), folder.path().join("log"));
    let command = [victim("actor").into_os_string(), "pulse".into()];
    let mut call = Recorder::new().call(&trace, &command)?;
    let mut rtrace = call
        .stdin(Stdio::piped())
        .stdout(File::create(&log)?)
        .spawn()?;
    eventually("the command has started", || Ok(!pulses(&log)?.is_empty()))?;
    let programs = programs_of(rtrace.id())?;
    ensure!(!programs.is_empty(), "a recorder holds its programs");
    let own = rtrace.id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"))?;
    let command = children.split_whitespace().next().context("no child")?;
    thread::sleep(delay);
    let killed_ns = boot_ns()?;
    rtrace.kill()?;
    let input = rtrace.stdin.take();
    rtrace.wait()?;

    let before = pulses(&log)?.len();
    eventually("the command goes on", || {
        Ok(pulses(&log)?.len() >= before + 5)
    })
    .with_context(|| what_it_does(command))?;
    drop(input);
    eventually("the command ends as it would have", || {
        Ok(fs::read_to_string(&log)?.ends_with("done\n"))
    })?;
    eventually("the programs are gone", || {
        Ok(programs.is_disjoint(&loaded_programs()?))
    })?;

    let report = harness::report(&trace)?;
    ensure!(!report.trust.complete, "it can't be complete");
    let there: BTreeSet<u32> = report
        .processes
        .iter()
        .filter(|process| process.code() == Some(7))
        .map(|process| process.pid)
        .collect();
    let all = pulses(&log)?;
    let sure: Vec<u32> = all
        .iter()
        .filter(|(_, time_ns)| time_ns + SAFE_NS * slowness() < killed_ns)
        .map(|(pid, _)| *pid)
        .collect();
    let missing: Vec<_> = sure.iter().filter(|pid| !there.contains(pid)).collect();
    ensure!(
        missing.is_empty(),
        "{} of {} are missing: {missing:?}",
        missing.len(),
        sure.len()
    );
    let made_up = there
        .iter()
        .any(|pid| all.iter().all(|(known, _)| known != pid));
    ensure!(!made_up, "the trace has children that there never were");
    Ok(sure.len())
}

#[test]
fn whenever_it_is_killed_all_but_the_last_second_is_readable() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let kills = if env::var_os("RTRACE_LONG").is_some() {
        MANY_KILLS
    } else {
        KILLS
    };
    let mut state = 1_u64;
    let mut sure = 0;
    for n in 0..kills {
        // Knuth's multiplier (MMIX): the same instants each time, all over the range.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let delay = Duration::from_millis((state >> 33) % (LATEST_MS * slowness()));
        sure += kill_after(delay).with_context(|| format!("kill {n}, after {delay:?}"))?;
    }
    ensure!(sure > 0, "no kill came late enough to show anything");
    Ok(())
}
