//! Programs that aren't preempted, where the kernel lets a program ask for that.
//!
//! A program that is preempted with a record in the ring buffer holds up all that come after it, until it is
//! its turn again: the reader takes records in order. So no program is, while it works. The kernel makes up for
//! it when the program allows it again, which is still within the program: other threads' events are skipped
//! then all the same ([`crate::pass`]).

use monitor_ebpf::abi::{PREEMPT_DISABLE, PREEMPT_ENABLE};

/// Does the work of a program with preemption off.
#[inline(always)]
pub(crate) fn undisturbed(work: impl FnOnce() -> i32) -> i32 {
    ask::<{ PREEMPT_DISABLE }>();
    let result = work();
    ask::<{ PREEMPT_ENABLE }>();
    result
}

/// Calls the kernel function that user space puts in place of this instruction; nothing happens
/// where the kernel doesn't have it.
#[inline(always)]
fn ask<const INSTRUCTION: u64>() {
    // SAFETY: a call without arguments; it may change what any call may.
    unsafe {
        core::arch::asm!(
            ".quad {instruction}",
            instruction = const INSTRUCTION,
            out("r0") _,
            out("r1") _,
            out("r2") _,
            out("r3") _,
            out("r4") _,
            out("r5") _,
            options(nostack),
        );
    }
}
