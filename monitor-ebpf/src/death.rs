//! `sched_process_exit` and `sched_process_free`: ends of threads and processes.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{ExitRecord, Kind, ReapedRecord, Rescue, TrackedProcess};

use crate::{
    address_space, charge,
    emit::{emit, now, setting},
    filter,
    kernel::{Task, is_group_dead, orphan::Reaper},
    pass::{ENDS, Pass},
    preempt::undisturbed,
    snapshot, switch, title,
};

/// A thread ends. Its process stays traced: since 6.16 its memory is given back after this.
#[btf_tracepoint(function = "sched_process_exit")]
pub(crate) fn sched_process_exit(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| exit(&ctx, Pass::First))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_exit")]
pub(crate) fn sched_process_exit_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| exit(&ctx, Pass::Second))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_exit")]
pub(crate) fn sched_process_exit_last(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| exit(&ctx, Pass::Third))
}

#[inline(always)]
fn exit(ctx: &BtfTracePointContext, pass: Pass) -> i32 {
    let task = Task::argument::<0>(ctx);
    snapshot::orphans(task);
    let pid = task.pid();
    let Some(process) = filter::of_thread(task) else {
        return 0;
    };
    if filter::flags(process) & TrackedProcess::PENDING != 0 {
        // The recorder's child gave up before it executed the command.
        filter::forget(pid);
        return 0;
    }
    if pass.is_reported(ENDS, task.tid()) {
        return 0;
    }
    switch::forget(task.tid());
    let signals = task.signals();
    let is_dead = filter::flags(process) & TrackedProcess::DEAD != 0;
    if is_dead && pass != Pass::First {
        return 0;
    }
    // Before 6.16 two threads that end at once may both find no other one alive: the first is last.
    let is_last = !is_dead && is_group_dead(ctx, signals);
    pass.count_rescue(Rescue::EXIT);
    charge::note();
    let leader = task.leader();
    let status = match signals.group_exit_code() {
        Some(code) => code,
        // Without exit_group, wait gives what the first thread passed to exit.
        None if is_last => leader.exit_code(),
        None => task.exit_code(),
    };
    if is_last {
        // Since 6.16 it still has its memory; before, there is nothing to read any more.
        title::look_as(filter::subject(process, pid, task.tid()));
    }
    let (kind, reaper) = if is_last {
        (Kind::EXIT, task.reaper())
    } else {
        // Another thread of the process gets its children.
        (Kind::THREAD_EXIT, Reaper::NOT_KNOWN)
    };
    let parent = leader.parent();
    end_given_up(task);
    let stopped_ns = if setting!(sees_switches) == 0 {
        u64::MAX
    } else {
        // SAFETY: a map value.
        unsafe { (*process).stopped_ns }
    };
    let subject = filter::subject(process, pid, task.tid());
    emit::<ExitRecord>(kind, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).cpu_ns = task.cpu_ns();
            (*record).parent_start_ns = parent.leader().start_ns();
            (*record).parent_pid = parent.pid();
            (*record).status = status;
            (*record).threads = signals.live_threads();
            (*record).reaper_pid = reaper.pid;
            (*record).reaper_start_ns = reaper.start_ns;
            (*record).first_run_ns = (*process).first_run_ns;
            (*record).stopped_ns = stopped_ns;
        }
    });
    if is_last {
        // SAFETY: a map value.
        unsafe { (*process).flags |= TrackedProcess::DEAD };
    } else {
        pass.reported(ENDS, task.tid());
    }
    0
}

/// Where no hook tells the end of an address space: the thread has given its own up before this
/// hook, and if it was the last user, all is torn down by now.
#[inline(always)]
fn end_given_up(task: Task) {
    if setting!(ends_by_counters) == 0 {
        return;
    }
    let mm = task.active_mm();
    if let Some(space) = address_space::find(mm)
        && mm.is_ending()
    {
        address_space::end(space, mm.address());
    }
}

/// A task is freed, some time after it was reaped, in any context: only the task itself can be
/// trusted. Its `signal_struct` lives until its last task is put, which comes after this.
#[btf_tracepoint(function = "sched_process_free")]
pub(crate) fn sched_process_free(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| free(&ctx, Pass::First))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_free")]
pub(crate) fn sched_process_free_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| free(&ctx, Pass::Second))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_free")]
pub(crate) fn sched_process_free_last(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| free(&ctx, Pass::Third))
}

/// The first report removes the entry, so there is no second.
#[inline(always)]
fn free(ctx: &BtfTracePointContext, pass: Pass) -> i32 {
    let task = Task::argument::<0>(ctx);
    let pid = task.pid();
    if task.tid() != pid {
        return 0;
    }
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    let subject = filter::subject(process, pid, pid);
    // The pid may be another traced process's already.
    if subject.start_ns != task.start_ns() {
        return 0;
    }
    pass.count_rescue(Rescue::FREE);
    let signals = task.signals();
    emit::<ReapedRecord>(Kind::REAPED, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).cpu_ns = signals.released_cpu_ns();
            (*record).usage = signals.released_usage();
        }
    });
    filter::forget(pid);
    0
}
