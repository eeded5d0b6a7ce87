//! `task_newtask` and `sched_process_fork`: new processes and threads.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use aya_log_ebpf::debug;
use monitor_ebpf::abi::{ForkRecord, Kind, Memory, Rescue, ThreadRecord, TrackedProcess};

use crate::{
    address_space::{bind, find, show_changed},
    charge, creation,
    emit::{Subject, count_full, emit, now, setting},
    filter, group,
    kernel::{Task, newtask_flags},
    pass::{BEGINS, Pass},
    preempt::undisturbed,
    snapshot, switch,
};

/// A task was made. It can't run yet: what it does is seen from its first instruction on.
///
/// This hook alone knows the flags of clone. It reports threads, and enters processes for
/// [`sched_process_fork`] to report.
#[btf_tracepoint(function = "task_newtask")]
pub(crate) fn task_newtask(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| new_task(&ctx, Pass::First))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "task_newtask")]
pub(crate) fn task_newtask_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| new_task(&ctx, Pass::Second))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "task_newtask")]
pub(crate) fn task_newtask_last(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| new_task(&ctx, Pass::Third))
}

#[inline(always)]
fn new_task(ctx: &BtfTracePointContext, pass: Pass) -> i32 {
    let task = Task::argument::<0>(ctx);
    let clone_flags = newtask_flags(ctx);
    let Some((_, creator)) = filter::current() else {
        // By somebody who isn't recorded, in a group that is.
        if task.tid() == task.pid()
            && (pass == Pass::First || filter::known(task).is_none())
            && group::has(task)
        {
            pass.count_rescue(Rescue::NEWTASK);
            filter::track(task, clone_flags);
            switch::enter(task.pid(), task.tid());
        }
        return 0;
    };
    if task.pid() != creator.pid {
        if pass == Pass::First || filter::known(task).is_none() {
            pass.count_rescue(Rescue::NEWTASK);
            filter::track(task, clone_flags);
            switch::enter(task.pid(), task.tid());
        }
        return 0;
    }
    creation::begun(creator.tid);
    if pass.is_reported(BEGINS, task.tid()) {
        return 0;
    }
    pass.count_rescue(Rescue::NEWTASK);
    switch::enter(creator.pid, task.tid());
    let subject = Subject {
        tid: task.tid(),
        ..creator
    };
    emit::<ThreadRecord>(Kind::THREAD, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).clone_flags = clone_flags;
            (*record).creator_tid = creator.tid;
            (*record).threads = task.signals().live_threads();
            task.read_comm(&raw mut (*record).comm);
        }
    });
    pass.reported(BEGINS, task.tid());
    0
}

/// A process was made; runs after [`task_newtask`], still before the child.
#[btf_tracepoint(function = "sched_process_fork")]
pub(crate) fn sched_process_fork(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| fork(&ctx, Pass::First))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_fork")]
pub(crate) fn sched_process_fork_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| fork(&ctx, Pass::Second))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_fork")]
pub(crate) fn sched_process_fork_last(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| fork(&ctx, Pass::Third))
}

#[inline(always)]
fn fork(ctx: &BtfTracePointContext, pass: Pass) -> i32 {
    let parent = Task::argument::<0>(ctx);
    let child = Task::argument::<1>(ctx);
    let pid = child.pid();
    if child.tid() != pid {
        return 0;
    }
    let Some((creator, creator_subject)) = filter::current() else {
        created_by_outsider(parent, child, pass);
        return 0;
    };
    // A stale entry of the same pid isn't the child's: `task_newtask` was skipped then.
    if filter::known(child).is_none() {
        if !filter::track(child, u64::MAX) {
            count_full(0);
            return 0;
        }
        switch::enter(pid, pid);
    }
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    // By an earlier program, or it was found before this came.
    if filter::flags(process) & TrackedProcess::CREATED != 0 {
        return 0;
    }
    pass.count_rescue(Rescue::FORK);
    charge::note();
    let (called_ns, made_ns) = (creation::begun(creator_subject.tid), now());
    let creator_mm = parent.mm();
    let (mut creator_memory, mut creator_page_tables) = (Memory::NOTHING, u64::MAX);
    let mut title = 0;
    if let Some(space) = find(creator_mm) {
        // Both sides of a fork are shown, so that what was inherited can be told.
        show_changed(space, creator_mm, creator_subject);
        // SAFETY: a map value.
        (creator_memory, title) = unsafe { ((*space).now, (*space).title) };
        creator_page_tables = creator_mm.parts().page_tables;
    }
    let child_mm = child.mm();
    let mm = {
        let is_copy = child_mm.address() != creator_mm.address();
        bind(child_mm, is_copy, is_copy)
    };
    if let Some(copy) = find(child_mm) {
        // Until it writes something else there it has what its creator has.
        // SAFETY: a map value.
        unsafe { (*copy).title = title };
    }
    // SAFETY: map values.
    let (clone_flags, old_mm) = unsafe {
        (*process).mm = mm;
        (*process).mm_address = child_mm.address();
        (*process).flags |= TrackedProcess::CREATED;
        ((*process).clone_flags, (*creator).mm)
    };
    debug!(
        ctx,
        "process {} created by {}, address space {}", pid, creator_subject.pid, mm
    );
    let subject = filter::subject(process, pid, pid);
    let (ns_pid, ns_level) = child.namespace_pid();
    emit::<ForkRecord>(Kind::FORK, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).clone_flags = clone_flags;
            (*record).mm = mm;
            (*record).old_mm = old_mm;
            (*record).creator_start_ns = creator_subject.start_ns;
            (*record).creator_pid = creator_subject.pid;
            (*record).creator_tid = creator_subject.tid;
            (*record).creator_threads = parent.signals().live_threads();
            (*record).exit_signal = child.exit_signal();
            (*record).ns_pid = ns_pid;
            (*record).ns_level = ns_level;
            (*record).memory = child_mm.memory();
            (*record).called_ns = called_ns;
            (*record).made_ns = made_ns;
            (*record).creator_memory = creator_memory;
            (*record).creator_page_tables = creator_page_tables;
            child.read_comm(&raw mut (*record).comm);
        }
    });
    0
}

/// A process was made in a control group that is recorded, by somebody who isn't: one who is still to be found, or one
/// outside of it (`CLONE_INTO_CGROUP`).
#[inline(always)]
fn created_by_outsider(parent: Task, child: Task, pass: Pass) {
    if setting!(groups) == 0 {
        return;
    }
    let pid = child.pid();
    if filter::known(child).is_none() {
        if !group::has(child) {
            return;
        }
        if !filter::track(child, u64::MAX) {
            count_full(0);
            return;
        }
        switch::enter(pid, pid);
    }
    let Some(process) = filter::entry(pid) else {
        return;
    };
    if filter::flags(process) & TrackedProcess::CREATED != 0 {
        return;
    }
    pass.count_rescue(Rescue::FORK);
    let is_copy = child.mm().address() != parent.mm().address();
    snapshot::created_inside(process, child, is_copy);
}
