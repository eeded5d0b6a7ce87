//! Control groups whose processes are recorded: who is in one, who comes into one, and those that are yet to be made.
//!
//! A process belongs to the group that its first thread is in. It is entered when it is found there by the walk
//! ([`crate::snapshot`]), when it is created there, by whomever, or when it is moved there; from then on it is like any
//! other that is recorded, and stays so wherever it is moved. A move is shown after the process is in the group, and
//! what it creates in between is in the group itself: so nobody is missed.
//!
//! A group that isn't there yet is known by its path, or by its name alone. The kernel shows that it is made before
//! anybody can be in it.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{ANY_HIERARCHY, GROUP_PATH};

use crate::{
    emit::{count_full, setting},
    kernel::{
        Task,
        group::{Group, read_path},
    },
    maps::{GROUP_ROOM, GROUPS, HIERARCHY, MADE_GROUP, WANTED_GROUPS},
    preempt::undisturbed,
};

/// Levels of a hierarchy that are gone up.
const MOST_LEVELS: u32 = 32;

/// Whether it is in a group that is recorded. The recorder and what it starts never are.
#[inline(always)]
pub(crate) fn has(task: Task) -> bool {
    if setting!(groups) == 0 {
        return false;
    }
    let recorder = setting!(recorder_tid);
    if task.pid() == recorder || task.parent().pid() == recorder || task.is_kernel_thread() {
        return false;
    }
    let Some(hierarchy) = hierarchy() else {
        return false;
    };
    let Some(mut group) = task.leader().group(hierarchy) else {
        return false;
    };
    for _ in 0..MOST_LEVELS {
        if GROUPS.get_ptr(group.id()).is_some() {
            return true;
        }
        let Some(parent) = group.parent() else {
            return false;
        };
        group = parent;
    }
    false
}

/// Number of the hierarchy in which there are groups that are recorded.
#[inline(always)]
fn hierarchy() -> Option<u32> {
    // SAFETY: a map value.
    let plus_one = unsafe { *HIERARCHY.get_ptr(0)? };
    (plus_one != 0).then(|| plus_one - 1)
}

/// A control group was made; nobody is in it yet. The kernel makes one at a time.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub(crate) fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| made(&ctx))
}

#[inline(always)]
fn made(ctx: &BtfTracePointContext) -> i32 {
    let group = Group::argument(ctx);
    let number = group.hierarchy();
    if hierarchy().is_some_and(|chosen| chosen != number) {
        return 0;
    }
    let Some(room) = GROUP_ROOM.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: per-CPU room; no other program that uses it can run on this CPU meanwhile.
    let is_wanted = unsafe {
        *room = [0; GROUP_PATH];
        read_path(ctx, room.cast());
        is_meant(room, number) || {
            *room = [0; GROUP_PATH];
            group.read_name(room.cast());
            is_meant(room, number)
        }
    };
    if !is_wanted {
        return 0;
    }
    if GROUPS.insert(group.id(), 1, 0).is_err() {
        count_full(0);
        return 0;
    }
    if hierarchy().is_none()
        && let Some(path) = MADE_GROUP.get_ptr_mut(0)
        && let Some(chosen) = HIERARCHY.get_ptr_mut(0)
    {
        // SAFETY: map values.
        unsafe {
            read_path(ctx, path.cast());
            *chosen = number + 1;
        }
    }
    0
}

/// Whether that path or name is waited for in this hierarchy.
#[inline(always)]
fn is_meant(name: *const [u8; GROUP_PATH], number: u32) -> bool {
    // SAFETY: per-CPU room.
    let Some(wanted) = WANTED_GROUPS.get_ptr(unsafe { &*name }) else {
        return false;
    };
    // SAFETY: a map value.
    let wanted = unsafe { *wanted };
    wanted == ANY_HIERARCHY || wanted == number
}
