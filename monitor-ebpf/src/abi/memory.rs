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

impl Memory {
    /// None at all.
    pub const NOTHING: Self = Self {
        rss: [0; 4],
        total_vm: 0,
    };
}

assert_layout!(Memory, 40, { rss: 0, total_vm: 32 });

/// What an address space consists of.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct Parts {
    /// `mm->data_vm`: private writable pages that are no stack.
    pub data_vm: u64,
    /// `mm->exec_vm`: executable pages that aren't writable.
    pub exec_vm: u64,
    /// `mm->stack_vm`: pages of stacks that grow by themselves.
    pub stack_vm: u64,
    /// `mm->pgtables_bytes`: page tables, in bytes.
    pub page_tables: u64,
}

assert_layout!(Parts, 32, { data_vm: 0, exec_vm: 8, stack_vm: 16, page_tables: 24 });

/// What has happened to an address space's anonymous pages since it was entered at fork or exec.
///
/// A forked process starts with its creator's pages. Those that it may have to itself are at most as many
/// as came (`grown`) and as were copied when they were written to (`write_faults`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct Churn {
    /// Pages that came, those included that have gone again; too many rather than too few.
    pub grown: u64,
    /// Page faults of writes to pages that were there but write-protected (`page_fault_user` and
    /// `page_fault_kernel`): each copied a page at most. `u64::MAX`: not seen.
    pub write_faults: u64,
}

assert_layout!(Churn, 16, { grown: 0, write_faults: 8 });

/// When a record of a change is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Pages by which a value may differ from the last record's, whatever its size.
    pub step_pages: u64,
    /// It may also differ by the whole shifted by this many bits; 64 or more: by nothing.
    pub share_bits: u32,
}

impl Resolution {
    /// Whether a value that moved by that many pages since the last record has to be shown. `whole`: what
    /// the address space has in all, in pages. Both sides use this one definition.
    #[inline]
    pub const fn is_due(self, moved: u64, whole: u64) -> bool {
        let share = if self.share_bits < u64::BITS {
            whole >> self.share_bits
        } else {
            0
        };
        moved >= self.step_pages && moved >= share && moved > 0
    }
}

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
    /// What it consists of.
    pub parts: Parts,
    /// What has happened to its anonymous pages.
    pub churn: Churn,
    /// CPU time of the thread, up to one tick less than the truth, ns; 0 without a subject.
    pub cpu_ns: u64,
    /// What the command's memory control group is charged at that moment, pages; `u64::MAX`: not known.
    pub charge: u64,
}

assert_layout!(MemoryRecord, 144, { header: 0, mm: 32, now: 40, parts: 80, churn: 112, cpu_ns: 128, charge: 136 });

/// Sums over the address spaces of all traced processes, each once. Value of the map `TREE`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct TreeSums {
    /// File, anonymous and shared-memory pages now.
    pub rss: i64,
    /// Most of them at any event.
    pub peak_rss: i64,
    /// That moment, ns since boot.
    pub peak_rss_ns: u64,
    /// Mapped pages now.
    pub vm: i64,
    /// Most of them at any event.
    pub peak_vm: i64,
    /// That moment, ns since boot.
    pub peak_vm_ns: u64,
}

assert_layout!(TreeSums, 48, { rss: 0, peak_rss: 8, peak_rss_ns: 16, vm: 24, peak_vm: 32, peak_vm_ns: 40 });

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
    /// What has happened to its anonymous pages, the tear-down not counted.
    pub churn: Churn,
    /// Pages by which the highest sum of file + anonymous + shared pages may have been higher than [`Self::peak`].
    pub peak_bound: u64,
}

assert_layout!(MmEndRecord, 168, { header: 0, mm: 32, peak: 40, peak_ns: 80, last: 88, peak_vm: 128, peak_swap: 136, churn: 144, peak_bound: 160 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_due_from_the_larger_of_step_and_share_on() {
        let usual = Resolution {
            step_pages: 16,
            share_bits: 8,
        };
        assert!(!usual.is_due(15, 0) && usual.is_due(16, 0));
        assert!(usual.is_due(16, 16 * 256) && !usual.is_due(16, 17 * 256));
        assert!(usual.is_due(17, 17 * 256));
        let every = Resolution {
            step_pages: 0,
            share_bits: 64,
        };
        assert!(every.is_due(1, 1 << 40) && !every.is_due(0, 0));
    }
}
