//! A process that was there before the recording began.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{COMM_LEN, Header, Memory, assert_layout};

/// A process was found. The subject is its leader. [`super::Kind::SNAPSHOT`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct SnapshotRecord {
    /// See [`Header`]; `time_ns` is a moment before its own events were shown for the first time.
    pub header: Header,
    /// Its address space; 0: not known, or it has changed meanwhile.
    pub mm: u64,
    /// Start of its parent now, ns since boot.
    pub parent_start_ns: u64,
    /// Its parent now (`group_leader->real_parent->tgid`).
    pub parent_pid: u32,
    /// Live threads (`signal->live`); 0: it was about to end, and its end may have been seen or not.
    pub threads: u32,
    /// 1: it has executed nothing since it was forked (`PF_FORKNOEXEC`).
    pub is_forked: u32,
    /// See [`super::ForkRecord`].
    pub ns_pid: u32,
    /// See [`super::ForkRecord`].
    pub ns_level: u32,
    /// Zero.
    pub reserved: u32,
    /// Memory of `mm`.
    pub memory: Memory,
    /// Its name.
    pub comm: [u8; COMM_LEN],
}

assert_layout!(SnapshotRecord, 128, {
    header: 0, mm: 32, parent_start_ns: 40, parent_pid: 48, threads: 52, is_forked: 56, ns_pid: 60, ns_level: 64,
    reserved: 68, memory: 72, comm: 112,
});
