//! What the memory controller charged, as a part of the report.

use serde::Serialize;

use crate::event::{Charge, ChargeSplit};

/// What the memory controller charged a control group: each page once, with page cache and the kernel's own memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChargeReport {
    /// `own`: rtrace made it for the command; `given`: the caller named it; `shared`: it is the one that rtrace was
    /// started in, so that others are charged there too. `None`: nothing is charged that could be read.
    pub scope: Option<&'static str>,
    /// Why it is no group of the command's own.
    pub why_shared: Option<String>,
    /// Its name in `/proc/PID/cgroup`.
    pub group: Option<String>,
    /// Version of the memory controller.
    pub version: Option<u32>,
    /// Charge when the command began.
    pub start_bytes: Option<u64>,
    /// Highest charge, as the kernel kept it.
    pub peak_bytes: Option<u64>,
    /// Highest charge at an event: what was charged between two events is missing.
    pub peak_seen_bytes: Option<u64>,
    /// That moment.
    pub peak_seen_ns: Option<u64>,
    /// What it consisted of at the look that found most.
    pub at_peak: Option<ChargeSplitReport>,
    /// What was charged when the recording ended.
    pub at_end: Option<ChargeSplitReport>,
    /// Processes in the group then.
    pub processes_at_end: Option<u64>,
}

/// What a charge consisted of at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChargeSplitReport {
    /// That moment.
    pub ns: u64,
    /// All of it.
    pub total_bytes: Option<u64>,
    /// Private memory of processes.
    pub anon_bytes: Option<u64>,
    /// Page cache of files on storage.
    pub file_bytes: Option<u64>,
    /// Files in memory and shared memory.
    pub shmem_bytes: Option<u64>,
    /// The kernel's own.
    pub kernel_bytes: Option<u64>,
    /// Page tables, a part of that.
    pub page_tables_bytes: Option<u64>,
}

impl ChargeReport {
    /// From what the recorder wrote down.
    pub(super) fn new(charge: &Charge) -> Self {
        let is_known = charge.version != 0;
        let split = |split: ChargeSplit| ChargeSplitReport {
            ns: split.ns,
            total_bytes: split.total,
            anon_bytes: split.anon,
            file_bytes: split.file,
            shmem_bytes: split.shmem,
            kernel_bytes: split.kernel,
            page_tables_bytes: split.page_tables,
        };
        Self {
            scope: is_known.then(|| charge.scope.name()),
            why_shared: charge.why_shared.clone(),
            group: is_known.then(|| charge.group.clone()),
            version: is_known.then_some(charge.version),
            start_bytes: charge.start,
            peak_bytes: charge.peak,
            peak_seen_bytes: charge.seen_peak,
            peak_seen_ns: charge.seen_peak_ns,
            at_peak: charge.at_peak.map(split),
            at_end: charge.at_end.map(split),
            processes_at_end: charge.processes_at_end,
        }
    }

    /// The highest charge that is known: the kernel's own, else that at an event.
    pub fn highest_bytes(&self) -> Option<u64> {
        self.peak_bytes.max(self.peak_seen_bytes)
    }
}
