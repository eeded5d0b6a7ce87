//! `signal_generate`: who sends which signal to whom.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Kind, SignalInfo, SignalRecord, TrackedProcess};

use crate::{
    emit::{emit, now},
    filter,
    kernel::{
        Task, current_ids,
        watch::{is_group_signal, read_current, signal_info, signal_number, signal_result},
    },
    preempt::undisturbed,
};

const SIGCHLD: u32 = 17;
const SIGURG: u32 = 23;
const SIGWINCH: u32 = 28;
/// `si_code` of a timer's signal.
const SI_TIMER: i32 = -2;
const DELIVERED: u32 = 0;
const DELIVERED_BARE: u32 = 4;

/// A signal is sent, by whoever runs.
#[btf_tracepoint(function = "signal_generate")]
pub(crate) fn signal_generate(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| sent(&ctx))
}

#[inline(always)]
fn sent(ctx: &BtfTracePointContext) -> i32 {
    let signal = signal_number(ctx);
    // Nobody dies of these, and they are many.
    if signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH {
        return 0;
    }
    let result = signal_result(ctx);
    if result != DELIVERED && result != DELIVERED_BARE {
        return 0;
    }
    let task = Task::argument::<2>(ctx);
    let pid = task.pid();
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    if filter::flags(process) & (TrackedProcess::PENDING | TrackedProcess::DEAD) != 0 {
        return 0;
    }
    let (info, code) = signal_info(ctx);
    let is_own_timer = info == SignalInfo::CODE && (code > 0 || code == SI_TIMER);
    // A profiler's timer, a runtime's page faults: what a program has asked for is no news.
    if (info == SignalInfo::KERNEL || is_own_timer) && task.handles(signal) {
        return 0;
    }
    let (current_pid, current_tid) = current_ids();
    let group = u32::from(is_group_signal(ctx));
    let subject = filter::subject(process, pid, task.tid());
    emit::<SignalRecord>(Kind::SIGNAL, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            read_current(
                &raw mut (*record).current_start_ns,
                &raw mut (*record).current_comm,
            );
            (*record).current_pid = current_pid;
            (*record).current_tid = current_tid;
            (*record).signal = signal;
            (*record).code = code;
            (*record).info = info;
            (*record).group = group;
        }
    });
    0
}
