//! What the kernel's verifier has to look at: it refuses a program above a million instructions, and how many it counts
//! differs between kernels.

use std::{env, fs};

use anyhow::ensure;
use rtrace_tests::harness;

/// Most instructions of a program. Far below the verifier's own limit, so that a kernel which follows more paths loads
/// it too.
const MOST: u64 = 20_000;
/// And for each CPU whose parts of counters it adds up: it does so for four counters, or up to eight times for two, which
/// leaves half of the limit with 128 CPUs.
const MOST_FOR_A_CPU: u64 = 4000;
/// The one that copies argument lists, in a loop.
const MOST_OF_EXEC: u64 = 120_000;

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
    let expected = 18 - usize::from(env::var_os("RTRACE_WITHOUT").is_some());
    ensure!(hooks.count() == expected, "{counts:?}");
    for (program, count) in counts {
        let most = if program.starts_with("sched_process_exec") {
            MOST_OF_EXEC
        } else {
            MOST
        };
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
