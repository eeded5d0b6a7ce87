//! `rss_stat` and `exit_mmap`: the memory of address spaces.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Kind, MemoryRecord, Rescue};

use crate::{
    address_space::{end, find, is_over, update},
    emit::{Subject, emit, now},
    filter,
    kernel::{Mm, current_mm, rss_change},
    maps::ENDING,
    pass::Pass,
};

/// A resident-set counter changed.
///
/// The address space is the key, not the running process: exit gives memory back when the process
/// has none any more, and reclaim acts on anybody's. One that isn't known is not ours, even if a
/// traced process is at work on it: reclaim, `process_vm_writev` and ptrace reach into others. A
/// fork's copy and what exec builds are read whole when their process is known.
#[btf_tracepoint(function = "rss_stat")]
pub(crate) fn rss_stat(ctx: BtfTracePointContext) -> i32 {
    let mm = Mm::argument::<0>(&ctx);
    let Some(space) = find(mm) else {
        return 0;
    };
    let (member, value) = rss_change(&ctx, mm);
    let is_due = update(space, mm, member, value);
    if is_over(space) {
        end(space, mm.address());
        return 0;
    }
    if !is_due {
        return 0;
    }
    // SAFETY: a map value.
    let (id, current) = unsafe { ((*space).id, (*space).now) };
    let is_sent = emit::<MemoryRecord>(Kind::MEMORY, now(), owner(mm), |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).mm = id;
            (*record).now = current;
        }
    });
    if is_sent {
        // Only then: after a loss the next change must be shown, however small it is.
        // SAFETY: a map value.
        unsafe { (*space).sent = current };
    }
    0
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
    mm_end(&ctx, Pass::First)
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "exit_mmap")]
pub(crate) fn exit_mmap_again(ctx: BtfTracePointContext) -> i32 {
    mm_end(&ctx, Pass::Second)
}

/// The first report removes the entry, so there is no second.
#[inline(always)]
fn mm_end(ctx: &BtfTracePointContext, pass: Pass) -> i32 {
    let mm = Mm::argument::<0>(ctx);
    let Some(space) = find(mm) else {
        return 0;
    };
    pass.count_rescue(Rescue::EXIT_MMAP);
    // SAFETY: a map value.
    unsafe {
        if (*space).flags & ENDING == 0 {
            (*space).flags |= ENDING;
            (*space).last = (*space).now;
        }
        (*space).last.total_vm = mm.total_vm();
    }
    end(space, mm.address());
    0
}
