//! Looks at counters of which CPUs keep parts to themselves (since 6.2).

use monitor_ebpf::abi::AddressSpace;

use crate::{
    address_space::{ANON, SWAP, came, changed, note_ending},
    atomic,
    emit::{count, setting},
    kernel::Mm,
    maps::UNSETTLED,
    peak,
    skip::all_unseen,
    tree,
};

/// Most tries of a look. What is left to be seen after so many is seen at the next event.
pub(crate) const MOST_READS: u32 = 4;

/// Looks at a lock until it is free, in one try. It is held while a few words are written, which takes up to a microsecond
/// where another CPU wants them too.
pub(crate) const MOST_WAITS: u32 = 6;

/// Reads a counter. Whether a record is due. `IS_TYPED` and `WAITS`: see [`Mm::reading`].
///
/// What a CPU has read is old when another one has changed the counter meanwhile and written down what it
/// read. So each says that it is there before it reads, and reads again if another one came. A value that was read while
/// a part of it moved ([`Mm::reading`]) is taken only if no try got a better one: it may be off by what CPUs keep to
/// themselves, so no peak and no record is made of it. What moved was another CPU's, whose event is about to come.
#[inline(always)]
pub(crate) fn look<const IS_TYPED: bool, const WAITS: u32>(
    space: *mut AddressSpace,
    mm: Mm,
    member: u32,
) -> bool {
    let index = (member & 3) as usize;
    note_ending(space, mm);
    let mut is_due = false;
    // SAFETY: map values; other CPUs write them at once, so they are read as they are now.
    unsafe {
        let arrivals = &raw mut (*space).arrivals;
        let place = (&raw mut (*space).now.rss).cast::<i64>().add(index);
        let (moved_then, mut shown) = begin(space, index);
        atomic::add(arrivals, 1);
        let mut count_then = AddressSpace::NO_COUNT;
        for round in 1..=MOST_READS {
            let seen = arrivals.read_volatile();
            let reading = mm.reading::<IS_TYPED, WAITS>(member);
            if !reading.is_settled && round < MOST_READS {
                continue;
            }
            // Exchanged: each change of the value adds to the tree's sum once.
            let before = atomic::exchange(place, reading.value);
            let moved = reading.value - before;
            if !reading.is_settled {
                count(&UNSETTLED, 0);
                if index != SWAP {
                    tree::rss_in_passing(moved);
                }
                if index == ANON && moved > 0 {
                    // Rather too many than too few: the next look takes less for new by so much.
                    let _due = came(space, moved);
                }
                break;
            }
            is_due |= changed::<true>(space, index, reading.value, before, shown);
            shown = 0;
            if arrivals.read_volatile() == seen {
                count_then = reading.count;
                break;
            }
        }
        finish(space, index, count_then, moved_then);
    }
    is_due
}

/// Says that a look at a counter begins, where events are skipped: what is skipped from now on is not in it for sure.
/// What had moved of it until now at events that were skipped, and the anonymous pages that came at these, less those
/// that went.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn begin(space: *mut AddressSpace, index: usize) -> (i64, i64) {
    if setting!(skips) == 0 {
        return (0, 0);
    }
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        atomic::add(&raw mut (*space).looking, 1);
        let moved = (&raw mut (*space).moved).cast::<i64>().add(index);
        let moved = moved.read_volatile();
        let shown = if index == ANON {
            atomic::exchange(&raw mut (*space).skipped_anon, 0)
        } else {
            0
        };
        (moved, shown)
    }
}

/// Says that it is over. `count`: the shared part of the counter, or [`AddressSpace::NO_COUNT`] if it wasn't read as it
/// should be, so that the next event looks again. `moved`: as of its begin.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn finish(space: *mut AddressSpace, index: usize, count: i64, moved: i64) {
    if setting!(skips) == 0 {
        return;
    }
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        let counts = (&raw mut (*space).counts).cast::<i64>();
        counts.add(index).write_volatile(count);
        if count != AddressSpace::NO_COUNT {
            // Another CPU may have begun later and be done already.
            let looked = (&raw mut (*space).looked).cast::<i64>();
            atomic::raise(looked.add(index), moved);
        }
        peak::note_most(space, all_unseen(space));
        atomic::add(&raw mut (*space).looking, -1);
    }
}
