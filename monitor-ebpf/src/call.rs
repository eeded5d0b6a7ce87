//! `sys_exit` and `cgroup_attach_task`: calls that failed, sessions, control groups.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{
    CallRecord, Config, FILENAME_MAX, ForkFailedRecord, Kind, PathRecord, TrackedProcess,
};

use crate::{
    address_space::Exactness,
    creation,
    emit::{Subject, emit, fill_header, now, output_piece, setting},
    filter,
    kernel::{
        Task,
        refusal::{names_a_group, read_limits},
        system_call,
        watch::{
            call_arguments, call_result, group_hierarchy, is_compat_call, learn_registers,
            read_group_path, read_user_string,
        },
    },
    mapping,
    maps::PATHS,
    preempt::undisturbed,
    snapshot,
};

/// Results from here on up to -1 are what a call has failed with. The ones before, down to -4095, are the
/// kernel's word to itself to begin the call anew.
const LAST_ERROR: i64 = -511;

/// Room for one record with its path.
#[repr(C)]
pub(crate) struct PathRoom {
    record: PathRecord,
    path: [u8; FILENAME_MAX + 1],
}

/// A system call ends, of whomever.
#[btf_tracepoint(function = "sys_exit")]
pub(crate) fn sys_exit(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| {
        learn_registers(&ctx);
        if setting!(sees_calls) != 0 {
            ended(&ctx);
        }
        if setting!(vm_by_calls) != 0 {
            mapping::call_ended(system_call(&ctx));
        }
        0
    })
}

#[inline(always)]
fn ended(ctx: &BtfTracePointContext) {
    let result = call_result(ctx);
    let has_failed = result < 0 && result >= LAST_ERROR;
    let number = system_call(ctx);
    let is_execveat = number == setting!(calls[1]);
    let is_exec = number == setting!(calls[0]) || is_execveat;
    let is_setsid = number == setting!(calls[2]);
    let mut is_fork = false;
    macro_rules! look {
        ($($n:literal)*) => { $(is_fork |= number == setting!(calls[$n]);)* };
    }
    look!(3 4 5 6);
    if !(has_failed && (is_exec || is_fork) || !has_failed && is_setsid) {
        return;
    }
    let Some((_, subject)) = filter::current() else {
        return;
    };
    if is_compat_call() {
        return;
    }
    if is_exec {
        let (first, second) = call_arguments(ctx);
        let path = if is_execveat { second } else { first };
        send_path(Kind::EXEC_FAILED, -result as u32, subject, |into, size| {
            read_user_string(path, into, size)
        });
        return;
    }
    if is_fork {
        creation::begun(subject.tid);
        let is_clone3 = number == setting!(calls[6]);
        let is_elsewhere = is_clone3 && names_a_group(call_arguments(ctx).0);
        emit::<ForkFailedRecord>(Kind::FORK_FAILED, now(), subject, |record| {
            // SAFETY: room that was just reserved.
            unsafe {
                (*record).errno = -result as u32;
                (*record).flags = if is_elsewhere {
                    ForkFailedRecord::ELSEWHERE
                } else {
                    0
                };
                read_limits(record);
            }
        });
        return;
    }
    emit::<CallRecord>(Kind::SESSION, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).number = result as u32;
            (*record).reserved = 0;
        }
    });
}

const _: () = assert!(Config::EXECVE == 0 && Config::EXECVEAT == 1 && Config::SETSID == 2);
const _: () = assert!(Config::FORKS == 3 && Config::CLONE3 == 6);

/// A process is moved to another control group.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub(crate) fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| moved(&ctx, Exactness::Shared))
}

/// The same where counters can be read exactly, which needs so many instructions that it is only loaded for recordings
/// of control groups.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub(crate) fn cgroup_attach_task_exactly(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| moved(&ctx, Exactness::Exact))
}

/// Runs after that one, in recordings of control groups.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub(crate) fn cgroup_attach_task_threads(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| {
        snapshot::threads_moved_inside(Task::argument::<2>(&ctx));
        0
    })
}

#[inline(always)]
fn moved(ctx: &BtfTracePointContext, exactness: Exactness) -> i32 {
    let task = Task::argument::<2>(ctx);
    if setting!(groups) != 0 {
        snapshot::moved_inside(task, exactness);
    }
    let pid = task.pid();
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    if filter::flags(process) & (TrackedProcess::PENDING | TrackedProcess::DEAD) != 0 {
        return 0;
    }
    let subject = filter::subject(process, pid, task.tid());
    send_path(Kind::CGROUP, group_hierarchy(ctx), subject, |into, size| {
        read_group_path(ctx, into, size)
    });
    0
}

/// Sends a path, which `read` puts there.
#[inline(always)]
fn send_path(kind: u16, number: u32, subject: Subject, read: impl FnOnce(*mut u8, u32) -> u32) {
    let Some(room) = PATHS.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: per-CPU room; no other program that uses it can run on this CPU meanwhile. The verifier checks
    // every access to it.
    unsafe {
        let record = &raw mut (*room).record;
        let with_nul = read((&raw mut (*room).path).cast(), FILENAME_MAX as u32 + 1);
        let path_len = with_nul.saturating_sub(1) & FILENAME_MAX as u32;
        (*record).number = number;
        (*record).path_len = path_len;
        let size = size_of::<PathRecord>() as u32 + path_len;
        fill_header(record.cast(), kind, size, now(), subject);
        output_piece(kind, record.cast(), size);
    }
}
