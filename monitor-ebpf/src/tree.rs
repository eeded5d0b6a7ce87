//! Sums over the address spaces of all traced processes, each once.
//!
//! Kept here and not by who reads the records, so that the highest sum isn't limited by their resolution.
//! CPUs that change a sum at once add to it in some order; the highest sum is that of one such order.

use monitor_ebpf::abi::TreeSums;

use crate::{atomic, emit::now, maps::TREE};

/// Adds resident pages.
#[inline(always)]
pub(crate) fn rss(pages: i64) {
    if let Some(sums) = sums()
        && pages != 0
    {
        // SAFETY: a map value.
        unsafe {
            if let Some(peak) = add(&raw mut (*sums).rss, pages, (*sums).peak_rss) {
                (*sums).peak_rss = peak;
                (*sums).peak_rss_ns = now();
            }
        }
    }
}

/// Adds resident pages of which it isn't sure that they are there: they are no reason for a highest sum.
#[inline(always)]
pub(crate) fn rss_in_passing(pages: i64) {
    if let Some(sums) = sums() {
        // SAFETY: a map value.
        unsafe { atomic::add(&raw mut (*sums).rss, pages) }
    }
}

/// Adds mapped pages.
#[inline(always)]
pub(crate) fn vm(pages: i64) {
    if let Some(sums) = sums()
        && pages != 0
    {
        // SAFETY: a map value.
        unsafe {
            if let Some(peak) = add(&raw mut (*sums).vm, pages, (*sums).peak_vm) {
                (*sums).peak_vm = peak;
                (*sums).peak_vm_ns = now();
            }
        }
    }
}

#[inline(always)]
fn sums() -> Option<*mut TreeSums> {
    TREE.get_ptr_mut(0)
}

/// Adds to a sum; the sum, if it is higher than the highest before.
///
/// # Safety
/// `sum` is in a map value.
#[inline(always)]
unsafe fn add(sum: *mut i64, pages: i64, peak: i64) -> Option<i64> {
    // SAFETY: see above; other CPUs add at once.
    let sum = unsafe {
        atomic::add(sum, pages);
        sum.read_volatile()
    };
    Some(sum).filter(|sum| *sum > peak)
}
