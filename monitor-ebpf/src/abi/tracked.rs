//! What the kernel side keeps of a process; user space enters the first one and reads who is left.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::assert_layout;

/// Value of the map `PROCESSES`; the key is the pid.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct TrackedProcess {
    /// Start of the process, ns since boot. With the pid it is the process's identity.
    pub start_ns: u64,
    /// Flags of the clone that made it; `u64::MAX`: not known.
    pub clone_flags: u64,
    /// Number of its address space; 0: not known yet.
    pub mm: u64,
    /// Where that is in the kernel, to look it up by: 5.10 names only the pid of a victim of the OOM killer.
    pub mm_address: u64,
    /// When its first thread first ran, ns since boot; 0: it hasn't, or that isn't known.
    pub first_run_ns: u64,
    /// How long a signal had stopped its first thread, ns; the stop that it is in now isn't counted.
    pub stopped_ns: u64,
    /// [`TrackedProcess::PENDING`], [`TrackedProcess::DEAD`], [`TrackedProcess::CREATED`].
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

impl TrackedProcess {
    /// The recorder's own child, before it executes the command: nothing of it is shown.
    pub const PENDING: u32 = 1;
    /// Its last thread has ended; it waits to be reaped and freed.
    pub const DEAD: u32 = 2;
    /// Its creation has been reported.
    pub const CREATED: u32 = 4;
}

assert_layout!(TrackedProcess, 56, {
    start_ns: 0, clone_flags: 8, mm: 16, mm_address: 24, first_run_ns: 32, stopped_ns: 40, flags: 48, reserved: 52,
});
