//! Address spaces: entered when fork or exec give them to a process, closed when they are torn down.
//!
//! `exit_mmap` tells the end. 5.10 doesn't have it: there an address space is over when nobody uses
//! it and its counters have come down to nothing, or at the latest when its last user's exit is seen.

use monitor_ebpf::abi::{
    AddressSpace, Churn, Config, Kind, Memory, MemoryRecord, MmEndRecord, Parts, Resolution,
};

use crate::{
    atomic, charge,
    emit::{Subject, count_full, cpu, emit, now, setting},
    kernel::{Mm, current_cpu_ns},
    look::{MOST_READS, look},
    maps::{ADDRESS_SPACES, NEW_SPACE},
    peak, tree,
};

/// The entry of an address space, if it has one.
#[inline(always)]
pub(crate) fn find(mm: Mm) -> Option<*mut AddressSpace> {
    ADDRESS_SPACES.get_ptr_mut(mm.address())
}

/// Enters an address space. A fork's copy begins with pages that aren't its own.
#[inline(always)]
fn enter(mm: Mm, is_copy: bool) -> Option<*mut AddressSpace> {
    let new = NEW_SPACE.get_ptr_mut(0)?;
    let sees_writes = setting!(faults) & Config::SEES_WRITES != 0;
    // SAFETY: this CPU's room.
    let (space, memory) = unsafe {
        (*new).id = new_id();
        (*new).flags = 0;
        (*new).arrivals = 0;
        (*new).moved = [0; 4];
        (*new).looked = [0; 4];
        (*new).skipped_anon = 0;
        (*new).counts = [AddressSpace::NO_COUNT; 4];
        (*new).looking = 0;
        (*new).peak_lock = 0;
        (*new).peak_most = 0;
        let memory = mm.memory();
        (*new).highest = resident(&memory);
        (*new).now = memory;
        // Fork and exec tell it themselves.
        (*new).sent = memory;
        (*new).sent_parts = mm.parts();
        (*new).peak = memory;
        (*new).peak_ns = now();
        (*new).last = memory;
        (*new).peak_vm = memory.total_vm;
        (*new).peak_swap = 0;
        (*new).settled_vm = memory.total_vm;
        (*new).settled_stack = mm.stack_vm();
        (*new).churn = Churn {
            grown: 0,
            write_faults: if sees_writes { 0 } else { u64::MAX },
        };
        (*new).sent_churn = (*new).churn;
        (*new).title = 0;
        (*new).title_ns = 0;
        (*new).inherited = if is_copy { memory.rss[ANON] } else { 0 };
        (&*new, memory)
    };
    if ADDRESS_SPACES.insert(mm.address(), space, 0).is_err() {
        count_full(1);
        return None;
    }
    tree::rss(resident(&memory));
    tree::vm(memory.total_vm as i64);
    find(mm)
}

/// The number of an address space that belongs to a process from now on; 0 if it has none or there
/// was no room for it.
///
/// One that `is_new` to the kernel isn't the one that was known under its address: the end of that
/// one was missed, and is made up for here.
#[inline(always)]
pub(crate) fn bind(mm: Mm, is_new: bool, is_copy: bool) -> u64 {
    if mm.address() == 0 {
        return 0;
    }
    let known = find(mm);
    if let Some(stale) = known.filter(|_| is_new) {
        end(stale, mm.address());
    }
    let Some(space) = known.filter(|_| !is_new).or_else(|| enter(mm, is_copy)) else {
        return 0;
    };
    // SAFETY: a map value.
    unsafe { (*space).id }
}

/// Reports the end of an address space and forgets it: its address may be given to another one.
#[inline(always)]
pub(crate) fn end(space: *mut AddressSpace, address: u64) {
    // SAFETY: a map value.
    unsafe {
        if (*space).flags & AddressSpace::ENDING == 0 {
            (*space).last = (*space).now;
        }
    }
    emit::<MmEndRecord>(Kind::MM_END, now(), Subject::NONE, |record| {
        // SAFETY: room that was just reserved, and a map value.
        unsafe {
            (*record).mm = (*space).id;
            (*record).peak = (*space).peak;
            (*record).peak_ns = (*space).peak_ns;
            (*record).last = (*space).last;
            (*record).peak_vm = (*space).peak_vm;
            (*record).peak_swap = (*space).peak_swap;
            (*record).churn = (*space).churn;
            (*record).peak_bound = peak::bound(space);
        }
    });
    // SAFETY: a map value.
    let left = unsafe { (*space).now };
    if ADDRESS_SPACES.remove(address).is_ok() {
        tree::rss(-resident(&left));
        tree::vm(-(left.total_vm as i64));
    }
}

/// Takes an entry back that should not have been made: nobody is told.
#[inline(always)]
pub(crate) fn withdraw(space: *mut AddressSpace, address: u64) {
    // SAFETY: a map value.
    let left = unsafe { (*space).now };
    if ADDRESS_SPACES.remove(address).is_ok() {
        tree::rss(-resident(&left));
        tree::vm(-(left.total_vm as i64));
    }
}

/// How counters are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// With what CPUs keep to themselves (since 6.2).
    Exact,
    /// Without.
    Shared,
}

/// Reads everything once more: what changed before there was an entry was shown to nobody.
#[inline(always)]
pub(crate) fn look_again(space: *mut AddressSpace, mm: Mm, exactness: Exactness) {
    for member in 0..4 {
        // Whether a record is due doesn't matter: one is about to tell all of it.
        let _due = match exactness {
            Exactness::Exact => look::<true, 1>(space, mm, member),
            Exactness::Shared => update(space, mm, member, mm.counter(member)),
        };
    }
    let _due = match exactness {
        Exactness::Exact => map_exactly(space, mm),
        Exactness::Shared => map(space, mm.total_vm()),
    };
    // SAFETY: a map value.
    unsafe { (*space).sent = (*space).now };
}

/// Whether the tear-down has given everything back, where no hook tells.
#[inline(always)]
pub(crate) fn is_over(space: *mut AddressSpace) -> bool {
    if setting!(ends_by_counters) == 0 {
        return false;
    }
    // SAFETY: a map value.
    let (flags, now) = unsafe { ((*space).flags, (*space).now) };
    flags & AddressSpace::ENDING != 0 && resident(&now) + now.rss[SWAP] <= 0
}

/// A number that no other address space of this recording has: the time in 64 ns, and the CPU.
///
/// Entering one takes longer than 64 ns, so a CPU can't give the same number twice; no counter that
/// two programs on a CPU could read at once is needed. Counted from the recording's start to keep
/// it small: some readers hold columns with nulls as 64-bit floats.
#[inline(always)]
fn new_id() -> u64 {
    let since = now() - setting!(epoch_ns);
    (((since >> 6) + 1) << (setting!(cpu_bits) & 15)) | u64::from(cpu())
}

/// Takes a change of one kind of memory, as the hook or the counter tells it. Whether a record is due.
///
/// Threads of one process may do so at once: a value is absolute, so that the next event sets right what
/// was overwritten.
#[inline(always)]
pub(crate) fn update(space: *mut AddressSpace, mm: Mm, member: u32, value: i64) -> bool {
    let index = (member & 3) as usize;
    note_ending(space, mm);
    // SAFETY: a map value.
    unsafe {
        let before = (*space).now.rss[index];
        (*space).now.rss[index] = value;
        changed::<false>(space, index, value, before, 0)
    }
}

/// What a new value of a kind means. Whether a record is due. `shown`: anonymous pages that came at events that were
/// skipped, less those that went. `LOCKS`: see [`peak::note`].
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
pub(crate) unsafe fn changed<const LOCKS: bool>(
    space: *mut AddressSpace,
    index: usize,
    value: i64,
    before: i64,
    shown: i64,
) -> bool {
    // Where events are skipped half of it is left to these.
    let halved = setting!(skips);
    // SAFETY: a map value.
    unsafe {
        peak::note::<LOCKS>(space, index);
        let space = &mut *space;
        if index == SWAP {
            if value > 0 && value as u64 > space.peak_swap {
                space.peak_swap = value as u64;
            }
        } else {
            tree::rss(value - before);
        }
        let mut is_due = false;
        let came_now = value - before - shown;
        if index == ANON && came_now > 0 && space.flags & AddressSpace::ENDING == 0 {
            is_due = came(space, came_now);
        }
        // What a fork's copy began with is its creator's: it would hide what it does itself.
        let own = positive(resident(&space.now) - space.inherited);
        let moved = value.abs_diff(space.sent.rss[index]) << halved;
        is_due || resolution().is_due(moved, own)
    }
}

/// Takes anonymous pages that came. Whether a record is due, since more of a fork's pages may be its own.
#[inline(always)]
pub(crate) fn came(space: *mut AddressSpace, pages: i64) -> bool {
    // SAFETY: a map value; other CPUs add at once.
    unsafe {
        let grown = &raw mut (*space).churn.grown;
        atomic::add(grown.cast(), pages);
        is_churn_due(space, grown.read_volatile() - (*space).sent_churn.grown)
    }
}

/// Takes a write to a page that was write-protected. Whether a record is due.
#[inline(always)]
pub(crate) fn wrote(space: *mut AddressSpace) -> bool {
    // SAFETY: a map value; other CPUs add at once.
    unsafe {
        let faults = &raw mut (*space).churn.write_faults;
        atomic::add(faults.cast(), 1);
        let moved = faults.read_volatile() - (*space).sent_churn.write_faults;
        is_churn_due(space, moved)
    }
}

/// Whether it has to be shown that so many pages more may be a fork's own. Not when all may be anyway.
#[inline(always)]
fn is_churn_due(space: *mut AddressSpace, moved: u64) -> bool {
    // SAFETY: a map value.
    unsafe {
        let space = &*space;
        let own = space.churn.grown.wrapping_add(space.churn.write_faults);
        let (all, sent) = (positive(space.now.rss[ANON]), space.sent_churn);
        space.inherited > 0
            && (own < all || sent.grown.wrapping_add(sent.write_faults) < all)
            && resolution().is_due(moved, own)
    }
}

/// Notes that the tear-down has begun: what it gives back is no longer the state.
#[inline(always)]
pub(crate) fn note_ending(space: *mut AddressSpace, mm: Mm) {
    // SAFETY: a map value.
    unsafe {
        if mm.is_ending() && (*space).flags & AddressSpace::ENDING == 0 {
            (*space).flags |= AddressSpace::ENDING;
            (*space).last = (*space).now;
        }
    }
}

/// Takes how much is mapped. Whether a record is due.
#[inline(always)]
pub(crate) fn map(space: *mut AddressSpace, total_vm: u64) -> bool {
    // SAFETY: a map value.
    unsafe {
        let space = &mut *space;
        let before = space.now.total_vm;
        space.now.total_vm = total_vm;
        mapped(space, total_vm, before)
    }
}

/// Takes how much is mapped after a system call, when no mapping is counted twice. Whether a record is due.
#[inline(always)]
pub(crate) fn settle(space: *mut AddressSpace, total_vm: u64, stack_vm: u64) -> bool {
    // SAFETY: a map value.
    unsafe {
        (*space).settled_vm = total_vm;
        (*space).settled_stack = stack_vm;
    }
    map(space, total_vm)
}

/// What is mapped between system calls: stacks grow without one, and in the midst of one a mapping may be
/// counted twice (`mremap`).
#[inline(always)]
pub(crate) fn between_calls(space: *mut AddressSpace, mm: Mm) -> u64 {
    // SAFETY: a map value.
    let (vm, stack) = unsafe { ((*space).settled_vm, (*space).settled_stack) };
    vm.wrapping_add(mm.stack_vm().wrapping_sub(stack))
}

/// The same where values can be exchanged: reads it, and again if it has changed meanwhile.
#[inline(always)]
pub(crate) fn map_exactly(space: *mut AddressSpace, mm: Mm) -> bool {
    let mut is_due = false;
    for _ in 0..MOST_READS {
        let total_vm = mm.total_vm();
        // SAFETY: a map value; other CPUs write it at once.
        unsafe {
            let place = &raw mut (*space).now.total_vm;
            if place.read_volatile() == total_vm {
                break;
            }
            let before = atomic::exchange(place.cast(), total_vm as i64) as u64;
            is_due |= mapped(&mut *space, total_vm, before);
        }
    }
    is_due
}

/// Whether a record of a change of its parts is due: `mprotect` moves pages between them.
#[inline(always)]
pub(crate) fn regroup(space: *mut AddressSpace, parts: &Parts) -> bool {
    // SAFETY: a map value.
    let (whole, sent) = unsafe { ((*space).now.total_vm, (*space).sent_parts) };
    let is_due = |now: u64, sent: u64| resolution().is_due(now.abs_diff(sent), whole);
    is_due(parts.data_vm, sent.data_vm)
        || is_due(parts.exec_vm, sent.exec_vm)
        || is_due(parts.stack_vm, sent.stack_vm)
        || is_due(
            parts.page_tables >> PAGE_BITS,
            sent.page_tables >> PAGE_BITS,
        )
}

/// Page tables are counted in bytes, always by whole pages of at least this size.
const PAGE_BITS: u32 = 12;

#[inline(always)]
fn mapped(space: &mut AddressSpace, total_vm: u64, before: u64) -> bool {
    if total_vm > space.peak_vm {
        space.peak_vm = total_vm;
    }
    tree::vm(total_vm as i64 - before as i64);
    resolution().is_due(total_vm.abs_diff(space.sent.total_vm), total_vm)
}

/// Shows the state of an address space.
#[inline(always)]
pub(crate) fn show(space: *mut AddressSpace, parts: Parts, subject: Subject) {
    // SAFETY: a map value.
    let (id, current, churn) = unsafe { ((*space).id, (*space).now, (*space).churn) };
    let charge = charge::note();
    let is_sent = emit::<MemoryRecord>(Kind::MEMORY, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).mm = id;
            (*record).now = current;
            (*record).parts = parts;
            (*record).churn = churn;
            (*record).cpu_ns = if subject.pid == 0 {
                0
            } else {
                current_cpu_ns()
            };
            (*record).charge = charge;
        }
    });
    if is_sent {
        // Only then: after a loss the next change must be shown, however small it is.
        // SAFETY: a map value.
        unsafe {
            (*space).sent = current;
            (*space).sent_parts = parts;
            (*space).sent_churn = churn;
        }
    }
}

/// Shows it if anything has changed since it was shown last.
#[inline(always)]
pub(crate) fn show_changed(space: *mut AddressSpace, mm: Mm, subject: Subject) {
    // SAFETY: a map value.
    let (now, sent) = unsafe { ((*space).now, (*space).sent) };
    // SAFETY: a map value.
    let (churn, sent_churn) = unsafe { ((*space).churn, (*space).sent_churn) };
    if churn.grown != sent_churn.grown
        || churn.write_faults != sent_churn.write_faults
        || now.rss[0] != sent.rss[0]
        || now.rss[1] != sent.rss[1]
        || now.rss[2] != sent.rss[2]
        || now.rss[3] != sent.rss[3]
        || now.total_vm != sent.total_vm
    {
        show(space, mm.parts(), subject);
    }
}

#[inline(always)]
pub(crate) fn resolution() -> Resolution {
    Resolution {
        step_pages: setting!(step_pages),
        share_bits: setting!(share_bits),
    }
}

pub(crate) const FILE: usize = 0;
pub(crate) const ANON: usize = 1;
pub(crate) const SWAP: usize = 2;
pub(crate) const SHMEM: usize = 3;

/// File, anonymous and shared-memory pages; swap isn't resident.
#[inline(always)]
pub(crate) fn resident(memory: &Memory) -> i64 {
    memory.rss[0] + memory.rss[1] + memory.rss[3]
}

#[inline(always)]
pub(crate) fn positive(pages: i64) -> u64 {
    if pages > 0 { pages as u64 } else { 0 }
}
