//! The highest RSS of an address space, with the kinds it was made of, and how much higher it may have been.
//!
//! What is told was reached; the truth is at most [`AddressSpace::peak_most`].

use monitor_ebpf::abi::{AddressSpace, Memory};

use crate::{
    address_space::{SWAP, positive, resident},
    atomic,
    emit::{now, setting},
    skip::unseen,
};

/// Most tries to write a peak down while another CPU does. It takes that one some ten nanoseconds.
const MOST_TRIES: u32 = 8;

/// Notes the state after a kind was read. What of other kinds was skipped may have gone since they were read, so it
/// doesn't count.
///
/// `LOCKS`: several CPUs may do so at once, and numbers can be exchanged (as [`atomic::exchange`]).
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
pub(crate) unsafe fn note<const LOCKS: bool>(space: *mut AddressSpace, index: usize) {
    let has_skipped = LOCKS && setting!(skips) != 0;
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        let mut seen = (*space).now;
        if has_skipped {
            leave_out_skipped(space, &mut seen, index);
        }
        let whole = resident(&seen);
        if !is_higher(space, whole) {
            return;
        }
        if !LOCKS {
            write(space, seen, whole);
            return;
        }
        let lock = &raw mut (*space).peak_lock;
        for _ in 0..MOST_TRIES {
            if atomic::exchange(lock, 1) == 0 {
                if is_higher(space, whole) {
                    write(space, seen, whole);
                }
                atomic::exchange(lock, 0);
                return;
            }
            // Only for the time that this takes.
            let _now = now();
        }
        atomic::raise(&raw mut (*space).peak_most, whole);
    }
}

/// Notes how high RSS may be: what it was at the last looks, and all that was skipped since.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
pub(crate) unsafe fn note_most(space: *mut AddressSpace, skipped: i64) {
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        let most = resident(&(*space).now) + skipped;
        atomic::raise(&raw mut (*space).peak_most, most);
    }
}

/// How much higher than the peak RSS may have been, pages.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
pub(crate) unsafe fn bound(space: *mut AddressSpace) -> u64 {
    // SAFETY: a map value.
    unsafe { positive((*space).peak_most - (*space).highest) }
}

#[inline(always)]
unsafe fn is_higher(space: *mut AddressSpace, whole: i64) -> bool {
    // SAFETY: a map value; other CPUs write it at once.
    unsafe { whole > (&raw const (*space).highest).read_volatile() }
}

#[inline(always)]
unsafe fn write(space: *mut AddressSpace, seen: Memory, whole: i64) {
    // SAFETY: a map value.
    unsafe {
        (*space).peak = seen;
        (*space).peak_ns = now();
        (&raw mut (*space).highest).write_volatile(whole);
    }
}

/// Takes away what may have gone of the kinds that weren't read just now.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn leave_out_skipped(space: *mut AddressSpace, seen: &mut Memory, index: usize) {
    for kind in 0..4 {
        if kind == index || kind == SWAP {
            continue;
        }
        // SAFETY: see above.
        let left = seen.rss[kind] - unsafe { unseen(space, kind) };
        seen.rss[kind] = if left > 0 { left } else { 0 };
    }
}
