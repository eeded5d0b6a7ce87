//! What programs write over their arguments (setproctitle): read again when they tell of themselves, at peaks of their
//! memory, and at their end.
//!
//! No hook shows such a write. So it is read, from the memory of the running process, where there is a reason to look,
//! and told only if it isn't what it was.

use monitor_ebpf::abi::{AddressSpace, Kind, TITLE_MAX, TitleRecord};

use crate::{
    emit::{Subject, fill_header, now, output_piece},
    filter,
    kernel::{current_mm, read_user, title::Words},
    maps::{ADDRESS_SPACES, TITLES},
};

/// Words of [`Room`].
const WORDS: usize = (TITLE_MAX + 1) / 8;
/// It isn't read at a peak again within this time, ns: memory that grows has one after the other.
const AT_PEAKS_NS: u64 = 10_000_000;

/// Room for one record with its bytes.
#[repr(C)]
pub(crate) struct Room {
    record: TitleRecord,
    words: [u64; WORDS],
}

/// Reads it, and tells of it if it has changed.
#[inline(always)]
pub(crate) fn look() {
    let Some((_, subject)) = filter::current() else {
        return;
    };
    look_as(subject);
}

/// The same for whom it is known that it runs.
#[inline(always)]
pub(crate) fn look_as(subject: Subject) {
    let address = current_mm();
    if let Some(space) = ADDRESS_SPACES.get_ptr_mut(address) {
        // SAFETY: a map value.
        unsafe { read(space, address, Some(subject)) };
    }
}

/// Reads what a program begins with: only what isn't that is told.
#[inline(always)]
pub(crate) fn remember() {
    let address = current_mm();
    if let Some(space) = ADDRESS_SPACES.get_ptr_mut(address) {
        // SAFETY: a map value.
        unsafe { read(space, address, None) };
    }
}

/// Reads it if an address space has had a peak since, and it is the running process's.
#[inline(always)]
pub(crate) fn look_at_peak(space: *mut AddressSpace, address: u64) {
    // SAFETY: a map value.
    let (peak_ns, title_ns) = unsafe { ((*space).peak_ns, (*space).title_ns) };
    if peak_ns > title_ns.wrapping_add(AT_PEAKS_NS)
        && current_mm() == address
        && let Some((_, subject)) = filter::current()
    {
        // SAFETY: a map value.
        unsafe { read(space, address, Some(subject)) };
    }
}

/// Reads it, as the kernel does for `/proc/PID/cmdline`: if the arguments don't end with a NUL any more, they go on
/// behind their place as one string. Of an environment that is still one nothing is read.
///
/// # Safety
/// `space` is a map value.
#[inline(always)]
unsafe fn read(space: *mut AddressSpace, address: u64, tell: Option<Subject>) {
    let Some(room) = TITLES.get_ptr_mut(0) else {
        return;
    };
    let at = Words::at(address);
    let total = at.end.wrapping_sub(at.start);
    if at.start == 0 || total == 0 || total > u64::from(u32::MAX) {
        return;
    }
    // SAFETY: per-CPU room; no other program that uses it can run on this CPU meanwhile. The verifier checks every
    // access to it.
    unsafe {
        let words = (&raw mut (*room).words).cast::<u64>();
        let bytes = words.cast::<u8>();
        if !read_user(at.end.wrapping_sub(1), bytes, 1) {
            return;
        }
        let is_one = bytes.read_volatile() != 0 && at.environment == at.end;
        let total = if is_one {
            at.environment_end.wrapping_sub(at.start)
        } else {
            total
        };
        for n in 0..WORDS {
            words.add(n).write_volatile(0);
        }
        let length = bounded(total);
        if !read_user(at.start, bytes, length) {
            return;
        }
        let mut title = 1_u64;
        for n in 0..WORDS {
            // Each step keeps all that came before apart.
            title = (title ^ words.add(n).read_volatile()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            title ^= title >> 29;
        }
        let before = (*space).title;
        (*space).title = title;
        (*space).title_ns = now();
        let Some(subject) = tell.filter(|_| before != title) else {
            return;
        };
        let record = &raw mut (*room).record;
        (*record).total = total as u32;
        (*record).title_len = length;
        (*record).is_one = u32::from(is_one);
        (*record).reserved = 0;
        let size = size_of::<TitleRecord>() as u32 + length;
        fill_header(record.cast(), Kind::TITLE, size, now(), subject);
        output_piece(Kind::TITLE, record.cast(), size);
    }
}

/// At most [`TITLE_MAX`], and known to be so to the verifier. The compiler knows it already and would leave a mask out,
/// and compares in a way that the verifier can't follow.
#[inline(always)]
fn bounded(total: u64) -> u32 {
    let most = TITLE_MAX as u64;
    let mut size = if total > most { most } else { total };
    // SAFETY: it changes the register alone, which is the compiler's own.
    unsafe {
        core::arch::asm!(
            "{size} &= {most}",
            size = inout(reg) size,
            most = const TITLE_MAX,
            options(pure, nomem, nostack, preserves_flags),
        )
    };
    size as u32
}
