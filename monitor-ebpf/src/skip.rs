//! Which looks at counters can be done without, where there are many CPUs (since 6.2).
//!
//! To add up the parts of all CPUs costs the more the more there are. So where there are many, an event is skipped as
//! long as all that was skipped can't reach the resolution. How much that is, the running CPU's own part tells: it is
//! what the change that is shown has changed. The argument is in `docs/memory.md`.

use monitor_ebpf::abi::AddressSpace;

use crate::{
    address_space::{ANON, came, note_ending, positive, resident, resolution},
    atomic,
    emit::setting,
    kernel::Mm,
    look::{MOST_WAITS, look},
    maps::{KIND, PARTS},
    peak,
};

/// Counters of so many address spaces, of four kinds each, are remembered on a CPU; of two in one place the later one.
const PLACES: u32 = monitor_ebpf::abi::PARTS;

/// So few that the verifier can follow the sum over all of them wherever it is wanted, for each kind of memory.
pub(crate) const FEW_CPUS: u32 = 8;

/// Where the counter of a kind is remembered. Numbers of address spaces have the CPU in their lowest bits and above it a time.
#[inline(always)]
pub(crate) fn place(id: u64, member: u32) -> u32 {
    let mixed = (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32;
    (mixed << 2 | member & 3) & (PLACES - 1)
}

/// Takes a change of a counter. Whether a record is due.
#[inline(always)]
pub(crate) fn follow(space: *mut AddressSpace, mm: Mm, member: u32) -> bool {
    if setting!(skips) == 0 {
        // With few CPUs each kind may have a way of its own, which costs less.
        return if setting!(cpus) <= FEW_CPUS {
            look::<true, MOST_WAITS>(space, mm, member)
        } else {
            look::<false, 1>(space, mm, forgotten(member))
        };
    }
    if skip(space, mm, member & 3) == Some(()) {
        return false;
    }
    let is_due = look::<false, 1>(space, mm, forgotten(member));
    let (mut worst, mut most) = (0, 0);
    for kind in 0..4 {
        // SAFETY: a map value.
        let skipped = unsafe { unseen(space, kind as usize) };
        if skipped > most {
            most = skipped;
            worst = forgotten(kind);
        }
    }
    // Else what is skipped of it would be in the way of all events of other kinds.
    if most > 0 {
        return look::<false, 1>(space, mm, worst) | is_due;
    }
    is_due
}

/// A number that the verifier doesn't know: it would follow each of four on a way of its own, with all CPUs.
#[inline(always)]
fn forgotten(kind: u32) -> u32 {
    let Some(place) = KIND.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: a per-CPU value.
    unsafe {
        place.write_volatile(kind);
        place.read_volatile()
    }
}

/// Pages by which a kind has moved at most, up or down, at events that were skipped since it was read last.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
pub(crate) unsafe fn unseen(space: *mut AddressSpace, kind: usize) -> i64 {
    // SAFETY: a map value; other CPUs write it at once. In this order: what moves in between counts.
    unsafe {
        let looked = (&raw const (*space).looked).cast::<i64>().add(kind);
        let looked = looked.read_volatile();
        let moved = (&raw const (*space).moved).cast::<i64>().add(kind);
        moved.read_volatile() - looked
    }
}

/// The same of all kinds.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
pub(crate) unsafe fn all_unseen(space: *mut AddressSpace) -> i64 {
    // SAFETY: see above.
    unsafe { unseen(space, 0) + unseen(space, 1) + unseen(space, 2) + unseen(space, 3) }
}

/// Skips an event if that can be borne. `None`: one has to look.
#[inline(always)]
fn skip(space: *mut AddressSpace, mm: Mm, member: u32) -> Option<()> {
    let index = (member & 3) as usize;
    note_ending(space, mm);
    // SAFETY: map values, of which other CPUs write the address space at once.
    unsafe {
        let moved = (&raw mut (*space).moved).cast::<i64>().add(index);
        let Some(step) = known_step(space, mm, member) else {
            atomic::add(moved, 1);
            return None;
        };
        atomic::add(moved, step.unsigned_abs() as i64);
        let mut is_due = false;
        if index == ANON {
            atomic::add(&raw mut (*space).skipped_anon, step);
            if step > 0 && (*space).flags & AddressSpace::ENDING == 0 {
                is_due = came(space, step);
            }
        }
        let all = positive(all_unseen(space));
        let own = positive(resident(&(*space).now) - (*space).inherited);
        let from_row = (*space).now.rss[index].abs_diff((*space).sent.rss[index]) + all;
        // A peak is told without all that was skipped, and may have been higher by as much.
        if is_due || resolution().is_due(from_row, own) || resolution().is_due(2 * all, own) {
            return None;
        }
        peak::note_most(space, all as i64);
        Some(())
    }
}

/// By how much a counter has changed at this event; `None`: that can't be told, or not what was skipped before.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn known_step(space: *mut AddressSpace, mm: Mm, member: u32) -> Option<i64> {
    let (count, part) = mm.own_part(member)?;
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        let step = own_step((*space).id, member, part)?;
        let counts = (&raw mut (*space).counts).cast::<i64>();
        let is_known = (&raw mut (*space).looking).read_volatile() == 0
            && counts.add((member & 3) as usize).read_volatile() == count;
        // If its own part hasn't changed, the change was made on another CPU.
        Some(step).filter(|step| *step != 0 && is_known)
    }
}

/// By how much this CPU's part of a counter has changed since this CPU saw the last change of it; `None`: it doesn't know.
///
/// Part and address space are remembered in one word, so that a program that comes in between leaves it whole.
/// Of an address space's number it has 48 bits: two of which these agree were made hours apart, to 64 ns.
#[inline(always)]
fn own_step(id: u64, member: u32, part: i64) -> Option<i64> {
    let known = PARTS.get_ptr_mut(place(id, member))?;
    let fits = i64::from(part as i16) == part;
    let word = if fits {
        id << 16 | u64::from(part as u16)
    } else {
        0
    };
    // SAFETY: a map value.
    let before = unsafe { atomic::exchange(known, word as i64) } as u64;
    (fits && before >> 16 == id << 16 >> 16).then(|| part - i64::from(before as i16))
}
