//! `task_rename`: names that programs give themselves.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Kind, RenameRecord, TrackedProcess};

use crate::{
    address_space,
    emit::{emit, now},
    filter,
    kernel::{Task, current_mm, read_new_name},
    preempt::undisturbed,
    title,
};

/// A thread gets a new name, by `prctl`, by a write to `/proc/PID/comm`, or by exec.
#[btf_tracepoint(function = "task_rename")]
pub(crate) fn task_rename(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| rename(&ctx))
}

#[inline(always)]
fn rename(ctx: &BtfTracePointContext) -> i32 {
    let task = Task::argument::<0>(ctx);
    let pid = task.pid();
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    if filter::flags(process) & (TrackedProcess::PENDING | TrackedProcess::DEAD) != 0 {
        return 0;
    }
    // Exec renames too, after it has taken its new address space and before its own event, which has
    // the name and makes that address space known.
    if address_space::find(task.mm()).is_none() {
        return 0;
    }
    let subject = filter::subject(process, pid, task.tid());
    emit::<RenameRecord>(Kind::RENAME, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe { read_new_name(ctx, &raw mut (*record).comm) };
    });
    // Who gives itself a name has often just written a title: setproctitle does both.
    if current_mm() == task.mm().address() {
        title::look();
    }
    0
}
