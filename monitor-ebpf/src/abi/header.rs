//! What every record starts with.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::assert_layout;

/// Kinds of ring-buffer records and indices of the loss counters.
///
/// Numbers, not a Rust `enum`: the reader may be older than the writer.
#[derive(Debug)]
pub struct Kind;

impl Kind {
    /// [`super::ForkRecord`]: a process was created.
    pub const FORK: u16 = 0;
    /// [`super::ThreadRecord`]: a thread was created.
    pub const THREAD: u16 = 1;
    /// [`super::ExecRecord`]: a process replaced its image.
    pub const EXEC: u16 = 2;
    /// [`super::ArgsRecord`]: more bytes of the argument list of an exec.
    pub const ARGS: u16 = 3;
    /// [`super::ExitRecord`]: a thread that isn't the last one ended.
    pub const THREAD_EXIT: u16 = 4;
    /// [`super::ExitRecord`]: the last thread of a process ended.
    pub const EXIT: u16 = 5;
    /// [`super::ReapedRecord`]: the kernel gave a process's leader back, some time after it was reaped.
    pub const REAPED: u16 = 6;
    /// [`super::RenameRecord`]: a thread changed its name.
    pub const RENAME: u16 = 7;
    /// [`super::MemoryRecord`]: the memory of an address space changed.
    pub const MEMORY: u16 = 8;
    /// [`super::MmEndRecord`]: an address space was torn down.
    pub const MM_END: u16 = 9;
    /// [`super::OomRecord`]: the OOM killer chose a process.
    pub const OOM: u16 = 10;
    /// [`super::SignalRecord`]: a signal was sent.
    pub const SIGNAL: u16 = 11;
    /// [`super::PathRecord`]: a call of exec failed.
    pub const EXEC_FAILED: u16 = 12;
    /// [`super::CallRecord`]: a call of fork, vfork or clone failed.
    pub const FORK_FAILED: u16 = 13;
    /// [`super::SleepRecord`]: a thread runs again after it had waited for long.
    pub const SLEEP: u16 = 14;
    /// [`super::CallRecord`]: a process made a session of its own.
    pub const SESSION: u16 = 15;
    /// [`super::PathRecord`]: a process was moved to another control group.
    pub const CGROUP: u16 = 16;
    /// [`super::SnapshotRecord`]: a process was there before the recording began.
    pub const SNAPSHOT: u16 = 17;
    /// [`super::EnvRecord`]: the environment that a program begins with.
    pub const ENV: u16 = 18;
    /// [`super::TitleRecord`]: a program has written over its arguments.
    pub const TITLE: u16 = 19;

    /// Which records are dropped first when the buffer fills.
    ///
    /// A memory record is replaced by the next one. Without a fork, an exec or an exit the tree is
    /// wrong, so the rest of the buffer is theirs alone.
    pub const fn priority(kind: u16) -> Priority {
        match kind {
            Self::FORK | Self::EXEC | Self::EXIT | Self::SNAPSHOT => Priority::Lifecycle,
            Self::MEMORY => Priority::Memory,
            _ => Priority::Detail,
        }
    }

    /// Number of kinds.
    pub const COUNT: u16 = 20;

    /// Stable names, in the order of the numbers; the trace's metadata uses them.
    pub const NAMES: [&'static str; Self::COUNT as usize] = [
        "fork",
        "thread",
        "exec",
        "args",
        "thread_exit",
        "exit",
        "reaped",
        "rename",
        "memory",
        "mm_end",
        "oom",
        "signal",
        "exec_failed",
        "fork_failed",
        "sleep",
        "session",
        "cgroup",
        "snapshot",
        "env",
        "title",
    ];
}

/// Hooks with a second program, as indices of its counters.
#[derive(Debug)]
pub struct Rescue;

impl Rescue {
    /// Names of the hooks, in the order of the indices. The second program's name ends with `_again`.
    pub const HOOKS: [&'static str; Self::COUNT as usize] = [
        "task_newtask",
        "sched_process_fork",
        "sched_process_exec",
        "sched_process_exit",
        "sched_process_free",
        "exit_mmap",
    ];
    /// Index of `task_newtask`.
    pub const NEWTASK: u32 = 0;
    /// Index of `sched_process_fork`.
    pub const FORK: u32 = 1;
    /// Index of `sched_process_exec`.
    pub const EXEC: u32 = 2;
    /// Index of `sched_process_exit`.
    pub const EXIT: u32 = 3;
    /// Index of `sched_process_free`.
    pub const FREE: u32 = 4;
    /// Index of `exit_mmap`.
    pub const EXIT_MMAP: u32 = 5;
    /// Number of hooks.
    pub const COUNT: u32 = 6;
}

/// What a record is worth when the buffer fills, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// The next record of the kind makes up for it.
    Memory,
    /// It adds to what others say.
    Detail,
    /// The tree rests on it.
    Lifecycle,
}

/// Start of every record. 32 bytes.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct Header {
    /// When it happened, ns since boot (`bpf_ktime_get_boot_ns`).
    pub time_ns: u64,
    /// Start of the subject's process, ns since boot (`task->group_leader->start_boottime`); 0: no subject.
    pub start_ns: u64,
    /// Process (thread group) id; 0: no subject.
    pub pid: u32,
    /// Thread id; 0: no subject.
    pub tid: u32,
    /// One of [`Kind`].
    pub kind: u16,
    /// CPU it happened on.
    pub cpu: u16,
    /// Length of the whole record in bytes.
    pub len: u32,
}

assert_layout!(Header, 32, { time_ns: 0, start_ns: 8, pid: 16, tid: 20, kind: 24, cpu: 26, len: 28 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_first_and_what_the_tree_rests_on_last() {
        let is = |priority, kinds: &[u16]| {
            (0..Kind::COUNT).all(|kind| (Kind::priority(kind) == priority) == kinds.contains(&kind))
        };
        assert!(is(Priority::Memory, &[Kind::MEMORY]));
        assert!(is(
            Priority::Lifecycle,
            &[Kind::FORK, Kind::EXEC, Kind::EXIT, Kind::SNAPSHOT]
        ));
        assert!(Priority::Memory < Priority::Detail && Priority::Detail < Priority::Lifecycle);
    }
}
