//! `mmap_lock_released` and, where that isn't there, the ends of system calls: what is mapped.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

use crate::{
    address_space::{find, map_exactly, regroup, settle, show},
    emit::setting,
    filter,
    kernel::{Mm, current_mm, mapped_at},
    maps::ADDRESS_SPACES,
    memory::owner,
    preempt::undisturbed,
};

/// Whoever held the lock of an address space lets go of it, still holding it.
///
/// `total_vm` changes under that lock only. A reader may have changed it too: munmap goes on as one
/// before it counts, and stacks grew under a reader's lock until 6.4.
#[btf_tracepoint(function = "mmap_lock_released")]
pub(crate) fn mmap_lock_released(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| released(&ctx))
}

/// See [`crate::pass`]. What the first has seen is no change any more.
#[btf_tracepoint(function = "mmap_lock_released")]
pub(crate) fn mmap_lock_released_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| released(&ctx))
}

#[inline(always)]
fn released(ctx: &BtfTracePointContext) -> i32 {
    let mm = Mm::argument::<0>(ctx);
    let Some(space) = find(mm) else {
        return 0;
    };
    let is_due = map_exactly(space, mm);
    let parts = mm.parts();
    if is_due || regroup(space, &parts) {
        show(space, parts, owner(mm));
    }
    0
}

/// A system call has ended (5.10).
#[inline(always)]
pub(crate) fn call_ended(number: u32) {
    let mut is_mapping = false;
    macro_rules! look {
        ($($n:literal)*) => { $(is_mapping |= number == setting!(mapping_calls[$n]);)* };
    }
    look!(0 1 2 3 4 5 6 7);
    if !is_mapping {
        return;
    }
    let address = current_mm();
    let Some(space) = ADDRESS_SPACES.get_ptr_mut(address) else {
        return;
    };
    let Some((_, subject)) = filter::current() else {
        return;
    };
    let (total_vm, parts) = mapped_at(address);
    if settle(space, total_vm, parts.stack_vm) || regroup(space, &parts) {
        show(space, parts, subject);
    }
}
