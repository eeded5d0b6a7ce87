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

/// Entry of the process that a thread belongs to, unless that is left from an earlier process of its pid: the kernel
/// doesn't show each time that one is freed. Of the recorder's own child the start isn't known yet.
#[inline(always)]
pub(crate) fn of_thread(task: Task) -> Option<*mut TrackedProcess> {
    let process = entry(task.pid())?;
    let is_its_own = start_ns(process) == task.leader().start_ns();
    (is_its_own || flags(process) & TrackedProcess::PENDING != 0).then_some(process)
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

/// When the process of an entry started, ns since boot.
#[inline(always)]
pub(crate) fn start_ns(process: *mut TrackedProcess) -> u64 {
    // SAFETY: a map value found by `entry`.
    unsafe { (*process).start_ns }
}

/// Begins to trace a new process, before it can run. Whether it is traced now.
#[inline(always)]
pub(crate) fn track(task: Task, clone_flags: u64) -> bool {
    !matches!(enter(task, clone_flags, 0), Entered::NoRoom)
}

/// What became of an entry.
pub(crate) enum Entered {
    /// It is new.
    Now,
    /// It was there already: whoever made it also reports the process.
    Before,
    /// There was no room for it.
    NoRoom,
}

/// Enters a process, unless it is entered already: two CPUs may try it at once, one by the process's creation
/// and one because it was found.
#[inline(always)]
pub(crate) fn enter(task: Task, clone_flags: u64, flags: u32) -> Entered {
    const BPF_ANY: u64 = 0;
    const BPF_NOEXIST: u64 = 1;
    let process = TrackedProcess {
        start_ns: task.start_ns(),
        clone_flags,
        mm: 0,
        mm_address: 0,
        first_run_ns: 0,
        stopped_ns: 0,
        flags,
        reserved: 0,
    };
    if PROCESSES.insert(task.pid(), process, BPF_NOEXIST).is_ok() {
        return Entered::Now;
    }
    if known(task).is_some() {
        return Entered::Before;
    }
    // One that is left from an earlier process of this pid, or no room at all.
    match PROCESSES.insert(task.pid(), process, BPF_ANY) {
        Ok(()) => Entered::Now,
        Err(_) => Entered::NoRoom,
    }
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
