//! Victims of the OOM killer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, Memory, assert_layout};

/// Room for the name of a control group with its NUL; a longer one is cut.
pub const CGROUP_NAME: usize = 128;

/// What ran out of memory.
#[derive(Debug)]
pub struct OomScope;

impl OomScope {
    /// Not known.
    pub const UNKNOWN: u32 = 0;
    /// A control group has reached its limit.
    pub const CGROUP: u32 = 1;
    /// The whole host, or the nodes that the allocation was bound to.
    pub const HOST: u32 = 2;
}

/// The OOM killer chose a process. The subject is the victim. [`super::Kind::OOM`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct OomRecord {
    /// See [`Header`].
    pub header: Header,
    /// Address space of the victim; 0: not known.
    pub mm: u64,
    /// Its memory at that moment, if `has_memory` is 1.
    pub memory: Memory,
    /// Limit of the control group that is nearest to its own, pages; `u64::MAX`: none is limited, or
    /// it isn't known.
    pub limit: u64,
    /// One of [`OomScope`].
    pub scope: u32,
    /// 1: `memory` is known.
    pub has_memory: u32,
    /// Name of that control group, its folder's last part; empty if `limit` isn't known.
    pub cgroup: [u8; CGROUP_NAME],
}

assert_layout!(OomRecord, 224, {
    header: 0, mm: 32, memory: 40, limit: 80, scope: 88, has_memory: 92, cgroup: 96,
});
