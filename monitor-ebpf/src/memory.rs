//! `rss_stat` and `exit_mmap`: the memory of address spaces.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Kind, MemoryRecord, MmEndRecord, TrackedProcess};

use crate::{
    address_space::{enter, find, update},
    emit::{Subject, emit, now},
    filter,
    kernel::{Mm, current_ids, current_mm, rss_change},
    maps::{ADDRESS_SPACES, AddressSpace, ENDING, SILENT, UNBOUND},
};

/// A resident-set counter changed.
///
/// The address space is the key, not the running process: fork fills the child's in the parent's
/// context before the child has a pid, exec builds a new one before it is current, exit gives
/// memory back when the process has none any more, and reclaim acts on anybody's.
#[btf_tracepoint(function = "rss_stat")]
pub(crate) fn rss_stat(ctx: BtfTracePointContext) -> i32 {
    let mm = Mm::argument::<0>(&ctx);
    let Some(space) = find(mm).or_else(|| first_sight(mm)) else {
        return 0;
    };
    let (member, value) = rss_change(&ctx, mm);
    if !update(space, mm, member, value) {
        return 0;
    }
    // SAFETY: a map value.
    let (id, current) = unsafe {
        (*space).sent = (*space).now;
        ((*space).id, (*space).now)
    };
    emit::<MemoryRecord>(Kind::MEMORY, now(), owner(mm), |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).mm = id;
            (*record).now = current;
        }
    });
    0
}

/// An address space that isn't known: entered if a traced process is at work on it.
#[inline(always)]
fn first_sight(mm: Mm) -> Option<*mut AddressSpace> {
    let (pid, _) = current_ids();
    let flags = filter::flags(filter::entry(pid)?);
    if flags & TrackedProcess::DEAD != 0 {
        return None;
    }
    if flags & TrackedProcess::PENDING == 0 {
        return enter(mm, UNBOUND);
    }
    // The recorder's child before it executes the command: its own memory is the recorder's and is
    // never shown, the one that exec builds is the command's and shown from the exec on.
    if current_mm() == mm.address() {
        None
    } else {
        enter(mm, UNBOUND | SILENT)
    }
}

/// The running thread, if it is this address space's own.
#[inline(always)]
fn owner(mm: Mm) -> Subject {
    if current_mm() != mm.address() {
        return Subject::NONE;
    }
    match filter::current() {
        Some((_, subject)) => subject,
        None => Subject::NONE,
    }
}

/// An address space has given everything back.
#[btf_tracepoint(function = "exit_mmap")]
pub(crate) fn exit_mmap(ctx: BtfTracePointContext) -> i32 {
    let mm = Mm::argument::<0>(&ctx);
    let Some(space) = find(mm) else {
        return 0;
    };
    // SAFETY: a map value.
    unsafe {
        if (*space).flags & ENDING == 0 {
            (*space).last = (*space).now;
        }
        (*space).last.total_vm = mm.total_vm();
    }
    // SAFETY: a map value.
    if unsafe { (*space).flags } & SILENT == 0 {
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
    }
    // The address may be given to another address space from here on.
    let _gone = ADDRESS_SPACES.remove(mm.address());
    0
}
