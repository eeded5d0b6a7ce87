//! Address spaces: entered when fork or exec give them to a process, closed when they are torn down.
//!
//! `exit_mmap` tells the end. 5.10 doesn't have it: there an address space is over when nobody uses
//! it and its counters have come down to nothing, or at the latest when its last user's exit is seen.

use monitor_ebpf::abi::{Kind, Memory, MmEndRecord};

use crate::{
    emit::{Subject, count_full, cpu, emit, now, setting},
    kernel::Mm,
    maps::{ADDRESS_SPACES, AddressSpace, ENDING},
};

/// The entry of an address space, if it has one.
#[inline(always)]
pub(crate) fn find(mm: Mm) -> Option<*mut AddressSpace> {
    ADDRESS_SPACES.get_ptr_mut(mm.address())
}

/// Enters an address space.
#[inline(always)]
fn enter(mm: Mm) -> Option<*mut AddressSpace> {
    let memory = mm.memory();
    let space = AddressSpace {
        id: new_id(),
        flags: 0,
        reserved: 0,
        now: memory,
        sent: Memory {
            rss: [0; 4],
            total_vm: 0,
        },
        peak: memory,
        peak_ns: now(),
        last: memory,
        peak_vm: memory.total_vm,
        peak_swap: 0,
    };
    if ADDRESS_SPACES.insert(mm.address(), space, 0).is_err() {
        count_full(1);
        return None;
    }
    find(mm)
}

/// The number of an address space that belongs to a process from now on; 0 if it has none or there
/// was no room for it.
///
/// One that `is_new` to the kernel isn't the one that was known under its address: the end of that
/// one was missed, and is made up for here.
#[inline(always)]
pub(crate) fn bind(mm: Mm, is_new: bool) -> u64 {
    if mm.address() == 0 {
        return 0;
    }
    let known = find(mm);
    if let Some(stale) = known.filter(|_| is_new) {
        end(stale, mm.address());
    }
    let Some(space) = known.filter(|_| !is_new).or_else(|| enter(mm)) else {
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
        if (*space).flags & ENDING == 0 {
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
        }
    });
    let _gone = ADDRESS_SPACES.remove(address);
}

/// Whether the tear-down has given everything back, where no hook tells.
#[inline(always)]
pub(crate) fn is_over(space: *mut AddressSpace) -> bool {
    if setting!(ends_by_counters) == 0 {
        return false;
    }
    // SAFETY: a map value.
    let (flags, now) = unsafe { ((*space).flags, (*space).now) };
    flags & ENDING != 0 && resident(&now) + now.rss[SWAP] <= 0
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

/// Remembers the memory of an address space as of an event. Whether a record is due.
#[inline(always)]
pub(crate) fn update(space: *mut AddressSpace, mm: Mm, member: u32, value: i64) -> bool {
    let index = (member & 3) as usize;
    let step = setting!(step_pages);
    // SAFETY: a map value. Threads of one process may write it at once. Each value is absolute, so
    // the next event sets right what was overwritten; a maximum that another CPU overwrites with a
    // lower one is lost, and was higher by what one event adds.
    unsafe {
        let space = &mut *space;
        if mm.is_ending() && space.flags & ENDING == 0 {
            space.flags |= ENDING;
            space.last = space.now;
        }
        space.now.rss[index] = value;
        space.now.total_vm = mm.total_vm();
        if space.now.total_vm > space.peak_vm {
            space.peak_vm = space.now.total_vm;
        }
        if value > 0 && index == SWAP && value as u64 > space.peak_swap {
            space.peak_swap = value as u64;
        }
        if resident(&space.now) > resident(&space.peak) {
            space.peak = space.now;
            space.peak_ns = now();
        }
        let moved = value.abs_diff(space.sent.rss[index]);
        moved >= step
    }
}

const SWAP: usize = 2;

/// File, anonymous and shared-memory pages; swap isn't resident.
#[inline(always)]
fn resident(memory: &Memory) -> i64 {
    memory.rss[0] + memory.rss[1] + memory.rss[3]
}
