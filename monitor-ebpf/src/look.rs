//! Looks at counters of which CPUs keep parts to themselves (since 6.2).

use monitor_ebpf::abi::AddressSpace;

use crate::{
    address_space::{ANON, SWAP, came, changed, note_ending},
    atomic,
    emit::count,
    kernel::Mm,
    maps::UNSETTLED,
    tree,
};

/// Most tries of a look. What is left to be seen after so many is seen at the next event.
pub(crate) const MOST_READS: u32 = 4;

/// Looks at a lock until it is free, in one try. It is held while a few words are written, which takes up to a microsecond
/// where another CPU wants them too.
pub(crate) const MOST_WAITS: u32 = 7;

/// Reads a counter. Whether a record is due.
///
/// What a CPU has read is old when another one has changed the counter meanwhile and written down what it
/// read. So each says that it is there before it reads, and reads again if another one came. A value that was read while
/// a part of it moved ([`Mm::reading`]) is taken only if no try got a better one: it may be off by what CPUs keep to
/// themselves, so no peak and no record is made of it. What moved was another CPU's, whose event is about to come.
#[inline(always)]
pub(crate) fn look<const WAITS: u32>(space: *mut AddressSpace, mm: Mm, member: u32) -> bool {
    let index = (member & 3) as usize;
    note_ending(space, mm);
    let mut is_due = false;
    // SAFETY: map values; other CPUs write them at once, so they are read as they are now.
    unsafe {
        let arrivals = &raw mut (*space).arrivals;
        let place = (&raw mut (*space).now.rss).cast::<i64>().add(index);
        atomic::add(arrivals, 1);
        for round in 1..=MOST_READS {
            let seen = arrivals.read_volatile();
            let reading = mm.reading::<true, WAITS>(member);
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
            is_due |= changed(space, index, reading.value, before);
            if arrivals.read_volatile() == seen {
                break;
            }
        }
    }
    is_due
}
