//! Parts that CPUs keep to themselves of counters (`struct percpu_counter`).
//!
//! The kernel finds a CPU's part by adding that CPU's offset to an address. Where it keeps these offsets
//! isn't told to programs, but it tells where each CPU's part of a map is, and the map knows the address
//! that stands for all of them: the difference is the offset.

use aya_ebpf::{
    helpers::generated::{bpf_map_lookup_percpu_elem, bpf_probe_read_kernel},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};

use monitor_ebpf::abi::MOST_CPUS;

use crate::{
    emit::setting,
    kernel::{array_pptrs, current_ids},
    maps::{ARRAY_BYTES, ARRAY_COPY, CPU_CELL, CPU_OFFSETS},
    preempt::undisturbed,
};

/// Finds the offsets. The recorder renames itself once, to have this run.
///
/// `bpf_map_lookup_percpu_elem` is there since 5.19, counters with parts since 6.2.
#[btf_tracepoint(function = "task_rename")]
pub(crate) fn cpu_offsets(_: BtfTracePointContext) -> i32 {
    undisturbed(find_offsets)
}

#[inline(always)]
fn find_offsets() -> i32 {
    if current_ids().1 != setting!(recorder_tid) {
        return 0;
    }
    let Some(common) = common_address() else {
        return 0;
    };
    let key = 0_u32;
    let Some(offsets) = CPU_OFFSETS.get_ptr_mut(0) else {
        return 0;
    };
    for cpu in 0..MOST_CPUS {
        if cpu >= setting!(cpus) {
            break;
        }
        // SAFETY: a map that is there, its only key, and a map value. The verifier doesn't let a pointer be
        // subtracted from, but what was written to a map is a number.
        unsafe {
            let part = bpf_map_lookup_percpu_elem(
                (&raw const CPU_CELL).cast_mut().cast(),
                (&raw const key).cast(),
                cpu,
            );
            if part.is_null() {
                continue;
            }
            let slot = offsets.cast::<u64>().add(cpu as usize);
            core::ptr::write_volatile(slot, part as u64);
            let address = core::ptr::read_volatile(slot);
            core::ptr::write_volatile(slot, address.wrapping_sub(common));
        }
    }
    0
}

/// The address that stands for all CPUs' parts of [`CPU_CELL`].
#[inline(always)]
fn common_address() -> Option<u64> {
    let copy = ARRAY_COPY.get_ptr_mut(0)?;
    let pptrs = array_pptrs();
    if pptrs as usize > ARRAY_BYTES - 8 {
        return None;
    }
    // SAFETY: a map value with room for that much; a fault leaves zeroes.
    unsafe {
        bpf_probe_read_kernel(copy.cast(), pptrs + 8, (&raw const CPU_CELL).cast());
        let address = copy.cast::<u8>().add(pptrs as usize).cast::<u64>();
        Some(core::ptr::read_volatile(address)).filter(|address| *address != 0)
    }
}
