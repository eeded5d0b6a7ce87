//! What a process has used: from the kernel's raw sums to what the kernel itself tells of them.

use monitor_ebpf::abi;

use crate::event::Usage;

/// A number that may not be known.
pub(super) fn known(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

/// What a process with that much CPU time has used.
pub(super) fn usage(raw: &abi::Usage, cpu_ns: Option<u64>) -> Usage {
    let times = cpu_ns.and_then(|cpu_ns| times(raw, cpu_ns));
    Usage {
        user_ns: times.map(|(user, _)| user),
        system_ns: times.map(|(_, system)| system),
        faults_minor: known(raw.min_flt),
        faults_major: known(raw.maj_flt),
        switches_voluntary: known(raw.nvcsw),
        switches_involuntary: known(raw.nivcsw),
        read_chars: known(raw.rchar),
        written_chars: known(raw.wchar),
        read_bytes: known(raw.read_bytes),
        written_bytes: known(raw.write_bytes),
    }
}

/// CPU time shared out to user mode and kernel, as `cputime_adjust` in `kernel/sched/cputime.c` does:
/// in the proportion of the sampled times, but neither below what was told before. Their sum is
/// `cpu_ns`.
fn times(raw: &abi::Usage, cpu_ns: u64) -> Option<(u64, u64)> {
    let (user, system) = (known(raw.utime)?, known(raw.stime)?);
    // Without a memory of what was told, any share may be.
    let told_user = known(raw.prev_utime).unwrap_or(0).min(cpu_ns);
    let told_system = known(raw.prev_stime).unwrap_or(0).min(cpu_ns);
    let share = match (user, system) {
        (_, 0) => 0,
        (0, _) => cpu_ns,
        _ => {
            let all = u128::from(user) + u128::from(system);
            let share = u128::from(system) * u128::from(cpu_ns) / all;
            u64::try_from(share).unwrap_or(cpu_ns)
        }
    };
    let system = if told_user.saturating_add(told_system) >= cpu_ns {
        told_system
    } else {
        share.max(told_system).min(cpu_ns - told_user)
    };
    Some((cpu_ns - system, system))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn shared(sampled: (u64, u64), told: (u64, u64), cpu: u64) -> (u64, u64) {
        let raw = abi::Usage {
            utime: sampled.0 * MS,
            stime: sampled.1 * MS,
            prev_utime: told.0 * MS,
            prev_stime: told.1 * MS,
            ..abi::Usage::default()
        };
        let usage = usage(&raw, Some(cpu * MS));
        let (user, system) = (usage.user_ns.unwrap(), usage.system_ns.unwrap());
        assert_eq!(user + system, cpu * MS);
        (user / MS, system / MS)
    }

    #[test]
    fn the_exact_time_is_shared_in_the_proportion_of_the_ticks() {
        assert_eq!(shared((30, 10), (0, 0), 80), (60, 20));
        assert_eq!(shared((30, 10), (0, 0), 20), (15, 5));
    }

    #[test]
    fn without_a_tick_in_the_kernel_all_was_in_user_mode() {
        assert_eq!(shared((30, 0), (0, 0), 80), (80, 0));
        assert_eq!(shared((0, 0), (0, 0), 3), (3, 0));
        assert_eq!(shared((0, 4), (0, 0), 80), (0, 80));
    }

    #[test]
    fn what_was_told_is_not_taken_back() {
        // 20 in the kernel were told; the ticks would have it at 8 of 80.
        assert_eq!(shared((90, 10), (30, 20), 80), (60, 20));
        assert_eq!(shared((10, 90), (30, 0), 80), (30, 50));
        // All of it was told, and more than there was.
        assert_eq!(shared((90, 10), (40, 40), 80), (40, 40));
        assert_eq!(shared((90, 10), (70, 40), 80), (40, 40));
        assert_eq!(shared((90, 10), (0, 200), 80), (0, 80));
    }

    #[test]
    fn what_the_kernel_has_not_is_not_known() {
        let nothing = abi::Usage {
            utime: u64::MAX,
            stime: 1,
            prev_utime: u64::MAX,
            prev_stime: u64::MAX,
            min_flt: u64::MAX,
            maj_flt: u64::MAX,
            nvcsw: u64::MAX,
            nivcsw: u64::MAX,
            rchar: u64::MAX,
            wchar: u64::MAX,
            read_bytes: u64::MAX,
            write_bytes: u64::MAX,
        };
        assert_eq!(usage(&nothing, Some(5)), Usage::default());
        assert_eq!(usage(&abi::Usage::default(), None).user_ns, None);
    }
}
