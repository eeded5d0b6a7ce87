//! The highest RSS of an address space, with the kinds it was made of, and how much higher it may have been.
//!
//! What is told was reached; the truth is at most [`AddressSpace::peak_most`].

use monitor_ebpf::abi::AddressSpace;

use crate::{
    address_space::{ANON, FILE, SHMEM, SWAP, positive, resident},
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
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        let file = least::<LOCKS>(space, FILE, index);
        let anon = least::<LOCKS>(space, ANON, index);
        let shmem = least::<LOCKS>(space, SHMEM, index);
        let (kinds, whole) = ([file, anon, shmem], file + anon + shmem);
        if !is_higher(space, whole) {
            return;
        }
        if !LOCKS {
            write(space, kinds);
            return;
        }
        let lock = &raw mut (*space).peak_lock;
        for _ in 0..MOST_TRIES {
            if atomic::exchange(lock, 1) == 0 {
                if is_higher(space, whole) {
                    write(space, kinds);
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

/// Without a copy of all of it: the stack of those that call this is full.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn write(space: *mut AddressSpace, [file, anon, shmem]: [i64; 3]) {
    // SAFETY: a map value.
    unsafe {
        (*space).peak.rss[FILE] = file;
        (*space).peak.rss[ANON] = anon;
        (*space).peak.rss[SHMEM] = shmem;
        (*space).peak.rss[SWAP] = (*space).now.rss[SWAP];
        (*space).peak.total_vm = (*space).now.total_vm;
        (*space).peak_ns = now();
        (&raw mut (*space).highest).write_volatile(file + anon + shmem);
    }
}

/// What there is of a kind at least: `read` is the one that was read just now, of the others what was skipped may have
/// gone since. Pages.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn least<const LOCKS: bool>(space: *mut AddressSpace, kind: usize, read: usize) -> i64 {
    let has_skipped = LOCKS && setting!(skips) != 0 && kind != read;
    // SAFETY: a map value; other CPUs write it at once.
    unsafe {
        let pages = (&raw const (*space).now.rss).cast::<i64>().add(kind);
        let pages = pages.read_volatile();
        if has_skipped {
            positive(pages - unseen(space, kind)) as i64
        } else {
            pages
        }
    }
}
