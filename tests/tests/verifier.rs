//! What the kernel's verifier has to look at: it refuses a program above a million instructions, and how many it counts
//! differs between kernels.

use std::{collections::BTreeMap, env, fs, process::Command};

use anyhow::ensure;
use rtrace_tests::{
    groups::{self, Group},
    harness::{self, Recorder},
};

/// Most instructions of a program: a tenth of the verifier's own limit, so that a kernel which follows more paths loads it
/// too. Linux 7.2 follows twice as many as 6.18.
const MOST: u64 = 100_000;
/// And for each CPU whose parts of counters it adds up: up to sixteen times where a process is made in a control group
/// that is recorded. With 128 CPUs a kernel may refuse that; the recorder then does without these parts, and says so.
const MOST_FOR_A_CPU: u64 = 7_000;
/// Those with a long loop: one copies argument lists, one looks at the threads of who comes into a control group.
const MOST_OF_LOOPS: u64 = 150_000;

#[test]
fn every_program_is_far_from_the_limit() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = harness::record(&["/bin/true"])?.report()?;
    let counts = &report.recording.verified_instructions;
    if !kernel_tells()? {
        ensure!(counts.is_empty(), "{counts:?}");
        return Ok(());
    }
    // Where programs can be preempted some hooks have more than one, and one reads environments besides.
    let is_first = |name: &&String| {
        let others = ["_again", "_last", "_env"];
        others.iter().all(|other| !name.ends_with(other))
    };
    let hooks = counts.keys().filter(is_first);
    let expected = 19 - usize::from(env::var_os("RTRACE_WITHOUT").is_some());
    ensure!(hooks.count() == expected, "{counts:?}");
    far_from_the_limit(counts)
}

#[test]
fn so_is_what_only_the_recording_of_a_control_group_loads() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    if !kernel_tells()? {
        println!("NOT RUN: this kernel doesn't tell how many instructions were verified");
        return Ok(());
    }
    let group = Group::make(groups::top(), "verified")?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let mut inside = Command::new("/bin/sh")
        .args(["-c", &format!("{}; exec sleep 1000", group.enter())])
        .spawn()?;
    harness::eventually("somebody is in the group", || {
        let there = fs::read_to_string(group.folder.join("cgroup.procs"))?;
        Ok(!there.is_empty())
    })?;
    let recorder = Recorder::new()
        .option("--duration=1s")
        .option("--cgroup")
        .option(&group.folder);
    let output = recorder.call::<&str>(&trace, &[])?.output();
    inside.kill()?;
    inside.wait()?;
    let output = output?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let counts = harness::report(&trace)?.recording.verified_instructions;
    for needed in [
        "cgroup_mkdir",
        "cgroup_attach_task",
        "cgroup_attach_task_threads",
    ] {
        let is_it = |name: &String| name.strip_suffix("_exactly").unwrap_or(name) == needed;
        let is_left_out = env::var("RTRACE_WITHOUT").is_ok_and(|hook| needed.starts_with(&hook));
        ensure!(
            is_left_out || counts.keys().any(is_it),
            "{needed}: {counts:?}"
        );
    }
    let walks = ["find_tasks", "find_tasks_exactly"];
    ensure!(
        walks.iter().any(|name| counts.contains_key(*name)),
        "{counts:?}"
    );
    far_from_the_limit(&counts)
}

fn far_from_the_limit(counts: &BTreeMap<String, u64>) -> anyhow::Result<()> {
    for (program, count) in counts {
        let has_loop =
            program.starts_with("sched_process_exec") || program == "cgroup_attach_task_threads";
        let most = if has_loop { MOST_OF_LOOPS } else { MOST };
        let most = most + possible_cpus()? * MOST_FOR_A_CPU;
        ensure!((1..=most).contains(count), "{program}: {count}");
    }
    Ok(())
}

/// CPUs that the kernel may ever use.
fn possible_cpus() -> anyhow::Result<u64> {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let highest = list.trim().rsplit(['-', ',']).next().unwrap_or_default();
    Ok(highest.parse::<u64>()? + 1)
}

/// The kernel tells since 5.16 (`verified_insns` in `kernel/bpf/syscall.c`).
fn kernel_tells() -> anyhow::Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split('.').map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    let version = major.and_then(Result::ok).zip(minor.and_then(Result::ok));
    Ok(version.is_some_and(|version| version >= (5, 16)))
}
