//! Who is traced.

use monitor_ebpf::abi::TrackedProcess;

use crate::{
    emit::Subject,
    kernel::{Task, current_ids},
    maps::PROCESSES,
};

/// Entry of a process that is traced, in whatever state.
#[inline(always)]
pub(crate) fn entry(pid: u32) -> Option<*mut TrackedProcess> {
    PROCESSES.get_ptr_mut(pid)
}

/// Entry of this very process: the one of its pid, unless that is left from an earlier process.
#[inline(always)]
pub(crate) fn known(task: Task) -> Option<*mut TrackedProcess> {
    let process = entry(task.pid())?;
    // SAFETY: a map value found by `entry`.
    (unsafe { (*process).start_ns } == task.start_ns()).then_some(process)
}

/// Flags of an entry.
#[inline(always)]
pub(crate) fn flags(process: *mut TrackedProcess) -> u32 {
    // SAFETY: a map value found by `entry`.
    unsafe { (*process).flags }
}

/// Entry of the running process if what it does is to be shown: it is traced, has executed the
/// command, and hasn't ended. (A pid can belong to somebody else before its dead entry is gone.)
#[inline(always)]
pub(crate) fn current() -> Option<(*mut TrackedProcess, Subject)> {
    let (pid, tid) = current_ids();
    let process = entry(pid)?;
    if flags(process) & (TrackedProcess::PENDING | TrackedProcess::DEAD) != 0 {
        return None;
    }
    Some((process, subject(process, pid, tid)))
}

/// Begins to trace a new process, before it can run. Whether there was room.
#[inline(always)]
pub(crate) fn track(task: Task, clone_flags: u64) -> bool {
    let process = TrackedProcess {
        start_ns: task.start_ns(),
        clone_flags,
        mm: 0,
        mm_address: 0,
        first_run_ns: 0,
        stopped_ns: 0,
        flags: 0,
        reserved: 0,
    };
    PROCESSES.insert(task.pid(), process, 0).is_ok()
}

/// Forgets a process that the kernel has freed.
#[inline(always)]
pub(crate) fn forget(pid: u32) {
    // An entry that is gone already is what is wanted.
    let _gone = PROCESSES.remove(pid);
}

/// A thread of a traced process as a subject.
#[inline(always)]
pub(crate) fn subject(process: *mut TrackedProcess, pid: u32, tid: u32) -> Subject {
    // SAFETY: a map value found by `entry`.
    Subject {
        start_ns: unsafe { (*process).start_ns },
        pid,
        tid,
    }
}
