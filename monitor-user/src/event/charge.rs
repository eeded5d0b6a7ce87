//! What the memory controller charged the command's control group.

use serde::{Deserialize, Serialize};

/// Whose charge it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChargeScope {
    /// Of a group that rtrace made: the command and its descendants alone.
    Own,
    /// Of a group that the caller named; whether others are in it is the caller's to know.
    Given,
    /// Of the group that rtrace itself was started in: others are charged there too.
    #[default]
    Shared,
}

impl ChargeScope {
    /// Its word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Given => "given",
            Self::Shared => "shared",
        }
    }
}

/// The charge of a control group over a recording, bytes.
///
/// Unlike a sum of RSS it counts each page once, and page cache, page tables and other memory of the kernel too. The
/// kernel charges ahead, by up to 64 pages for each CPU (`MEMCG_CHARGE_BATCH`; 32 before 6.1), so that a charge may be
/// that much too high.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Charge {
    /// The group, as `/proc/PID/cgroup` names it.
    pub group: String,
    /// Version of the memory controller: 1 or 2.
    pub version: u32,
    /// Whose charge it is.
    pub scope: ChargeScope,
    /// Why it isn't a group of the command's own.
    pub why_shared: Option<String>,
    /// Charge when the command began.
    pub start: Option<u64>,
    /// End: highest charge, as the kernel kept it; `None` if the group was charged more before the recording, or
    /// the kernel doesn't tell (version 2 before 5.19).
    pub peak: Option<u64>,
    /// End: highest charge that was seen at an event. What was charged between two events is missing.
    pub seen_peak: Option<u64>,
    /// End: that moment, ns since boot.
    pub seen_peak_ns: Option<u64>,
    /// End: what it consisted of when it was highest of all looks. Looks aren't events: the recorder looks soon after
    /// events have shown a new peak.
    pub at_peak: Option<ChargeSplit>,
    /// End: what was still charged when the recording ended.
    pub at_end: Option<ChargeSplit>,
    /// End: processes that were still in the group then; of 0, what is charged `at_end` is charged to nobody's
    /// process: files in memory, cached pages, the kernel's own.
    pub processes_at_end: Option<u64>,
}

/// What a charge consisted of at one look, bytes. `None`: this kernel doesn't tell.
///
/// Each kind may be off by what CPUs haven't added up yet: up to 64 pages for each CPU in all. (Read one after the
/// other, they may also have changed meanwhile.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChargeSplit {
    /// When, ns since boot.
    pub ns: u64,
    /// All of it.
    pub total: Option<u64>,
    /// Private memory of processes.
    pub anon: Option<u64>,
    /// Page cache: files on storage.
    pub file: Option<u64>,
    /// Files in memory and shared memory: tmpfs, `/dev/shm`, memfd, shared anonymous mappings.
    pub shmem: Option<u64>,
    /// The kernel's own memory for them; page tables are part of it.
    pub kernel: Option<u64>,
    /// Page tables; version 1 doesn't tell.
    pub page_tables: Option<u64>,
}
