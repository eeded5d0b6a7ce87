//! Victims of the OOM killer: who, their memory, and the limit that they have run into.
//!
//! By `bpf_probe_read_kernel` throughout: a victim is rare, and 5.10 gives no pointer that the
//! verifier knows.

use aya_ebpf::programs::BtfTracePointContext;
use monitor_ebpf::abi::{CGROUP_NAME, Memory, absent};

use super::{Mm, Task, argument_at, frozen, read_string, word_at};
use crate::maps::layout;

/// Most control groups between a victim's and the top that are looked at.
const LEVELS: u32 = 16;

/// Pages from which on a limit is none: with pages of 4 KiB, `PAGE_COUNTER_MAX` in `include/linux/page_counter.h`.
const UNLIMITED: u64 = (1 << 51) - 1;

/// Whom `mark_victim` names.
pub(crate) enum Victim {
    /// A thread of it, with the address space that is to be freed (since 6.1, in Debian's kernels).
    Task { pid: u32, mm: Mm },
    /// Only a thread's id: of the first one that still has its memory, so usually the process's own.
    Thread(u32),
}

/// The victim.
#[inline(always)]
pub(crate) fn victim(ctx: &BtfTracePointContext) -> Victim {
    if absent(at!(oom.arg_task)) {
        return Victim::Thread(argument_at(ctx, at!(oom.arg_pid)) as u32);
    }
    let task = Task(argument_at(ctx, at!(oom.arg_task)) as *const u8);
    Victim::Task {
        pid: task.pid(),
        mm: task.mm(),
    }
}

/// A limit of a control group: a map value, since what lies in a map the verifier doesn't follow
/// through all turns of a loop.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    /// Pages that are left of it; `u64::MAX`: no limit was found.
    left: u64,
    /// Pages; `u64::MAX`: none was found.
    pub(crate) pages: u64,
    /// `page_counter` for memory of its control group; 0: none was found.
    counter: u64,
    /// From such a counter to the one for memory and swap; 0: there is none.
    to_memsw: u64,
}

impl Mm {
    /// One that is known by its address only, and may be looked up or read from by [`Mm::probed`].
    #[inline(always)]
    pub(crate) fn at(address: u64) -> Self {
        Self(address as *const u8)
    }

    /// All of it now, also where the verifier doesn't know the pointer.
    #[inline(always)]
    pub(crate) fn probed(self) -> Memory {
        Memory {
            rss: self.counters(),
            total_vm: word_at(self.address(), at!(mm_total_vm)),
        }
    }

    /// Finds the limit above it that is nearest to being used up, of equal ones the innermost.
    ///
    /// The kernel kills for a group only while less than the wanted pages are left of its limit
    /// (`mem_cgroup_out_of_memory` in `mm/memcontrol.c`, 5.10 to 7.2), so that it is this one.
    #[inline(always)]
    pub(crate) fn find_nearest_limit(self, nearest: *mut Limit) {
        // SAFETY: a map value.
        unsafe {
            *nearest = Limit {
                left: u64::MAX,
                pages: u64::MAX,
                counter: 0,
                to_memsw: 0,
            };
        }
        // The last one that is looked up: where it is, so are the ones before.
        if absent(at!(oom.kernfs_name)) || self.address() == 0 {
            return;
        }
        let owner = word_at(self.address(), at!(oom.mm_owner));
        let css = word_at(
            word_at(owner, at!(oom.task_cgroups)),
            at!(oom.css_set_memory),
        );
        if owner == 0 || css == 0 {
            return;
        }
        let group = css.wrapping_sub(u64::from(at!(oom.memcg_css)));
        let root = word_at(word_at(css, at!(oom.css_cgroup)), at!(oom.cgroup_root));
        // Version 2 has another counter in the same place, of swap alone.
        if word_at(root, at!(oom.hierarchy_id)) as u32 != 0 {
            let memsw = u64::from(at!(oom.memcg_memsw));
            // SAFETY: a map value.
            unsafe {
                (*nearest).to_memsw = memsw.wrapping_sub(u64::from(at!(oom.memcg_memory)));
            }
        }
        let mut counter = group.wrapping_add(u64::from(at!(oom.memcg_memory)));
        for _ in 0..LEVELS {
            // SAFETY: a map value.
            let to_memsw = unsafe { core::ptr::read_volatile(&raw const (*nearest).to_memsw) };
            consider(nearest, counter, counter);
            consider(nearest, counter.wrapping_add(to_memsw), counter);
            counter = word_at(counter, at!(oom.counter_parent));
            if counter == 0 {
                break;
            }
        }
    }
}

impl Limit {
    /// Copies the name of its control group: the last part of the folder's path.
    #[inline(always)]
    pub(crate) fn read_name(self, into: *mut [u8; CGROUP_NAME]) {
        // SAFETY: the caller's room.
        unsafe { *into = [0; CGROUP_NAME] };
        if self.counter == 0 {
            return;
        }
        let group = self.counter.wrapping_sub(u64::from(at!(oom.memcg_memory)));
        let css = group.wrapping_add(u64::from(at!(oom.memcg_css)));
        let node = word_at(word_at(css, at!(oom.css_cgroup)), at!(oom.cgroup_kn));
        let name = word_at(node, at!(oom.kernfs_name)) as *const u8;
        // What can't be read is an empty name.
        let _length = read_string(name, into.cast(), CGROUP_NAME as u32);
    }
}

/// Keeps the limit of a `page_counter` if less is left of it than of the nearest one so far.
#[inline(always)]
fn consider(nearest: *mut Limit, limited: u64, counter: u64) {
    let pages = word_at(limited, at!(oom.counter_max));
    let left = pages.saturating_sub(word_at(limited, at!(oom.counter_usage)));
    // SAFETY: a map value.
    unsafe {
        if pages < UNLIMITED && left < (*nearest).left {
            (*nearest).left = left;
            (*nearest).pages = pages;
            (*nearest).counter = counter;
        }
    }
}
