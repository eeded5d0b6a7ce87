//! `sys_enter`: when the calls begin that make processes.
//!
//! Every system call of everybody on the host comes here, so nothing is done before its number is known to be one of four.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Config, ThreadState};

use crate::{
    emit::{now, setting},
    filter,
    kernel::watch::{entered_call, is_compat_call},
    maps::THREADS,
    preempt::undisturbed,
};

/// A system call begins, of whomever.
#[btf_tracepoint(function = "sys_enter")]
pub(crate) fn sys_enter(ctx: BtfTracePointContext) -> i32 {
    let number = entered_call(&ctx);
    let mut is_fork = false;
    macro_rules! look {
        ($($n:literal)*) => { $(is_fork |= number == setting!(calls[$n]);)* };
    }
    look!(3 4 5 6);
    if is_fork {
        return undisturbed(begins);
    }
    0
}

const _: () = assert!(Config::FORKS == 3);

#[inline(always)]
fn begins() -> i32 {
    if let Some((_, subject)) = filter::current()
        && !is_compat_call()
        && let Some(thread) = THREADS.get_ptr_mut(subject.tid)
    {
        // SAFETY: a map value; only the thread itself writes this.
        unsafe { (*thread).called_ns = now() };
    }
    0
}

/// The call of a thread has done what it was for, or failed: when it began, ns since boot, or 0 if that isn't known.
#[inline(always)]
pub(crate) fn begun(tid: u32) -> u64 {
    THREADS
        .get_ptr_mut(tid)
        .map_or(0, |thread: *mut ThreadState| {
            // SAFETY: a map value; only the thread itself writes this.
            unsafe { core::mem::replace(&mut (*thread).called_ns, 0) }
        })
}
