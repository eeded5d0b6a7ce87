//! Calls of fork, vfork and clone that failed, with what the kernel may have refused them for.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{CGROUP_NAME, Header, assert_layout};

/// A call of fork, vfork or clone failed. The subject is the caller. [`super::Kind::FORK_FAILED`].
///
/// All counts are as of the call's end: what the call itself had added to them has been taken back.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct ForkFailedRecord {
    /// See [`Header`].
    pub header: Header,
    /// What the call failed with.
    pub errno: u32,
    /// A sum of [`Self::EXEMPT`] and [`Self::ELSEWHERE`].
    pub flags: u32,
    /// Threads of the caller's user; `u64::MAX`: not known.
    pub user_tasks: u64,
    /// `RLIMIT_NPROC` of the caller; `u64::MAX`: none, or not known.
    pub user_limit: u64,
    /// `pid_allocated` of the pid namespace that the caller's children come into; `u32::MAX`: not known.
    pub namespace_pids: u32,
    /// The same of the caller's own pid namespace; `u32::MAX`: not known.
    pub own_namespace_pids: u32,
    /// `pid_max` of the namespace that children come into; 0: not known.
    pub namespace_pid_max: u32,
    /// Zero.
    pub reserved: u32,
    /// Threads in the control group whose `pids.max` is nearest to being reached, of equally near ones the innermost.
    pub group_tasks: u64,
    /// That `pids.max`; `u64::MAX`: there is none, or it isn't known.
    pub group_limit: u64,
    /// Name of that group, its folder's last part; empty without a limit.
    pub group: [u8; CGROUP_NAME],
}

impl ForkFailedRecord {
    /// In [`Self::flags`]: the caller may have more processes than `RLIMIT_NPROC`.
    pub const EXEMPT: u32 = 1;
    /// In [`Self::flags`]: the child was to come into another control group than the caller's, or perhaps.
    pub const ELSEWHERE: u32 = 2;
    /// In a namespace's `pid_allocated`: its first process lives, or it has had none yet (`PIDNS_ADDING` in
    /// `include/linux/pid_namespace.h`). All other bits are a number.
    pub const ADDING: u32 = 1 << 31;
}

assert_layout!(ForkFailedRecord, 216, {
    header: 0, errno: 32, flags: 36, user_tasks: 40, user_limit: 48, namespace_pids: 56, own_namespace_pids: 60,
    namespace_pid_max: 64, reserved: 68, group_tasks: 72, group_limit: 80, group: 88,
});
