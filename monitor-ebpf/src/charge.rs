//! What the memory controller charges the command's control group: each page once, whoever maps it.
//!
//! It is read at the events of traced processes. What is charged between two of them (pages that `read` puts into the
//! page cache) is seen at the next one.

use monitor_ebpf::abi::ChargeState;

use crate::{
    emit::now,
    kernel::{Task, charge::counted},
    maps::CHARGE,
};

/// Says that the charge isn't known.
const NOT_KNOWN: u64 = u64::MAX;

/// Takes the group that a task is in as the command's, for good: a descendant that goes to another group must not
/// bring that one's charge in.
#[inline(always)]
pub(crate) fn fix(task: Task) {
    let Some(state) = state() else { return };
    // SAFETY: a map value.
    unsafe {
        if (*state).wanted == 0 || (*state).counter != 0 {
            return;
        }
        let counter = task.memory_counter();
        if counter != 0 {
            (*state).start = counted(counter);
            (*state).counter = counter;
        }
    }
    note();
}

/// Reads the charge, and keeps it if it is the highest so far. Pages; `u64::MAX`: not known.
///
/// Of two CPUs that find a new peak at once the lower one may win: the kernel's own peak, which is read at the end,
/// has no such gap.
#[inline(always)]
pub(crate) fn note() -> u64 {
    let Some(state) = state() else {
        return NOT_KNOWN;
    };
    // SAFETY: a map value.
    unsafe {
        let counter = (*state).counter;
        if counter == 0 {
            return NOT_KNOWN;
        }
        let pages = counted(counter);
        if pages > (*state).peak {
            (*state).peak = pages;
            (*state).peak_ns = now();
        }
        pages
    }
}

#[inline(always)]
fn state() -> Option<*mut ChargeState> {
    CHARGE.get_ptr_mut(0)
}
