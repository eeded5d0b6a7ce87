//! `rss_stat` and `exit_mmap`: what is resident, and the end of address spaces.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{AddressSpace, Rescue};

use crate::{
    address_space::{between_calls, end, find, is_over, map, show, update},
    charge,
    emit::{Subject, setting},
    filter,
    kernel::{Mm, current_mm, rss_member, rss_value},
    pass::{Pass, is_change_seen, saw_change},
    preempt::undisturbed,
    skip::follow,
    title,
};

/// A resident-set counter changed, of which threads keep parts to themselves (before 6.2).
///
/// The address space is the key, not the running process: exit gives memory back when the process
/// has none any more, and reclaim acts on anybody's. One that isn't known is not ours, even if a
/// traced process is at work on it: reclaim, `process_vm_writev` and ptrace reach into others. A
/// fork's copy and what exec builds are read whole when their process is known.
#[btf_tracepoint(function = "rss_stat")]
pub(crate) fn rss_stat(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| {
        let mm = Mm::argument::<0>(&ctx);
        let Some(space) = find(mm) else {
            return 0;
        };
        let mut is_due = update(space, mm, rss_member(&ctx), rss_value(&ctx, mm));
        if setting!(vm_by_calls) != 0 {
            is_due |= map(space, between_calls(space, mm));
        }
        if is_over(space) {
            end(space, mm.address());
        } else if is_due {
            show(space, mm.parts(), owner(mm));
        } else {
            charge::note();
        }
        title::look_at_peak(space, mm.address());
        0
    })
}

/// The same where it can be read exactly (since 6.2).
#[btf_tracepoint(function = "rss_stat")]
pub(crate) fn rss_stat_exactly(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| {
        let (mm, member) = (Mm::argument::<0>(&ctx), rss_member(&ctx));
        if let Some(space) = find(mm) {
            exactly(space, mm, member);
            saw_change(mm.address(), member);
            title::look_at_peak(space, mm.address());
        }
        0
    })
}

/// See [`crate::pass`]. It may do again what was done: values are absolute.
#[btf_tracepoint(function = "rss_stat")]
pub(crate) fn rss_stat_exactly_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| {
        let (mm, member) = (Mm::argument::<0>(&ctx), rss_member(&ctx));
        if !is_change_seen(mm.address(), member)
            && let Some(space) = find(mm)
        {
            exactly(space, mm, member);
        }
        0
    })
}

#[inline(always)]
fn exactly(space: *mut AddressSpace, mm: Mm, member: u32) {
    if follow(space, mm, member) {
        show(space, mm.parts(), owner(mm));
    } else {
        charge::note();
    }
}

/// The running thread, if it is this address space's own.
#[inline(always)]
pub(crate) fn owner(mm: Mm) -> Subject {
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
    undisturbed(|| mm_end(&ctx, Pass::First))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "exit_mmap")]
pub(crate) fn exit_mmap_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| mm_end(&ctx, Pass::Second))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "exit_mmap")]
pub(crate) fn exit_mmap_last(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| mm_end(&ctx, Pass::Third))
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
        if (*space).flags & AddressSpace::ENDING == 0 {
            (*space).flags |= AddressSpace::ENDING;
            (*space).last = (*space).now;
        }
        (*space).last.total_vm = mm.total_vm();
    }
    end(space, mm.address());
    0
}
