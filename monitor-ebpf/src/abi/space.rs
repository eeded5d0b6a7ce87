//! What the kernel side keeps of an address space; user space reads it to compare it with `/proc`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Churn, Memory, Parts, assert_layout};

/// Value of the map `ADDRESS_SPACES`; the key is the address of the `mm_struct`.
///
/// [`AddressSpace::now`] follows every event, whatever the resolution of the rows is: that decides only
/// when a record is due.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct AddressSpace {
    /// Number in the trace.
    pub id: u64,
    /// [`AddressSpace::ENDING`].
    pub flags: u64,
    /// Changes seen so far; two CPUs that see one at once tell each other by it. Not counted where counters
    /// can't be read exactly.
    pub arrivals: i64,
    /// As of the last event.
    pub now: Memory,
    /// As of the last record.
    pub sent: Memory,
    /// Parts as of the last record.
    pub sent_parts: Parts,
    /// At the moment of the highest RSS.
    pub peak: Memory,
    /// That moment, ns since boot.
    pub peak_ns: u64,
    /// Before the tear-down.
    pub last: Memory,
    /// Most pages mapped at any event.
    pub peak_vm: u64,
    /// Most swap entries at any event.
    pub peak_swap: u64,
    /// Where VMS is read after system calls: pages mapped after the last one.
    pub settled_vm: u64,
    /// The stack's part of that.
    pub settled_stack: u64,
    /// What has happened to its anonymous pages.
    pub churn: Churn,
    /// The same as of the last record.
    pub sent_churn: Churn,
    /// Anonymous pages that it was forked with; 0 after an exec.
    pub inherited: i64,
    /// Where counters aren't added up at every event: pages by which each kind has moved, up or down, at all events that
    /// were skipped. It only grows.
    pub moved: [i64; 4],
    /// What of that had moved before it was added up last.
    pub looked: [i64; 4],
    /// Anonymous pages that came at these events, less those that went.
    pub skipped_anon: i64,
    /// The shared `count` of each kind when it was added up last; [`AddressSpace::NO_COUNT`]: it is to be added up.
    pub counts: [i64; 4],
    /// Looks at counters that are going on.
    pub looking: i64,
    /// RSS of [`Self::peak`], pages.
    pub highest: i64,
    /// 1 while a CPU writes the peak down.
    pub peak_lock: i64,
    /// RSS was at most this at every event, pages; if it is less than [`Self::highest`], at most that.
    pub peak_most: i64,
    /// What stood in the place of its arguments when that was read last, as a number that changes with it; 0: nothing
    /// was read yet.
    pub title: u64,
    /// When that was, ns since boot.
    pub title_ns: u64,
}

impl AddressSpace {
    /// Being torn down: what it gives back now must not look like its last state.
    pub const ENDING: u64 = 1;
    /// What no counter is.
    pub const NO_COUNT: i64 = i64::MIN;
}

assert_layout!(AddressSpace, 448, {
    id: 0, flags: 8, arrivals: 16, now: 24, sent: 64, sent_parts: 104, peak: 136, peak_ns: 176, last: 184,
    peak_vm: 224, peak_swap: 232, settled_vm: 240, settled_stack: 248, churn: 256, sent_churn: 272,
    inherited: 288, moved: 296, looked: 328, skipped_anon: 360, counts: 368, looking: 400, highest: 408,
    peak_lock: 416, peak_most: 424, title: 432, title_ns: 440,
});
