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
}
