//! What the programs are told of a recording.

use monitor_ebpf::abi::{Config, MOST_CPUS};
use syscalls::Sysno;

use super::{
    cpu_parts,
    hooks::{SYS_EXIT, has_per_cpu_counters, preempts_programs},
    load::{LoadOptions, Passes},
};
use crate::host::{btf::Btf, facts};

/// The hook that shows the end of an address space.
const MM_END: &str = "exit_mmap";
/// The hook that shows when what is mapped may have changed.
pub(super) const MM_LOCK: &str = "mmap_lock_released";
/// The hook that shows which thread has a CPU.
const SWITCH: &str = "sched_switch";
/// A thread that waits for this long is told of, ns.
const SLEEP_NS: u64 = 100_000_000;
/// The hooks that show copies on write.
const FAULTS: [&str; 2] = ["page_fault_user", "page_fault_kernel"];

/// Whether there are more possible CPUs than whose parts of a counter can be added up.
pub(super) fn adds_up_too_much(possible: u32, most_cpus: u32) -> bool {
    possible > most_cpus.min(MOST_CPUS)
}

/// What the programs are told of this recording.
pub(super) fn config(btf: &Btf, options: &LoadOptions<'_>) -> Config {
    use nix::libc;
    // Numbers of CPUs go up to the possible ones, whether they are online or not.
    let possible = aya::util::nr_cpus()
        .ok()
        .and_then(|n| u32::try_from(n).ok());
    let possible = possible.unwrap_or_else(facts::online_cpus);
    let ring = u64::from(options.buffer_bytes);
    let needs_second = options
        .passes
        .map_or_else(|| preempts_programs(btf), |passes| passes != Passes::First);
    let is_left_out = |hook: &str| options.without.iter().any(|name| name == hook);
    let call = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    Config {
        epoch_ns: facts::boot_ns(),
        ring_bytes: ring,
        wake_bytes: ring / 2,
        memory_limit_bytes: ring - ring / 4,
        detail_limit_bytes: ring - ring / 8,
        step_pages: options.resolution.step_bytes.div_ceil(facts::page_size()),
        cpu_bits: u32::BITS - possible.saturating_sub(1).leading_zeros(),
        ends_by_counters: u32::from(!btf.has_tracepoint(MM_END) && !is_left_out(MM_END)),
        has_later: u32::from(needs_second),
        share_bits: options.resolution.share_bits,
        cpus: possible,
        recorder_tid: cpu_parts::own_thread(),
        attaches: u32::from(options.attach.is_wanted()),
        whole_host: u32::from(options.attach.whole_host),
        vm_by_calls: u32::from(
            !btf.has_tracepoint(MM_LOCK) && !is_left_out(MM_LOCK) && !is_left_out(SYS_EXIT),
        ),
        faults: faults(btf, &is_left_out),
        mapping_calls: [
            call(libc::SYS_mmap),
            call(libc::SYS_munmap),
            call(libc::SYS_brk),
            call(libc::SYS_mremap),
            call(libc::SYS_shmat),
            call(libc::SYS_shmdt),
            call(libc::SYS_remap_file_pages),
            call(libc::SYS_mprotect),
        ],
        sleep_ns: SLEEP_NS,
        sees_switches: u32::from(btf.has_tracepoint(SWITCH) && !is_left_out(SWITCH)),
        sees_calls: u32::from(options.failed_calls && !is_left_out(SYS_EXIT)),
        calls: calls(),
        groups: u32::from(options.attach.group.is_some()),
        skips: u32::from(skips(possible, options)),
    }
}

/// Up to so many possible CPUs it is cheap to add up the parts of all of them at every event. Beyond it a program that
/// the verifier refuses is one that adds up too much.
pub(super) const FULL_SUM_CPUS: u32 = 8;

/// Whether events are skipped as long as what was skipped can't reach the resolution. Not where every change is to be
/// shown, nor where values are to be compared with `/proc`.
fn skips(possible: u32, options: &LoadOptions<'_>) -> bool {
    possible > options.full_sum_cpus.unwrap_or(FULL_SUM_CPUS)
        && options.resolution.step_bytes > 0
        && !options.verify
}

/// Numbers of the system calls that are told of, in the order of [`Config::calls`].
fn calls() -> [u32; 8] {
    let number = |call: Sysno| u32::try_from(call.id()).unwrap_or(u32::MAX);
    let mut calls = [u32::MAX; 8];
    calls[Config::EXECVE] = number(Sysno::execve);
    calls[Config::EXECVEAT] = number(Sysno::execveat);
    calls[Config::SETSID] = number(Sysno::setsid);
    let forks = &mut calls[Config::FORKS..];
    // By name: newer machines have neither fork nor vfork.
    for (place, name) in forks.iter_mut().zip(["fork", "vfork", "clone", "clone3"]) {
        *place = name.parse().map_or(u32::MAX, number);
    }
    calls
}

/// What page faults tell: [`Config::faults`].
fn faults(btf: &Btf, is_left_out: &impl Fn(&str) -> bool) -> u32 {
    let is_there = |hook: &&str| btf.has_tracepoint(hook) && !is_left_out(hook);
    if !FAULTS.iter().all(is_there) {
        0
    } else if has_per_cpu_counters(btf) {
        Config::SEES_WRITES
    } else {
        Config::SEES_WRITES | Config::COUNTS_PAGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{attach::Attach, load::Resolution};

    #[test]
    fn parts_of_4096_cpus_are_added_up_and_of_more_are_not() {
        assert!(!adds_up_too_much(2, MOST_CPUS));
        assert!(!adds_up_too_much(4096, MOST_CPUS));
        assert!(adds_up_too_much(4097, MOST_CPUS));
        // A test may ask for fewer, and nobody for more.
        assert!(adds_up_too_much(1, 0));
        assert!(adds_up_too_much(4097, u32::MAX));
    }

    #[test]
    fn looks_are_skipped_with_many_cpus_unless_every_change_is_wanted() {
        let attach = Attach::default();
        let mut options = LoadOptions {
            buffer_bytes: 1 << 16,
            resolution: Resolution::default(),
            without: &[],
            passes: None,
            most_cpus: MOST_CPUS,
            full_sum_cpus: None,
            verify: false,
            failed_calls: true,
            attach: &attach,
            debug: false,
        };
        assert!(!skips(8, &options) && skips(9, &options));
        options.full_sum_cpus = Some(16);
        assert!(!skips(16, &options) && skips(17, &options));
        options.full_sum_cpus = None;
        options.verify = true;
        assert!(!skips(9, &options));
        options.verify = false;
        options.resolution.step_bytes = 0;
        assert!(!skips(9, &options));
    }
}
