//! System calls that failed, and moves between groups of processes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, assert_layout};

/// A call of exec failed ([`super::Kind::EXEC_FAILED`]), or a process was moved to another control group
/// ([`super::Kind::CGROUP`]). `path_len` bytes of a path follow.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct PathRecord {
    /// See [`Header`].
    pub header: Header,
    /// What exec failed with, or the number of the group's hierarchy, 0 for version 2.
    pub number: u32,
    /// Bytes of the path that was given to exec, or of the group's.
    pub path_len: u32,
}

assert_layout!(PathRecord, 40, { header: 0, number: 32, path_len: 36 });

/// A process made a session of its own. [`super::Kind::SESSION`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct CallRecord {
    /// See [`Header`].
    pub header: Header,
    /// The session's number.
    pub number: u32,
    /// Zero.
    pub reserved: u32,
}

assert_layout!(CallRecord, 40, { header: 0, number: 32, reserved: 36 });
