//! What signals, system calls and switches tell.

use aya_ebpf::{
    helpers::generated::{bpf_get_current_task, bpf_probe_read_kernel, bpf_probe_read_user_str},
    programs::BtfTracePointContext,
};
use monitor_ebpf::abi::{COMM_LEN, SignalInfo, absent};

use super::{Task, argument, argument_at, frozen, read_string, word_at};
use crate::maps::{CPU_CELL, REGISTERS, layout};

/// Up to here the code of a signal is read.
const INFO_BYTES: usize = 16;

impl Task {
    /// State in which it leaves the CPU at `sched_switch`, told by the hook since 5.18.
    #[inline(always)]
    pub(crate) fn state_left_in(self, ctx: &BtfTracePointContext) -> u32 {
        let n = at!(watch.arg_prev_state);
        if absent(n) {
            load!(self.0, watch.task_state as u32)
        } else {
            argument_at(ctx, n) as u32
        }
    }

    /// Its pid in its own pid namespace, and how deep that is below the first one.
    #[inline(always)]
    pub(crate) fn namespace_pid(self) -> (u32, u32) {
        if absent(at!(watch.upid_size)) {
            return (self.tid(), 0);
        }
        let pid = word_at(self.0 as u64, at!(watch.task_thread_pid));
        let level = word_at(pid, at!(watch.pid_level)) as u32;
        if level == 0 {
            return (self.tid(), 0);
        }
        let place = at!(watch.pid_numbers) + level * at!(watch.upid_size);
        (word_at(pid, place) as u32, level)
    }

    /// Number of the system call that it is in; `u32::MAX`: in none, or not known.
    #[inline(always)]
    pub(crate) fn call(self) -> u32 {
        let Some(place) = REGISTERS.get(0).copied().filter(|place| *place != 0) else {
            return u32::MAX;
        };
        let stack = load!(self.0, watch.task_stack as u64);
        word_at(stack.wrapping_add(place), at!(regs_syscall)) as u32
    }

    /// Whether it handles a signal itself, or ignores it.
    #[inline(always)]
    pub(crate) fn handles(self, signal: u32) -> bool {
        if absent(at!(watch.action_handler)) {
            return false;
        }
        let actions = word_at(self.0 as u64, at!(watch.task_sighand));
        let place = at!(watch.sighand_action)
            + (signal.wrapping_sub(1) & 63) * at!(watch.action_size)
            + at!(watch.action_handler);
        // SIG_DFL is 0.
        actions != 0 && word_at(actions, place) != 0
    }
}

/// What a signal was sent with, one of [`SignalInfo`], and its code.
///
/// Not by direct loads: the pointer may be one of two small numbers, and where the kernel promises it to be
/// good, the verifier doesn't guard the load.
#[inline(always)]
pub(crate) fn signal_info(ctx: &BtfTracePointContext) -> (u32, i32) {
    let info = argument::<1>(ctx);
    let place = at!(watch.siginfo_code) as usize;
    if info <= 1 {
        let info = if info == 0 {
            SignalInfo::NONE
        } else {
            SignalInfo::KERNEL
        };
        return (info, 0);
    }
    let mut bytes = [0_u32; INFO_BYTES / 4];
    // SAFETY: a fault leaves zeroes.
    unsafe { bpf_probe_read_kernel((&raw mut bytes).cast(), INFO_BYTES as u32, info as *const _) };
    // The code is the third number on x86 and arm, of which the layout has made sure.
    (
        SignalInfo::CODE,
        if place == 8 { bytes[2] as i32 } else { 0 },
    )
}

/// Which signal is sent.
#[inline(always)]
pub(crate) fn signal_number(ctx: &BtfTracePointContext) -> u32 {
    argument::<0>(ctx) as u32
}

/// Whether it is for the whole process.
#[inline(always)]
pub(crate) fn is_group_signal(ctx: &BtfTracePointContext) -> bool {
    argument::<3>(ctx) as u32 != 0
}

/// What became of it: 0 delivered, 4 delivered without its information, else nothing
/// (`TRACE_SIGNAL_*` in `include/trace/events/signal.h`).
#[inline(always)]
pub(crate) fn signal_result(ctx: &BtfTracePointContext) -> u32 {
    argument::<4>(ctx) as u32
}

/// Start of the running process, ns since boot, and the running thread's name.
#[inline(always)]
pub(crate) fn read_current(start_ns: *mut u64, comm: *mut [u8; COMM_LEN]) {
    // SAFETY: a helper without arguments; a fault zero-fills the caller's room.
    unsafe {
        let task = bpf_get_current_task();
        let leader = word_at(task, at!(task_group_leader));
        *start_ns = word_at(leader, at!(task_start_boottime));
        let from = task.wrapping_add(u64::from(at!(task_comm))) as *const _;
        bpf_probe_read_kernel(comm.cast(), COMM_LEN as u32, from);
    }
}

/// Whether `sched_switch` takes the CPU from a thread that would go on.
#[inline(always)]
pub(crate) fn is_preempted(ctx: &BtfTracePointContext) -> bool {
    argument::<0>(ctx) as u8 != 0
}

/// Number of the system call that begins at `sys_enter`.
#[inline(always)]
pub(crate) fn entered_call(ctx: &BtfTracePointContext) -> u32 {
    argument::<1>(ctx) as u32
}

/// What a system call returns at `sys_exit`.
#[inline(always)]
pub(crate) fn call_result(ctx: &BtfTracePointContext) -> i64 {
    argument::<1>(ctx) as i64
}

/// First and second argument of the system call that ends.
#[inline(always)]
pub(crate) fn call_arguments(ctx: &BtfTracePointContext) -> (u64, u64) {
    let regs = argument::<0>(ctx);
    (
        word_at(regs, at!(watch.regs_first)),
        word_at(regs, at!(watch.regs_second)),
    )
}

/// Whether the running thread is in a system call of a 32-bit program, whose numbers mean something else
/// (`TS_COMPAT` in `arch/x86/include/asm/thread_info.h`).
#[inline(always)]
pub(crate) fn is_compat_call() -> bool {
    const TS_COMPAT: u64 = 2;
    let place = at!(watch.task_status);
    // SAFETY: a helper without arguments.
    !absent(place) && word_at(unsafe { bpf_get_current_task() }, place) & TS_COMPAT != 0
}

/// Learns where a thread's stack has the registers of its system call: in the same place for all threads,
/// which depends on the kernel's configuration and on the processor.
#[inline(always)]
pub(crate) fn learn_registers(ctx: &BtfTracePointContext) {
    let Some(place) = REGISTERS.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: a map value. It is there from the second call on, on this host's every system call.
    if unsafe { core::ptr::read_volatile(place) } != 0 {
        return;
    }
    let Some(cell) = CPU_CELL.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: map values. The verifier doesn't let a pointer be subtracted from, but what was written to a map
    // is a number.
    unsafe {
        core::ptr::write_volatile(cell, argument::<0>(ctx));
        let regs = core::ptr::read_volatile(cell);
        let stack = word_at(bpf_get_current_task(), at!(watch.task_stack));
        if stack != 0 {
            core::ptr::write_volatile(place, regs.wrapping_sub(stack));
        }
    }
}

/// Copies a string of the running process of at most `size - 1` bytes; its length with NUL, 0 on a fault.
#[inline(always)]
pub(crate) fn read_user_string(from: u64, into: *mut u8, size: u32) -> u32 {
    // SAFETY: the verifier checks that `into` has room for `size` bytes.
    let length = unsafe { bpf_probe_read_user_str(into.cast(), size, from as *const _) };
    if length > 0 { length as u32 } else { 0 }
}

/// Copies the path of the control group that `cgroup_attach_task` names; its length with NUL.
#[inline(always)]
pub(crate) fn read_group_path(ctx: &BtfTracePointContext, into: *mut u8, size: u32) -> u32 {
    read_string(argument::<1>(ctx) as *const u8, into, size)
}

/// Number of the hierarchy of that group, 0 for version 2; `u32::MAX`: not known.
#[inline(always)]
pub(crate) fn group_hierarchy(ctx: &BtfTracePointContext) -> u32 {
    if absent(at!(oom.hierarchy_id)) {
        return u32::MAX;
    }
    let root = word_at(argument::<0>(ctx), at!(oom.cgroup_root));
    word_at(root, at!(oom.hierarchy_id)) as u32
}
