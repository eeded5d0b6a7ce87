//! Threads that leave the CPU to wait.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, assert_layout};

/// A thread runs again after it had waited for long. [`super::Kind::SLEEP`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct SleepRecord {
    /// See [`Header`]; `time_ns` is when it ran again.
    pub header: Header,
    /// When it left the CPU, ns since boot.
    pub since_ns: u64,
    /// State it waited in: bits of [`TaskState`].
    pub state: u32,
    /// Number of the system call that it waited in; `u32::MAX`: in none, or not known.
    pub call: u32,
}

assert_layout!(SleepRecord, 48, { header: 0, since_ns: 32, state: 40, call: 44 });

/// Value of the map `THREADS`; the key is the thread's id.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ThreadState {
    /// When it left the CPU to wait, ns since boot; 0: it runs, or would if there were a CPU.
    pub since_ns: u64,
    /// Its process.
    pub pid: u32,
    /// State it waits in: bits of [`TaskState`].
    pub state: u32,
    /// As in [`SleepRecord`].
    pub call: u32,
    /// 1: it has run.
    pub has_run: u32,
    /// When it entered the call of fork, vfork, clone or clone3 that it is in, ns since boot; 0: it is in none, or it has
    /// made the process or thread already.
    pub called_ns: u64,
}

assert_layout!(ThreadState, 32, { since_ns: 0, pid: 8, state: 12, call: 16, has_run: 20, called_ns: 24 });

/// States of a thread that waits (`include/linux/sched.h`, 5.10 to 7.2).
#[derive(Debug)]
pub struct TaskState;

impl TaskState {
    /// It can be woken by a signal (`TASK_INTERRUPTIBLE`).
    pub const INTERRUPTIBLE: u32 = 1;
    /// It can't (`TASK_UNINTERRUPTIBLE`).
    pub const UNINTERRUPTIBLE: u32 = 2;
    /// A signal has stopped it (`__TASK_STOPPED`).
    pub const STOPPED: u32 = 4;
    /// A debugger has (`__TASK_TRACED`).
    pub const TRACED: u32 = 8;
    /// All of them.
    pub const WAITING: u32 = 15;
}
