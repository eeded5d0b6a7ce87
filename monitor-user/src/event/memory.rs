//! Memory of address spaces.

use super::Mm;

/// Memory of an address space at one moment, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident anonymous pages.
    pub anon: u64,
    /// Resident pages of files.
    pub file: u64,
    /// Resident pages of shared memory (`shmem`, tmpfs, memfd, shared anonymous mappings).
    pub shmem: u64,
    /// Swapped out.
    pub swap: u64,
    /// Mapped (`total_vm`), what `ps` calls VSZ.
    pub vms: u64,
}

impl Memory {
    /// Resident set: anonymous, file and shared-memory pages; swap isn't resident.
    pub fn rss(&self) -> u64 {
        self.anon
            .saturating_add(self.file)
            .saturating_add(self.shmem)
    }
}

/// What an address space consists of, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Private writable mappings that are no stack (`VmData`).
    pub data: u64,
    /// Executable mappings that aren't writable (`VmExe` and `VmLib`).
    pub exec: u64,
    /// Stacks that grow by themselves (`VmStk`).
    pub stack: u64,
    /// Page tables (`VmPTE`), which are no mapping.
    pub page_tables: u64,
}

/// What has happened to an address space's anonymous pages since fork or exec gave it to its process.
///
/// A forked process starts with its creator's pages: those that it may have to itself are at most as many as
/// came and as were copied when they were written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    /// Bytes that came, those included that have gone again; too many rather than too few.
    pub grown: u64,
    /// Write faults on pages that were there; each copied a page at most. What the kernel itself copies without
    /// a fault (`O_DIRECT`, `process_vm_writev`, ptrace) isn't among them. `None`: not seen.
    pub write_faults: Option<u64>,
}

/// The end of an address space, with what the kernel side kept of its whole life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmEnd {
    /// The address space.
    pub mm: Mm,
    /// State at the moment of the highest RSS.
    pub peak: Memory,
    /// That moment, ns since boot.
    pub peak_ns: u64,
    /// State before the tear-down gave memory back.
    pub last: Memory,
    /// Highest VMS, bytes.
    pub peak_vms: u64,
    /// Highest swap use, bytes.
    pub peak_swap: u64,
    /// What had happened to its anonymous pages; `None` in traces of before version 1.2.
    pub churn: Option<Churn>,
    /// The highest RSS may have been higher by this, bytes. 0 also in traces of before version 1.5, whose counters were
    /// added up at every event.
    pub peak_bound: u64,
}
