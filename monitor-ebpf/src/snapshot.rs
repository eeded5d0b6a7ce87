//! Processes that are there before the recording begins: found by walking all tasks while the hooks are live.
//!
//! The order makes it whole. The hooks are attached first; then an iterator walks all tasks, and enters each whose
//! parent is entered, into the same tables, each process once (`BPF_NOEXIST`): whoever comes first, the walk or
//! the hook of its creation, reports it. User space has it walk again until a walk finds nobody who was there when it
//! began. Then there is nobody left to be found: of somebody who is not entered but descends from somebody who is, take
//! the uppermost; its parent was entered by an earlier walk, since what that one created afterwards was entered by the
//! hook. So it was there when this walk began, with its parent entered, and was found. (Who is created during a walk
//! may be met by it before the hook of the creation; that says nothing, and in a storm there is always somebody.)
//!
//! A process whose parent ends during the walks would lose its place: it is given to another parent. So while it is
//! walked, each thread that ends and descends from somebody who is entered has its children noted ([`orphans`]).
//!
//! Of a control group's processes ([`crate::group`]) the same holds with "is in the group" in place of "its parent is
//! entered": who is created in it, or moved there, is entered by the hooks from the first walk on, so who isn't
//! entered was there when the walk began, or descends within the group from somebody who was.
//!
//! The tables of the kernel side tell whether something happened before or after: an event of a process or an
//! address space that isn't entered is not shown; from its entry on all are, and the record of the walk has the time
//! of a moment before.

use aya_ebpf::programs::BtfTracePointContext;
use monitor_ebpf::abi::{Kind, Memory, SnapshotRecord, TrackedProcess};

use crate::{
    address_space::{self, Exactness},
    emit::{Subject, count_full, emit, now, setting},
    filter, group,
    kernel::{Mm, Task},
    maps::{CLAIMED, FOUND, TARGETS},
    preempt::undisturbed,
    switch,
};

/// One of all tasks, where counters can be read exactly (since 6.2).
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn find_tasks_exactly(ctx: *mut core::ffi::c_void) -> i32 {
    visit(ctx, Exactness::Exact)
}

/// One of all tasks, elsewhere.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn find_tasks(ctx: *mut core::ffi::c_void) -> i32 {
    visit(ctx, Exactness::Shared)
}

#[inline(always)]
fn visit(ctx: *mut core::ffi::c_void, exactness: Exactness) -> i32 {
    // `struct bpf_iter__task`: pointers to what is known of the walk, and to the task; none after the last one.
    let ctx = BtfTracePointContext::new(ctx);
    let task = Task::argument::<1>(&ctx);
    if task.is_null() {
        return 0;
    }
    undisturbed(|| look_at(task, exactness))
}

#[inline(always)]
fn look_at(task: Task, exactness: Exactness) -> i32 {
    let (pid, tid) = (task.pid(), task.tid());
    if tid != pid {
        if filter::known(task.leader()).is_some() {
            switch::enter_running(pid, tid);
        }
        return 0;
    }
    let is_entered = filter::entry(task.pid()).is_some_and(|process| {
        // The command before its exec has no start yet.
        filter::flags(process) & TrackedProcess::PENDING != 0
            || filter::start_ns(process) == task.start_ns()
    });
    if !is_entered && is_wanted(task) && task.signals().live_threads() > 0 {
        find(task, exactness);
    }
    if filter::known(task).is_some() {
        switch::enter_running(pid, tid);
    }
    0
}

/// Whether it is to be recorded.
#[inline(always)]
fn is_wanted(task: Task) -> bool {
    let pid = task.pid();
    let parent = task.parent().leader();
    if setting!(whole_host) != 0 {
        let recorder = setting!(recorder_tid);
        return !task.is_kernel_thread() && pid != recorder && parent.pid() != recorder;
    }
    if setting!(groups) != 0 {
        return group::has(task);
    }
    TARGETS.get_ptr(pid).is_some() || filter::known(parent).is_some() || is_claimed(task)
}

/// Whether it was the child of one who is wanted, and has lost that parent.
#[inline(always)]
fn is_claimed(task: Task) -> bool {
    // SAFETY: a map value.
    CLAIMED
        .get_ptr(task.pid())
        .is_some_and(|start_ns| unsafe { *start_ns == task.start_ns() })
}

#[inline(always)]
fn find(task: Task, exactness: Exactness) {
    let pid = task.pid();
    let time_ns = now();
    let flags = TrackedProcess::CREATED;
    match filter::enter(task, u64::MAX, flags) {
        filter::Entered::Now => {}
        // Its creation has just been reported.
        filter::Entered::Before => return,
        filter::Entered::NoRoom => {
            count_full(0);
            return;
        }
    }
    let Some(process) = filter::entry(pid) else {
        return;
    };
    if task.start_ns() < walking_since()
        && let Some(found) = FOUND.get_ptr_mut(0)
    {
        // SAFETY: a map value, which only the walk writes.
        unsafe { *found += 1 };
    }
    let (mut mm, memory) = enter_space(task, exactness);
    // SAFETY: a map value.
    unsafe {
        if (*process).mm == 0 {
            (*process).mm = mm;
            (*process).mm_address = task.mm().address();
        } else {
            // It has executed another program meanwhile, which tells its own address space.
            mm = 0;
        }
    }
    show(task, time_ns, mm, memory);
}

/// Tells of a process that has been entered without its creation having been seen.
#[inline(always)]
fn show(task: Task, time_ns: u64, mm: u64, memory: Memory) {
    let pid = task.pid();
    let parent = task.parent().leader();
    let subject = Subject {
        start_ns: task.start_ns(),
        pid,
        tid: pid,
    };
    let (ns_pid, ns_level) = task.namespace_pid();
    emit::<SnapshotRecord>(Kind::SNAPSHOT, time_ns, subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).mm = mm;
            (*record).parent_start_ns = parent.start_ns();
            (*record).parent_pid = parent.pid();
            // Read after it was entered: if somebody is alive now, the end is still to be seen.
            (*record).threads = task.signals().live_threads();
            (*record).is_forked = u32::from(task.has_only_forked());
            (*record).ns_pid = ns_pid;
            (*record).ns_level = ns_level;
            (*record).reserved = 0;
            (*record).memory = memory;
            task.read_comm(&raw mut (*record).comm);
        }
    });
}

/// Tells of a process that is created in a control group which is recorded, by somebody who isn't. It has been entered,
/// and doesn't run yet.
#[inline(always)]
pub(crate) fn created_inside(process: *mut TrackedProcess, child: Task, is_copy: bool) {
    let space = child.mm();
    let mm = address_space::bind(space, is_copy, is_copy);
    // SAFETY: a map value.
    unsafe {
        (*process).mm = mm;
        (*process).mm_address = space.address();
        (*process).flags |= TrackedProcess::CREATED;
    }
    show(child, now(), mm, space.memory());
}

/// Enters a process that was moved into a control group which is recorded.
#[inline(always)]
pub(crate) fn moved_inside(task: Task, exactness: Exactness) {
    if task.tid() == task.pid()
        && filter::known(task).is_none()
        && group::has(task)
        && task.signals().live_threads() > 0
    {
        find(task, exactness);
    }
}

/// Enters the threads of such a process. A program of its own, since one that does both is too large for the verifier.
#[inline(always)]
pub(crate) fn threads_moved_inside(task: Task) {
    let pid = task.pid();
    if task.tid() == pid && filter::known(task).is_some() {
        switch::enter_all(pid, task.signals());
    }
}

/// Enters its address space: number and state.
#[inline(always)]
fn enter_space(task: Task, exactness: Exactness) -> (u64, Memory) {
    const NOTHING: (u64, Memory) = (0, Memory::NOTHING);
    let mm = task.mm();
    if mm.address() == 0 {
        return NOTHING;
    }
    let is_known = address_space::find(mm).is_some();
    let id = address_space::bind(mm, false, false);
    let Some(space) = address_space::find(mm) else {
        return NOTHING;
    };
    if !is_known && is_given_up(task, mm) {
        // Its end may have come before the entry, and won't come again.
        address_space::withdraw(space, mm.address());
        return NOTHING;
    }
    if !is_known {
        // What changed between the first look and the entry was shown to nobody.
        address_space::look_again(space, mm, exactness);
    }
    // SAFETY: a map value.
    (id, unsafe { (*space).now })
}

/// As long as it has it, nobody tears it down.
#[inline(always)]
fn is_given_up(task: Task, mm: Mm) -> bool {
    task.mm().address() != mm.address()
}

/// Notes the children of a thread that ends while it is walked, if it descends from somebody who is wanted: the
/// kernel is about to give them to another parent.
#[inline(always)]
pub(crate) fn orphans(task: Task) {
    // A group is nothing that one loses with a parent.
    if setting!(attaches) == 0 || setting!(whole_host) != 0 || setting!(groups) != 0 {
        return;
    }
    if !task.shows_children() || walking_since() == 0 || !descends(task) {
        return;
    }
    task.each_child(|pid, start_ns| {
        if CLAIMED.insert(pid, start_ns, 0).is_err() {
            count_full(0);
        }
    });
}

/// When the present walk began, ns since boot; 0 if there is none.
#[inline(always)]
fn walking_since() -> u64 {
    // SAFETY: a map value.
    FOUND.get_ptr(1).map_or(0, |since| unsafe { *since })
}

/// Whether it, or one that it descends from, is wanted: who ends may not have been walked to yet.
#[inline(always)]
fn descends(task: Task) -> bool {
    let mut at = task.leader();
    for _ in 0..GENERATIONS {
        if TARGETS.get_ptr(at.pid()).is_some() || filter::known(at).is_some() || is_claimed(at) {
            return true;
        }
        if at.pid() <= 1 {
            return false;
        }
        at = at.parent().leader();
    }
    false
}

/// How far up somebody who is wanted is looked for.
const GENERATIONS: u32 = 16;
