//! What the kernel may have refused a new process or thread for.
//!
//! `copy_process` in `kernel/fork.c`, 5.10 to 7.2, asks one after the other: the user's `RLIMIT_NPROC`, the host's
//! `threads-max` (whose count is in no struct), a free number in the pid namespace, `pids.max` of the control group.

use aya_ebpf::helpers::generated::bpf_get_current_task;
use monitor_ebpf::abi::{CGROUP_NAME, ForkFailedRecord, absent};

use super::{frozen, read_string, read_user, word_at};
use crate::maps::layout;

/// Control groups from the caller's to the top that are looked at.
const LEVELS: u32 = 16;
/// The least `pids.max` that is none, `PIDS_MAX` in `kernel/cgroup/pids.c`.
const UNLIMITED: u64 = (4 << 20) + 1;
/// Of `include/uapi/linux/capability.h`.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYS_RESOURCE: u64 = 1 << 24;
/// Of `include/uapi/linux/sched.h`.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Fills in all that is asked, of the running thread.
///
/// # Safety
/// `record` is room of the ring buffer, or a map value.
#[inline(always)]
pub(crate) unsafe fn read_limits(record: *mut ForkFailedRecord) {
    // SAFETY: the caller's promise; the first one is a helper without arguments.
    unsafe {
        let task = bpf_get_current_task();
        (*record).user_tasks = u64::MAX;
        (*record).user_limit = u64::MAX;
        (*record).namespace_pids = u32::MAX;
        (*record).own_namespace_pids = u32::MAX;
        (*record).namespace_pid_max = 0;
        (*record).reserved = 0;
        (*record).group_tasks = 0;
        (*record).group_limit = u64::MAX;
        (*record).group = [0; CGROUP_NAME];
        // The last one that is looked up of each: where it is, so are the ones before.
        if !absent(at!(refusal.signal_limit)) {
            read_user_limit(record, task);
        }
        if !absent(at!(refusal.namespace_pids)) && !absent(at!(orphan.number_namespace)) {
            read_namespace(record, task);
        }
        if !absent(at!(refusal.group_limit)) && (*record).flags & ForkFailedRecord::ELSEWHERE == 0 {
            find_nearest_group(record, task);
        }
    }
}

/// Whether the arguments of clone3 name a control group, or can't be read.
#[inline(always)]
pub(crate) fn names_a_group(arguments: u64) -> bool {
    let mut flags = 0_u64;
    let is_read = read_user(arguments, (&raw mut flags).cast(), 8);
    !is_read || flags & CLONE_INTO_CGROUP != 0
}

/// A word of 4 bytes; zero if it can't be read.
#[inline(always)]
fn half_at(base: u64, offset: u32) -> u32 {
    word_at(base, offset) as u32
}

#[inline(always)]
unsafe fn read_user_limit(record: *mut ForkFailedRecord, task: u64) {
    let cred = word_at(task, at!(refusal.task_cred));
    let counts = word_at(cred, at!(refusal.cred_counts));
    let signals = word_at(task, at!(task_signal));
    if cred == 0 || counts == 0 || signals == 0 {
        return;
    }
    let tasks = word_at(counts, at!(refusal.counts_tasks));
    // The kernel asks for capabilities in the first user namespace.
    let namespace = word_at(cred, at!(refusal.cred_namespace));
    let is_first = half_at(namespace, at!(refusal.user_namespace_level)) == 0;
    let capable = word_at(cred, at!(refusal.cred_effective)) & (CAP_SYS_ADMIN | CAP_SYS_RESOURCE);
    let is_root = half_at(cred, at!(refusal.cred_uid)) == 0;
    // SAFETY: the caller's promise.
    unsafe {
        if is_root || is_first && capable != 0 {
            (*record).flags |= ForkFailedRecord::EXEMPT;
        }
        (*record).user_tasks = if at!(refusal.counts_bytes) == 4 {
            u64::from(tasks as u32)
        } else {
            tasks
        };
        (*record).user_limit = word_at(signals, at!(refusal.signal_limit));
    }
}

#[inline(always)]
unsafe fn read_namespace(record: *mut ForkFailedRecord, task: u64) {
    let proxy = word_at(task, at!(refusal.task_proxy));
    let namespace = word_at(proxy, at!(refusal.proxy_namespace));
    let own_pid = word_at(task, at!(watch.task_thread_pid));
    let level = half_at(own_pid, at!(watch.pid_level));
    let place = at!(orphan.number_namespace) + level * at!(watch.upid_size);
    let own = word_at(own_pid, place);
    if proxy == 0 || namespace == 0 || own_pid == 0 || own == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        (*record).namespace_pids = half_at(namespace, at!(refusal.namespace_pids));
        (*record).own_namespace_pids = half_at(own, at!(refusal.namespace_pids));
        if !absent(at!(refusal.namespace_pid_max)) {
            (*record).namespace_pid_max = half_at(namespace, at!(refusal.namespace_pid_max));
        }
    }
}

/// Finds the group that has the least left of its limit. The topmost has none.
#[inline(always)]
unsafe fn find_nearest_group(record: *mut ForkFailedRecord, task: u64) {
    let set = word_at(task, at!(oom.task_cgroups));
    let mut css = word_at(set, at!(refusal.css_set_pids));
    let mut left = u64::MAX;
    for _ in 0..LEVELS {
        let above = word_at(css, at!(refusal.css_parent));
        if css == 0 || above == 0 {
            break;
        }
        let group = css.wrapping_sub(u64::from(at!(refusal.group_css)));
        let limit = word_at(group, at!(refusal.group_limit));
        let tasks = word_at(group, at!(refusal.group_tasks));
        if limit < UNLIMITED && limit.saturating_sub(tasks) < left {
            left = limit.saturating_sub(tasks);
            let node = word_at(word_at(css, at!(oom.css_cgroup)), at!(oom.cgroup_kn));
            let name = word_at(node, at!(oom.kernfs_name)) as *const u8;
            // SAFETY: the caller's promise. What can't be read is an empty name.
            unsafe {
                (*record).group_tasks = tasks;
                (*record).group_limit = limit;
                (*record).group[0] = 0;
                let into = (&raw mut (*record).group).cast();
                let _length = read_string(name, into, CGROUP_NAME as u32);
            }
        }
        css = above;
    }
}
