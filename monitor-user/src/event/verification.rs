//! What a recording that checks itself (`rtrace record --verify`) has found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Recorded memory compared with what `/proc` says, at moments at which a process was quiet: what is recorded
/// of it was the same before and after `/proc` was read.
///
/// What is compared is what the kernel side holds, which follows every event; the resolution of the rows plays no
/// part in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verification {
    /// Quiet moments at which a process was compared.
    pub points: u64,
    /// What was compared, by quantity: `anon`, `file`, `shmem`, `swap` and `vms` with `/proc/PID/status`, `rss`
    /// with `/proc/PID/smaps_rollup`.
    pub quantities: BTreeMap<String, Compared>,
    /// Looks that came to nothing, and why.
    pub skipped: Skipped,
    /// The largest difference, whether it is within its bound or not; `None`: no value differed at all.
    pub largest: Option<Difference>,
    /// Values that differed by more than their bound.
    pub beyond: u64,
    /// The largest of those, at most [`Verification::MOST_SHOWN`], one of each process and quantity.
    pub shown: Vec<Difference>,
    /// RSS by kind in `/proc/PID/status` is itself approximate here, so it is compared with that bound too.
    /// Known before 6.2; later kernels differ, and it is found out by `smaps_rollup`, which is exact everywhere.
    pub status_is_approximate: bool,
    /// End: highest RSS of a process by the kernel's own account, of the command and those of its descendants that
    /// were reaped (`ru_maxrss` of `wait4`), bytes. For information only: the kernel takes it from approximate
    /// counters, and the recorder's copy that executed the command counts too.
    pub max_rss_bytes: Option<u64>,
}

impl Verification {
    /// Differences that are kept in full.
    pub const MOST_SHOWN: usize = 8;

    /// Values compared, all quantities together.
    pub fn values(&self) -> u64 {
        self.quantities.values().map(|one| one.values).sum()
    }
}

/// One quantity, over all points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compared {
    /// Values compared.
    pub values: u64,
    /// The largest difference, bytes.
    pub largest_bytes: u64,
    /// The largest difference that was allowed at a point, bytes; 0: none.
    pub bound_bytes: u64,
}

/// Looks that came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Skipped {
    /// The process changed meanwhile; or, where each thread keeps a part of the counters (before 6.2), it shares
    /// its memory with another one, so that their threads can't be counted.
    pub busy: u64,
    /// A difference that didn't last: an event was on its way.
    pub unsettled: u64,
    /// The process ended, or became another program.
    pub gone: u64,
    /// The kernel didn't let `/proc` be read.
    pub refused: u64,
}

/// One value that wasn't the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// The process.
    pub pid: u32,
    /// When the kernel created it, ns since boot.
    pub start_ns: u64,
    /// When they were compared, ns since boot.
    pub time_ns: u64,
    /// What, see [`Verification::quantities`].
    pub quantity: String,
    /// What was recorded, bytes.
    pub recorded_bytes: u64,
    /// What `/proc` said, bytes.
    pub proc_bytes: u64,
    /// By how much they may differ, bytes.
    pub bound_bytes: u64,
}

impl Difference {
    /// By how much they differ, bytes.
    pub fn bytes(&self) -> u64 {
        self.recorded_bytes.abs_diff(self.proc_bytes)
    }
}
