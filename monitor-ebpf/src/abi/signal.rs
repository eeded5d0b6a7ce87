//! Signals that were sent to traced processes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{COMM_LEN, Header, assert_layout};

/// A signal was sent. The subject is the thread that it was meant for. [`super::Kind::SIGNAL`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct SignalRecord {
    /// See [`Header`].
    pub header: Header,
    /// Start of the process that ran when it was sent, ns since boot; 0: the kernel was idle or ran a thread of
    /// its own.
    pub current_start_ns: u64,
    /// That process.
    pub current_pid: u32,
    /// Its thread.
    pub current_tid: u32,
    /// The signal.
    pub signal: u32,
    /// `si_code`; 0 where there is none.
    pub code: i32,
    /// One of [`SignalInfo`].
    pub info: u32,
    /// 1: for the whole process, 0: for one thread.
    pub group: u32,
    /// Name of the thread that ran.
    pub current_comm: [u8; COMM_LEN],
}

assert_layout!(SignalRecord, 80, {
    header: 0, current_start_ns: 32, current_pid: 40, current_tid: 44, signal: 48, code: 52, info: 56, group: 60,
    current_comm: 64,
});

/// What a signal was sent with (`enum` of `include/linux/sched/signal.h`, `SEND_SIG_NOINFO` and
/// `SEND_SIG_PRIV`, 5.10 to 7.2).
#[derive(Debug)]
pub struct SignalInfo;

impl SignalInfo {
    /// Nothing: the kernel did it in the name of the running thread, as for SIGPIPE.
    pub const NONE: u32 = 0;
    /// The kernel's own word: terminals, limits, timers, the OOM killer.
    pub const KERNEL: u32 = 1;
    /// A `siginfo`, whose code tells.
    pub const CODE: u32 = 2;
}
