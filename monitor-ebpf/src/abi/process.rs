//! Birth, images and death of processes and threads.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, Memory, assert_layout};

/// Size of a thread name with its NUL (`TASK_COMM_LEN`).
pub const COMM_LEN: usize = 16;
/// Longest file name kept of an exec, in bytes without NUL. A power of two less one: it masks the length.
pub const FILENAME_MAX: usize = 4095;
/// Room for file name, working directory and first arguments in an [`ExecRecord`].
pub const EXEC_DATA: usize = 12 * 1024;
/// Most argument bytes in one [`ArgsRecord`].
pub const ARGS_CHUNK: usize = 16 * 1024;
/// Most [`ArgsRecord`]s after one exec: with the first piece 2 MiB, what the kernel itself allows by
/// default (a quarter of the stack limit of 8 MiB).
pub const ARGS_CHUNKS: usize = 128;

/// A process was created. The subject is the new process. [`super::Kind::FORK`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ForkRecord {
    /// See [`Header`].
    pub header: Header,
    /// Flags of clone as `task_newtask` has them (without the signal); `u64::MAX`: not known.
    pub clone_flags: u64,
    /// Address space of the new process.
    pub mm: u64,
    /// Address space of the creator; equal to `mm` when it is shared.
    pub old_mm: u64,
    /// Start of the creating process, ns since boot.
    pub creator_start_ns: u64,
    /// Creating process.
    pub creator_pid: u32,
    /// Creating thread.
    pub creator_tid: u32,
    /// Live threads of the creator (`signal->live`).
    pub creator_threads: u32,
    /// Signal sent to the parent at the end (`task->exit_signal`).
    pub exit_signal: i32,
    /// Its pid in its own pid namespace.
    pub ns_pid: u32,
    /// How deep that namespace is below the first one, which has 0.
    pub ns_level: u32,
    /// Memory that the new process starts with.
    pub memory: Memory,
    /// Name that the new process starts with.
    pub comm: [u8; COMM_LEN],
    /// When the call began, ns since boot; 0: not known.
    pub called_ns: u64,
    /// When it had made the process, ns since boot: before anything was done for this record.
    pub made_ns: u64,
    /// The creator's memory at this moment.
    pub creator_memory: Memory,
    /// Its page tables, bytes; `u64::MAX`: they and [`Self::creator_memory`] aren't known.
    pub creator_page_tables: u64,
}

assert_layout!(ForkRecord, 208, {
    header: 0, clone_flags: 32, mm: 40, old_mm: 48, creator_start_ns: 56, creator_pid: 64, creator_tid: 68,
    creator_threads: 72, exit_signal: 76, ns_pid: 80, ns_level: 84, memory: 88, comm: 128, called_ns: 144,
    made_ns: 152, creator_memory: 160, creator_page_tables: 200,
});

/// A thread was created. The subject is the new thread. [`super::Kind::THREAD`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ThreadRecord {
    /// See [`Header`].
    pub header: Header,
    /// Flags of clone.
    pub clone_flags: u64,
    /// Thread that created it.
    pub creator_tid: u32,
    /// Live threads of the process, the new one included (`signal->live`).
    pub threads: u32,
    /// Name that the thread starts with.
    pub comm: [u8; COMM_LEN],
}

assert_layout!(ThreadRecord, 64, { header: 0, clone_flags: 32, creator_tid: 40, threads: 44, comm: 48 });

/// A process replaced its image. [`super::Kind::EXEC`].
///
/// `cwd_len` bytes of its working directory, `filename_len` bytes of file name and then `args_len` bytes of arguments
/// follow.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ExecRecord {
    /// See [`Header`].
    pub header: Header,
    /// Address space of the new image.
    pub mm: u64,
    /// Address space before; 0: not known.
    pub old_mm: u64,
    /// Memory of the new image now.
    pub memory: Memory,
    /// Name after the exec.
    pub comm: [u8; COMM_LEN],
    /// Thread that called exec; it has the process's id from here on.
    pub old_tid: u32,
    /// Bytes of all arguments with their NULs (`mm->arg_end - mm->arg_start`).
    pub args_total: u32,
    /// Bytes of file name behind the working directory.
    pub filename_len: u32,
    /// Bytes of arguments behind the file name; the rest follows in [`ArgsRecord`]s.
    pub args_len: u32,
    /// Bytes of the working directory behind this record: names of folders from the innermost one outwards, each with
    /// its NUL. None is the top.
    pub cwd_len: u32,
    /// What else is to be said of it: bits of [`Cwd`].
    pub cwd_flags: u32,
}

assert_layout!(ExecRecord, 128, {
    header: 0, mm: 32, old_mm: 40, memory: 48, comm: 88, old_tid: 104, args_total: 108, filename_len: 112, args_len: 116,
    cwd_len: 120, cwd_flags: 124,
});

/// A working directory in an [`ExecRecord`].
#[derive(Debug)]
pub struct Cwd;

impl Cwd {
    /// No folder is added once the names have so many bytes.
    pub const FULL: u32 = 4096 - 256;
    /// Folders and mount points that are gone up.
    pub const MOST_STEPS: u32 = 128;
    /// It has more or longer names than are kept: the outermost are missing.
    pub const CUT: u32 = 1;
    /// It has been removed.
    pub const DELETED: u32 = 2;
    /// It is in no tree of mounts any more, or outside of what is mounted of its file system: the path leads to the top
    /// of that.
    pub const UNREACHABLE: u32 = 4;
    /// It couldn't be read.
    pub const UNKNOWN: u32 = 8;
}

/// More bytes of an argument list. [`super::Kind::ARGS`]. `args_len` bytes follow.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ArgsRecord {
    /// See [`Header`]; `time_ns` is that of the exec it belongs to.
    pub header: Header,
    /// Place of the first byte in the whole list.
    pub offset: u32,
    /// Bytes that follow.
    pub args_len: u32,
}

assert_layout!(ArgsRecord, 40, { header: 0, offset: 32, args_len: 36 });

/// A thread ended. [`super::Kind::THREAD_EXIT`], or [`super::Kind::EXIT`] for the last one of a process.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ExitRecord {
    /// See [`Header`].
    pub header: Header,
    /// CPU time of this thread up to the last tick or switch, ns (`se.sum_exec_runtime`).
    pub cpu_ns: u64,
    /// Start of the parent at this moment, ns since boot.
    pub parent_start_ns: u64,
    /// Parent at this moment (`group_leader->real_parent->tgid`).
    pub parent_pid: u32,
    /// Status as `wait` gives it: of the process for EXIT, of the thread else.
    pub status: u32,
    /// Live threads left (`signal->live`).
    pub threads: u32,
    /// EXIT: process that the kernel gives this one's children to; 0: not known, or there can be none.
    pub reaper_pid: u32,
    /// When the process first ran, ns since boot; 0: not known.
    pub first_run_ns: u64,
    /// How long a signal had stopped it, ns; `u64::MAX`: not known.
    pub stopped_ns: u64,
    /// Start of [`Self::reaper_pid`], ns since boot.
    pub reaper_start_ns: u64,
}

assert_layout!(ExitRecord, 88, {
    header: 0, cpu_ns: 32, parent_start_ns: 40, parent_pid: 48, status: 52, threads: 56, reaper_pid: 60,
    first_run_ns: 64, stopped_ns: 72, reaper_start_ns: 80,
});

/// The kernel freed a process's leader. [`super::Kind::REAPED`].
///
/// That is after an RCU grace period: the process was reaped some 10 to 50 ms earlier.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ReapedRecord {
    /// See [`Header`].
    pub header: Header,
    /// CPU time of all threads, final (`signal->sum_sched_runtime`), ns; `u64::MAX`: not known.
    pub cpu_ns: u64,
    /// What else all threads used.
    pub usage: Usage,
}

assert_layout!(ReapedRecord, 136, { header: 0, cpu_ns: 32, usage: 40 });

/// What all threads of a process have used, from its first to its last moment: exec changes nothing in it.
///
/// The kernel adds a thread's numbers to those of its process when it releases the thread
/// (`__exit_signal` in `kernel/exit.c`, 5.10 to 7.2), the leader's too. `u64::MAX`: not known.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct Usage {
    /// Time in user mode as ticks sampled it, ns: only its share of both counts.
    pub utime: u64,
    /// Time in the kernel as ticks sampled it, ns.
    pub stime: u64,
    /// Time in user mode as the kernel last told it, ns: it never tells less afterwards.
    pub prev_utime: u64,
    /// Time in the kernel as the kernel last told it, ns.
    pub prev_stime: u64,
    /// Page faults without reading from storage.
    pub min_flt: u64,
    /// Page faults that had to wait for storage.
    pub maj_flt: u64,
    /// Times that a thread gave up the CPU to wait.
    pub nvcsw: u64,
    /// Times that the CPU was taken from a thread.
    pub nivcsw: u64,
    /// Bytes that system calls read.
    pub rchar: u64,
    /// Bytes that system calls wrote.
    pub wchar: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage, or to be written.
    pub write_bytes: u64,
}

assert_layout!(Usage, 96, {
    utime: 0, stime: 8, prev_utime: 16, prev_stime: 24, min_flt: 32, maj_flt: 40, nvcsw: 48, nivcsw: 56,
    rchar: 64, wchar: 72, read_bytes: 80, write_bytes: 88,
});

/// A thread changed its name. [`super::Kind::RENAME`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct RenameRecord {
    /// See [`Header`].
    pub header: Header,
    /// The new name.
    pub comm: [u8; COMM_LEN],
}

assert_layout!(RenameRecord, 48, { header: 0, comm: 32 });
