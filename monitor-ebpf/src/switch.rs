//! `sched_switch`: threads that wait for long, and when processes first run.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Kind, SleepRecord, TaskState, ThreadState};

use crate::{
    emit::{count_full, emit, now, setting},
    filter,
    kernel::{Signals, Task, watch::is_preempted},
    maps::THREADS,
};

/// A CPU goes from one thread to another. The scheduler calls this with interrupts off, so nothing can come
/// in between.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    let before = Task::argument::<1>(&ctx);
    if let Some(thread) = THREADS.get_ptr_mut(before.tid()) {
        leaves(&ctx, before, thread);
    }
    let after = Task::argument::<2>(&ctx);
    if let Some(thread) = THREADS.get_ptr_mut(after.tid()) {
        comes(after, thread);
    }
    0
}

/// A thread leaves the CPU. One that only makes room for others would go on.
#[inline(always)]
fn leaves(ctx: &BtfTracePointContext, task: Task, thread: *mut ThreadState) {
    let state = task.state_left_in(ctx) & TaskState::WAITING;
    if state == 0 || is_preempted(ctx) {
        return;
    }
    // SAFETY: a map value; the thread's own until it runs again.
    unsafe {
        (*thread).state = state;
        (*thread).call = task.call();
        (*thread).since_ns = now();
    }
}

/// A thread gets the CPU.
#[inline(always)]
fn comes(task: Task, thread: *mut ThreadState) {
    // SAFETY: a map value.
    let (since_ns, has_run) = unsafe { ((*thread).since_ns, (*thread).has_run) };
    if since_ns == 0 && has_run != 0 {
        return;
    }
    let (pid, tid) = (task.pid(), task.tid());
    let Some(process) = filter::entry(pid) else {
        return;
    };
    let now = now();
    // SAFETY: map values.
    let (state, call) = unsafe {
        if has_run == 0 {
            (*thread).has_run = 1;
            if tid == pid && (*process).first_run_ns == 0 {
                (*process).first_run_ns = now;
            }
        }
        (*thread).since_ns = 0;
        ((*thread).state, (*thread).call)
    };
    if since_ns == 0 {
        return;
    }
    let waited_ns = now.saturating_sub(since_ns);
    if tid == pid && state & TaskState::STOPPED != 0 {
        // SAFETY: a map value.
        unsafe { (*process).stopped_ns += waited_ns };
    }
    if waited_ns < setting!(sleep_ns) {
        return;
    }
    let subject = filter::subject(process, pid, tid);
    emit::<SleepRecord>(Kind::SLEEP, now, subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).since_ns = since_ns;
            (*record).state = state;
            (*record).call = call;
        }
    });
}

/// Enters a new thread, before it can run.
#[inline(always)]
pub(crate) fn enter(pid: u32, tid: u32) {
    if setting!(sees_switches) != 0 && THREADS.insert(tid, fresh(pid, 0), 0).is_err() {
        count_full(2);
    }
}

/// Enters a thread that runs already, unless it is known. What it waits for now isn't seen.
#[inline(always)]
pub(crate) fn enter_running(pid: u32, tid: u32) {
    if setting!(sees_switches) == 0 || THREADS.get_ptr(tid).is_some() {
        return;
    }
    let is_refused = THREADS.insert(tid, fresh(pid, 1), NOT_THERE).is_err();
    if is_refused && THREADS.get_ptr(tid).is_none() {
        count_full(2);
    }
}

/// Enters all threads of a process, some of which may be known.
///
/// Without a decision for each: the ways that the verifier follows would multiply with the number of threads.
#[inline(always)]
pub(crate) fn enter_all(pid: u32, signals: Signals) {
    if setting!(sees_switches) == 0 {
        return;
    }
    let mut refused = 0;
    signals.each_thread(|tid| {
        let error = THREADS
            .insert(tid, fresh(pid, 1), NOT_THERE)
            .err()
            .unwrap_or(0);
        refused |= is_zero(error.wrapping_add(NO_ROOM));
    });
    if refused != 0 {
        count_full(2);
    }
}

/// `E2BIG`, what a full table answers.
const NO_ROOM: i32 = 7;

/// 1 for 0, else 0, without a branch.
#[inline(always)]
fn is_zero(value: i32) -> u32 {
    let either = (value | value.wrapping_neg()) as u32;
    (either >> 31) ^ 1
}

#[inline(always)]
fn fresh(pid: u32, has_run: u32) -> ThreadState {
    ThreadState {
        since_ns: 0,
        pid,
        state: 0,
        call: u32::MAX,
        has_run,
        called_ns: 0,
    }
}

/// `BPF_NOEXIST`: an entry that is there stays.
const NOT_THERE: u64 = 1;

/// Forgets a thread that ends.
#[inline(always)]
pub(crate) fn forget(tid: u32) {
    if setting!(sees_switches) != 0 {
        // One that is gone already is what is wanted.
        let _gone = THREADS.remove(tid);
    }
}
