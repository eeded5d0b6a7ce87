//! `page_fault_user` and `page_fault_kernel`: copies on write, which change no counter.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::Config;

use crate::{
    address_space::{came, show, wrote},
    emit::setting,
    filter,
    kernel::{current_mm, error_code, mapped_at},
    maps::ADDRESS_SPACES,
    preempt::undisturbed,
};

/// Bits of x86's error code (`arch/x86/include/asm/trap_pf.h`, unchanged from 5.10 to 7.2).
const PRESENT: u64 = 1;
const WRITE: u64 = 1 << 1;
const PROTECTION_KEY: u64 = 1 << 5;

/// A program touched a page that it can't use as it is.
#[btf_tracepoint(function = "page_fault_user")]
pub(crate) fn page_fault_user(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| fault(&ctx))
}

/// The kernel did so for a program: reading a file into its memory, for example.
#[btf_tracepoint(function = "page_fault_kernel")]
pub(crate) fn page_fault_kernel(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| fault(&ctx))
}

#[inline(always)]
fn fault(ctx: &BtfTracePointContext) -> i32 {
    let code = error_code(ctx) & (PRESENT | WRITE | PROTECTION_KEY);
    // Half of them would be worse than none.
    let is_write = code == PRESENT | WRITE && setting!(faults) & Config::SEES_WRITES != 0;
    let is_new = code & PRESENT == 0 && setting!(faults) & Config::COUNTS_PAGES != 0;
    // Most faults are neither.
    if !is_write && !is_new {
        return 0;
    }
    let mm = current_mm();
    let Some(space) = ADDRESS_SPACES.get_ptr_mut(mm) else {
        return 0;
    };
    let is_due = if is_write {
        wrote(space)
    } else {
        came(space, 1)
    };
    if is_due && let Some((_, subject)) = filter::current() {
        let (_, parts) = mapped_at(mm);
        show(space, parts, subject);
    }
    0
}
