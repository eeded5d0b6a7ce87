//! Memory of address spaces (`mm_struct`).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, assert_layout};

/// Resident pages by kind and the size of an address space, in pages.
///
/// The kinds stand in the kernel's order (`include/linux/mm_types_task.h`: `MM_FILEPAGES`,
/// `MM_ANONPAGES`, `MM_SWAPENTS`, `MM_SHMEMPAGES`, unchanged from 5.10 to 7.2). Values are as the
/// shared counter has them: they may be negative for a moment.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct Memory {
    /// File pages, anonymous pages, swap entries, shared-memory pages.
    pub rss: [i64; 4],
    /// `mm->total_vm`: pages mapped.
    pub total_vm: u64,
}

assert_layout!(Memory, 40, { rss: 0, total_vm: 32 });

/// State of an address space after a change. [`super::Kind::MEMORY`].
///
/// The subject is the running thread if the address space is its own, else there is none.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct MemoryRecord {
    /// See [`Header`].
    pub header: Header,
    /// Address space: a number unique in the recording, not an address.
    pub mm: u64,
    /// State after the change.
    pub now: Memory,
}

assert_layout!(MemoryRecord, 80, { header: 0, mm: 32, now: 40 });

/// End of an address space. [`super::Kind::MM_END`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct MmEndRecord {
    /// See [`Header`]; usually without a subject.
    pub header: Header,
    /// Address space.
    pub mm: u64,
    /// State at the moment at which file + anonymous + shared pages were most.
    pub peak: Memory,
    /// That moment, ns since boot.
    pub peak_ns: u64,
    /// State before the tear-down gave memory back.
    pub last: Memory,
    /// Most pages mapped at any event of this address space.
    pub peak_vm: u64,
    /// Most swap entries at any event of this address space.
    pub peak_swap: u64,
}

assert_layout!(MmEndRecord, 144, { header: 0, mm: 32, peak: 40, peak_ns: 80, last: 88, peak_vm: 128, peak_swap: 136 });
