//! Calls of fork that failed: what refused them, as far as the counts at that moment prove it.

use monitor_ebpf::abi::ForkFailedRecord;

use super::{records::text, usage::known};
use crate::event::{ForkFailed, RefusedBy};

const EAGAIN: u32 = 11;
const ENOMEM: u32 = 12;

/// In the order in which the kernel asks (`copy_process` in `kernel/fork.c`): what has no room would have refused the
/// call, whatever comes behind it.
pub(super) fn fork_failed(record: &ForkFailedRecord) -> ForkFailed {
    let (refused_by, limit) = match record.errno {
        EAGAIN if is_user_full(record) => (Some(RefusedBy::UserLimit), known(record.user_limit)),
        EAGAIN if are_numbers_used_up(record) => {
            let limit = u64::from(record.namespace_pid_max);
            (Some(RefusedBy::PidNumbers), Some(limit))
        }
        EAGAIN if is_group_full(record) => (Some(RefusedBy::Cgroup), known(record.group_limit)),
        ENOMEM if has_namespace_ended(record) => (Some(RefusedBy::EndedNamespace), None),
        _ => (None, None),
    };
    let name = text(&record.group);
    let is_named = refused_by == Some(RefusedBy::Cgroup) && !name.is_empty();
    ForkFailed {
        errno: record.errno,
        refused_by,
        limit,
        cgroup: is_named.then(|| String::from_utf8_lossy(&name).into_owned()),
    }
}

fn is_user_full(record: &ForkFailedRecord) -> bool {
    let counts = known(record.user_tasks).zip(known(record.user_limit));
    let is_exempt = record.flags & ForkFailedRecord::EXEMPT != 0;
    !is_exempt && counts.is_some_and(|(tasks, limit)| tasks >= limit)
}

/// Numbers go from 1 up to one less than `pid_max`. Those below 300 aren't given out a second time, so that with some
/// fewer in use it can be over too: then it isn't known.
fn are_numbers_used_up(record: &ForkFailedRecord) -> bool {
    let is_known = record.namespace_pids != u32::MAX && record.namespace_pid_max > 0;
    let used = record.namespace_pids & !ForkFailedRecord::ADDING;
    is_known && used >= record.namespace_pid_max - 1
}

fn is_group_full(record: &ForkFailedRecord) -> bool {
    let is_elsewhere = record.flags & ForkFailedRecord::ELSEWHERE != 0;
    let limit = known(record.group_limit);
    !is_elsewhere && limit.is_some_and(|limit| record.group_tasks >= limit)
}

/// The caller's own namespace lives, and shows that the kernel marks living ones so.
fn has_namespace_ended(record: &ForkFailedRecord) -> bool {
    let lives = |pids: u32| pids & ForkFailedRecord::ADDING != 0;
    let is_known = record.own_namespace_pids != u32::MAX;
    is_known && lives(record.own_namespace_pids) && !lives(record.namespace_pids)
}

#[cfg(test)]
mod tests {
    use monitor_ebpf::abi::{CGROUP_NAME, Header};

    use super::*;

    const ADDING: u32 = ForkFailedRecord::ADDING;

    /// A call that failed though nothing was at its limit.
    fn failed(errno: u32) -> ForkFailedRecord {
        let mut group = [0; CGROUP_NAME];
        group[..3].copy_from_slice(b"job");
        ForkFailedRecord {
            header: Header::default(),
            errno,
            flags: 0,
            user_tasks: 9,
            user_limit: 10,
            namespace_pids: ADDING + 98,
            own_namespace_pids: ADDING + 98,
            namespace_pid_max: 100,
            reserved: 0,
            group_tasks: 19,
            group_limit: 20,
            group,
        }
    }

    fn refused(record: &ForkFailedRecord) -> (Option<RefusedBy>, Option<u64>, Option<String>) {
        let failed = fork_failed(record);
        assert_eq!(failed.errno, record.errno);
        (failed.refused_by, failed.limit, failed.cgroup)
    }

    const NOT_KNOWN: (Option<RefusedBy>, Option<u64>, Option<String>) = (None, None, None);

    #[test]
    fn one_below_every_limit_nothing_is_to_blame() {
        assert_eq!(refused(&failed(EAGAIN)), NOT_KNOWN);
        assert_eq!(refused(&failed(ENOMEM)), NOT_KNOWN);
    }

    #[test]
    fn what_is_at_its_limit_is_named_the_first_that_the_kernel_asks() {
        let mut record = failed(EAGAIN);
        record.group_tasks = 20;
        let group = (Some(RefusedBy::Cgroup), Some(20), Some("job".into()));
        assert_eq!(refused(&record), group);
        record.namespace_pids = ADDING + 99;
        assert_eq!(
            refused(&record),
            (Some(RefusedBy::PidNumbers), Some(100), None)
        );
        record.user_tasks = 10;
        assert_eq!(
            refused(&record),
            (Some(RefusedBy::UserLimit), Some(10), None)
        );
        record.flags = ForkFailedRecord::EXEMPT;
        assert_eq!(
            refused(&record),
            (Some(RefusedBy::PidNumbers), Some(100), None)
        );
        record.errno = ENOMEM;
        assert_eq!(refused(&record), NOT_KNOWN);
    }

    #[test]
    fn what_is_not_known_is_not_to_blame() {
        let mut record = failed(EAGAIN);
        (record.user_tasks, record.user_limit) = (u64::MAX, 0);
        (record.namespace_pids, record.namespace_pid_max) = (u32::MAX, 100);
        (record.group_tasks, record.group_limit) = (20, u64::MAX);
        assert_eq!(refused(&record), NOT_KNOWN);
        (record.group_limit, record.flags) = (20, ForkFailedRecord::ELSEWHERE);
        assert_eq!(refused(&record), NOT_KNOWN);
    }

    #[test]
    fn a_namespace_has_ended_only_where_living_ones_are_marked() {
        let mut record = failed(ENOMEM);
        // Nobody is left in it.
        record.namespace_pids = 0;
        let ended = (Some(RefusedBy::EndedNamespace), None, None);
        assert_eq!(refused(&record), ended);
        record.own_namespace_pids = 98;
        assert_eq!(refused(&record), NOT_KNOWN);
        record.own_namespace_pids = u32::MAX;
        assert_eq!(refused(&record), NOT_KNOWN);
        (record.own_namespace_pids, record.namespace_pids) = (ADDING + 98, u32::MAX);
        assert_eq!(refused(&record), NOT_KNOWN);
        (record.namespace_pids, record.errno) = (0, EAGAIN);
        assert_eq!(refused(&record), NOT_KNOWN);
    }
}
