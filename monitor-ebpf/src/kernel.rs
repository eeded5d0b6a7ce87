//! Reads of kernel memory. Nothing else on the BPF side looks into a kernel struct.
//!
//! Typed pointers that a tp_btf program gets (its arguments, and what is loaded through them) are
//! read directly: the verifier turns that into a load that yields 0 on a fault, and the offsets are
//! constants to it since they come from frozen read-only data. That costs a third of
//! `bpf_probe_read_kernel`, which serves where the verifier doesn't know the type.

use aya_ebpf::{
    EbpfContext,
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{
            bpf_get_current_task, bpf_probe_read_kernel, bpf_probe_read_kernel_str,
            bpf_probe_read_user,
        },
    },
    programs::BtfTracePointContext,
};
use monitor_ebpf::abi::{COMM_LEN, Memory, Parts, absent};

use crate::maps::layout;

/// A field of the frozen layout.
macro_rules! at {
    ($($field:ident).+) => {
        frozen(&layout().$($field).+)
    };
}

/// Reads a frozen value: volatile, since user space rewrites it before loading.
#[inline(always)]
fn frozen(value: &u32) -> u32 {
    // SAFETY: a reference is valid.
    unsafe { core::ptr::read_volatile(value) }
}

/// Loads a `$ty` at the offset that the layout's `$field` names.
macro_rules! load {
    ($base:expr, $($field:ident).+ as $ty:ty) => {
        // SAFETY: the verifier checks the pointer's type and makes the load safe against faults.
        unsafe { core::ptr::read_volatile($base.add(at!($($field).+) as usize).cast::<$ty>()) }
    };
}

// Behind the macros, which they use.
pub(crate) mod charge;
mod counter;
pub(crate) mod group;
pub(crate) mod oom;
pub(crate) mod orphan;
pub(crate) mod path;
pub(crate) mod refusal;
pub(crate) mod title;
mod usage;
pub(crate) mod watch;

/// Argument `N` of the tracepoint, as the verifier knows it.
///
/// In assembly: LLVM turns a choice between two such loads into one load from a computed place,
/// which the verifier refuses ("dereference of modified ctx ptr").
#[inline(always)]
fn argument<const N: usize>(ctx: &BtfTracePointContext) -> u64 {
    let value: u64;
    // SAFETY: the verifier checks that the tracepoint has that many arguments.
    unsafe {
        core::arch::asm!(
            "{value} = *(u64 *)({context} + {offset})",
            value = out(reg) value,
            context = in(reg) ctx.as_ptr(),
            offset = const N * 8,
            options(nostack, readonly, preserves_flags),
        );
    }
    value
}

/// An argument whose number differs between kernels.
///
/// Each number has a load of its own; the frozen layout leaves one of them to be verified.
#[inline(always)]
fn argument_at(ctx: &BtfTracePointContext, n: u32) -> u64 {
    match n {
        0 => argument::<0>(ctx),
        1 => argument::<1>(ctx),
        2 => argument::<2>(ctx),
        3 => argument::<3>(ctx),
        _ => 0,
    }
}

/// A `task_struct` that the verifier knows as one.
#[derive(Clone, Copy)]
pub(crate) struct Task(*const u8);

/// An `mm_struct` that the verifier knows as one; may be null.
#[derive(Clone, Copy)]
pub(crate) struct Mm(*const u8);

/// A `signal_struct` that the verifier knows as one.
#[derive(Clone, Copy)]
pub(crate) struct Signals(*const u8);

impl Task {
    /// Argument `N`, a `struct task_struct *`.
    #[inline(always)]
    pub(crate) fn argument<const N: usize>(ctx: &BtfTracePointContext) -> Self {
        Self(argument::<N>(ctx) as *const u8)
    }

    /// What user space calls the thread id (`pid` in the kernel).
    #[inline(always)]
    pub(crate) fn tid(self) -> u32 {
        load!(self.0, task_pid as u32)
    }

    /// What user space calls the process id (`tgid` in the kernel).
    #[inline(always)]
    pub(crate) fn pid(self) -> u32 {
        load!(self.0, task_tgid as u32)
    }

    /// Where it is, for reads that don't take that for granted.
    #[inline(always)]
    fn address(self) -> u64 {
        self.0 as u64
    }

    /// When the kernel created it, ns since boot.
    #[inline(always)]
    pub(crate) fn start_ns(self) -> u64 {
        load!(self.0, task_start_boottime as u64)
    }

    /// First thread of its process.
    #[inline(always)]
    pub(crate) fn leader(self) -> Self {
        Self(load!(self.0, task_group_leader as *const u8))
    }

    /// Whether there is none.
    #[inline(always)]
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Whether it only ever runs in the kernel.
    #[inline(always)]
    pub(crate) fn is_kernel_thread(self) -> bool {
        // include/linux/sched.h, 5.10 to 7.2: PF_KTHREAD.
        load!(self.0, task_flags as u32) & 0x0020_0000 != 0
    }

    /// Whether it has executed nothing since it was forked.
    #[inline(always)]
    pub(crate) fn has_only_forked(self) -> bool {
        // include/linux/sched.h, 5.10 to 7.2: PF_FORKNOEXEC.
        load!(self.0, task_flags as u32) & 0x40 != 0
    }

    /// Whether it is known where its children are.
    #[inline(always)]
    pub(crate) fn shows_children(self) -> bool {
        !absent(at!(task_children)) && !absent(at!(task_sibling))
    }

    /// Shows pid and start of each process that this thread made and is the parent of, of many the first ones.
    ///
    /// A list of `task_struct.sibling`, from `task_struct.children` on. Others may change it meanwhile: what is gone
    /// can't be read or isn't a process that is looked for.
    #[inline(always)]
    pub(crate) fn each_child(self, mut show: impl FnMut(u32, u64)) {
        let head = (self.0 as u64).wrapping_add(u64::from(at!(task_children)));
        let mut at = word_at(head, 0);
        for _ in 0..MOST_CHILDREN {
            if at == head || at == 0 {
                break;
            }
            let child = at.wrapping_sub(u64::from(at!(task_sibling)));
            let pid = word_at(child, at!(task_tgid)) as u32;
            show(pid, word_at(child, at!(task_start_boottime)));
            at = word_at(at, 0);
        }
    }

    /// A thread of its parent (whoever that is now).
    #[inline(always)]
    pub(crate) fn parent(self) -> Self {
        Self(load!(self.0, task_real_parent as *const u8))
    }

    /// Its address space; null for kernel threads and, after `exit_mm`, for the dead.
    #[inline(always)]
    pub(crate) fn mm(self) -> Mm {
        Mm(load!(self.0, task_mm as *const u8))
    }

    /// The address space that it uses or, without one of its own, used last: after `exit_mm` still
    /// the one it gave up, if it wasn't preempted since.
    #[inline(always)]
    pub(crate) fn active_mm(self) -> Mm {
        Mm(load!(self.0, task_active_mm as *const u8))
    }

    /// What the threads of its process share.
    #[inline(always)]
    pub(crate) fn signals(self) -> Signals {
        Signals(load!(self.0, task_signal as *const u8))
    }

    /// Its own status as `wait` gives it.
    #[inline(always)]
    pub(crate) fn exit_code(self) -> u32 {
        load!(self.0, task_exit_code as u32)
    }

    /// Signal for its parent at its end.
    #[inline(always)]
    pub(crate) fn exit_signal(self) -> i32 {
        load!(self.0, task_exit_signal as i32)
    }

    /// CPU time up to the last tick or switch, ns.
    #[inline(always)]
    pub(crate) fn cpu_ns(self) -> u64 {
        load!(self.0, task_sum_exec_runtime as u64)
    }

    /// Its name.
    #[inline(always)]
    pub(crate) fn read_comm(self, into: *mut [u8; COMM_LEN]) {
        // SAFETY: a fault zero-fills the whole destination.
        unsafe {
            bpf_probe_read_kernel(
                into.cast(),
                COMM_LEN as u32,
                self.0.add(at!(task_comm) as usize).cast(),
            );
        }
    }
}

impl Signals {
    /// Where it is, for reads that don't take that for granted.
    #[inline(always)]
    fn address(self) -> u64 {
        self.0 as u64
    }

    /// Threads that haven't begun to exit.
    #[inline(always)]
    pub(crate) fn live_threads(self) -> u32 {
        load!(self.0, signal_live as u32)
    }

    /// Status of the whole process, if `exit_group` or a fatal signal ended it.
    #[inline(always)]
    pub(crate) fn group_exit_code(self) -> Option<u32> {
        // include/linux/sched/signal.h, 5.10 to 7.2: SIGNAL_GROUP_EXIT.
        const SIGNAL_GROUP_EXIT: u32 = 4;
        (load!(self.0, signal_flags as u32) & SIGNAL_GROUP_EXIT != 0)
            .then(|| load!(self.0, signal_group_exit_code as u32))
    }

    /// CPU time of all threads that have been released, ns; `u64::MAX`: not known.
    #[inline(always)]
    pub(crate) fn released_cpu_ns(self) -> u64 {
        if absent(at!(signal_sum_sched_runtime)) {
            u64::MAX
        } else {
            load!(self.0, signal_sum_sched_runtime as u64)
        }
    }
}

impl Mm {
    /// Argument `N`, a `struct mm_struct *`.
    #[inline(always)]
    pub(crate) fn argument<const N: usize>(ctx: &BtfTracePointContext) -> Self {
        Self(argument::<N>(ctx) as *const u8)
    }

    /// Its address, to be told apart from others until `exit_mmap`.
    #[inline(always)]
    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    /// Pages mapped.
    #[inline(always)]
    pub(crate) fn total_vm(self) -> u64 {
        load!(self.0, mm_total_vm as u64)
    }

    /// Whether nobody uses it any more and it is being torn down.
    #[inline(always)]
    pub(crate) fn is_ending(self) -> bool {
        load!(self.0, mm_users as u32) == 0
    }

    /// First byte of the argument list and the byte behind it.
    #[inline(always)]
    pub(crate) fn arguments(self) -> (u64, u64) {
        (
            load!(self.0, mm_arg_start as u64),
            load!(self.0, mm_arg_end as u64),
        )
    }

    /// First byte of the environment and the byte behind it.
    #[inline(always)]
    pub(crate) fn environment(self) -> (u64, u64) {
        (
            load!(self.0, mm_env_start as u64),
            load!(self.0, mm_env_end as u64),
        )
    }

    /// All of it now.
    #[inline(always)]
    pub(crate) fn memory(self) -> Memory {
        Memory {
            rss: self.counters(),
            total_vm: self.total_vm(),
        }
    }

    /// What it consists of now.
    #[inline(always)]
    pub(crate) fn parts(self) -> Parts {
        Parts {
            data_vm: load!(self.0, mm_data_vm as u64),
            exec_vm: load!(self.0, mm_exec_vm as u64),
            stack_vm: self.stack_vm(),
            page_tables: load!(self.0, mm_pgtables_bytes as u64),
        }
    }

    /// Pages of stacks that grow by themselves.
    #[inline(always)]
    pub(crate) fn stack_vm(self) -> u64 {
        load!(self.0, mm_stack_vm as u64)
    }
}

/// Place of the first per-CPU pointer in a `struct bpf_array`.
#[inline(always)]
pub(crate) fn array_pptrs() -> u32 {
    at!(array_pptrs)
}

/// Number of the system call that `sys_exit` ends.
#[inline(always)]
pub(crate) fn system_call(ctx: &BtfTracePointContext) -> u32 {
    load!((argument::<0>(ctx) as *const u8), regs_syscall as u32)
}

/// Running process and thread, in user space's words: (pid, tid).
#[inline(always)]
pub(crate) fn current_ids() -> (u32, u32) {
    let both = bpf_get_current_pid_tgid();
    ((both >> 32) as u32, both as u32)
}

/// Children of a thread that are looked at when it ends.
const MOST_CHILDREN: u32 = 512;

/// Address of the running thread's `mm_struct`, 0 if it has none.
///
/// By `bpf_get_current_task`: 5.10 doesn't know `bpf_get_current_task_btf`.
#[inline(always)]
pub(crate) fn current_mm() -> u64 {
    // SAFETY: a helper without arguments.
    word_at(unsafe { bpf_get_current_task() }, at!(task_mm))
}

/// Mapped pages of the `mm_struct` at an address, and what they consist of.
#[inline(always)]
pub(crate) fn mapped_at(mm: u64) -> (u64, Parts) {
    (
        word_at(mm, at!(mm_total_vm)),
        Parts {
            data_vm: word_at(mm, at!(mm_data_vm)),
            exec_vm: word_at(mm, at!(mm_exec_vm)),
            stack_vm: word_at(mm, at!(mm_stack_vm)),
            page_tables: word_at(mm, at!(mm_pgtables_bytes)),
        },
    )
}

/// A word of kernel memory; zero if it can't be read.
#[inline(always)]
fn word_at(base: u64, offset: u32) -> u64 {
    let mut word = 0_u64;
    // SAFETY: a fault leaves zero.
    unsafe {
        let from = base.wrapping_add(u64::from(offset)) as *const _;
        bpf_probe_read_kernel((&raw mut word).cast(), 8, from);
    }
    word
}

/// Flags of clone at `task_newtask`.
#[inline(always)]
pub(crate) fn newtask_flags(ctx: &BtfTracePointContext) -> u64 {
    argument_at(ctx, at!(arg_newtask_flags))
}

/// Whether the exiting thread is the last of its process.
///
/// Before 6.16 the tracepoint doesn't say; two threads that end at the same time may then both
/// see no live thread, so that user space has to bear two ends of one process.
#[inline(always)]
pub(crate) fn is_group_dead(ctx: &BtfTracePointContext, signals: Signals) -> bool {
    let n = at!(arg_exit_group_dead);
    if absent(n) {
        signals.live_threads() == 0
    } else {
        argument_at(ctx, n) as u8 != 0
    }
}

/// Error code of a page fault.
#[inline(always)]
pub(crate) fn error_code(ctx: &BtfTracePointContext) -> u64 {
    argument::<2>(ctx)
}

/// CPU time of the running thread up to the last tick or switch, ns.
#[inline(always)]
pub(crate) fn current_cpu_ns() -> u64 {
    // SAFETY: a helper without arguments.
    word_at(
        unsafe { bpf_get_current_task() },
        at!(task_sum_exec_runtime),
    )
}

/// Which counter `rss_stat` is about.
#[inline(always)]
pub(crate) fn rss_member(ctx: &BtfTracePointContext) -> u32 {
    argument::<1>(ctx) as u32
}

/// Its new value: told by the hook before 6.2, else read.
#[inline(always)]
pub(crate) fn rss_value(ctx: &BtfTracePointContext, mm: Mm) -> i64 {
    let n = at!(arg_rss_count);
    if absent(n) {
        mm.counter(rss_member(ctx))
    } else {
        argument_at(ctx, n) as i64
    }
}

/// New name at `task_rename`.
#[inline(always)]
pub(crate) fn read_new_name(ctx: &BtfTracePointContext, into: *mut [u8; COMM_LEN]) {
    // SAFETY: a fault zero-fills; the string read ends with NUL within the given size.
    unsafe {
        *into = [0; COMM_LEN];
        bpf_probe_read_kernel_str(into.cast(), COMM_LEN as u32, argument::<1>(ctx) as *const _);
    }
}

/// Address of the file name at `sched_process_exec`.
#[inline(always)]
pub(crate) fn exec_filename(ctx: &BtfTracePointContext) -> *const u8 {
    load!(
        (argument::<2>(ctx) as *const u8),
        bprm_filename as *const u8
    )
}

/// Caller's thread id at `sched_process_exec`.
#[inline(always)]
pub(crate) fn exec_old_tid(ctx: &BtfTracePointContext) -> u32 {
    argument::<1>(ctx) as u32
}

/// Copies a kernel string of at most `size - 1` bytes; its length with NUL, 0 on a fault.
#[inline(always)]
pub(crate) fn read_string(from: *const u8, into: *mut u8, size: u32) -> u32 {
    // SAFETY: the verifier checks that `into` has room for `size` bytes.
    let length = unsafe { bpf_probe_read_kernel_str(into.cast(), size, from.cast()) };
    if length > 0 { length as u32 } else { 0 }
}

/// Copies user memory of the running process; whether it could be read.
#[inline(always)]
pub(crate) fn read_user(from: u64, into: *mut u8, size: u32) -> bool {
    // SAFETY: the verifier checks that `into` has room for `size` bytes.
    unsafe { bpf_probe_read_user(into.cast(), size, from as *const _) == 0 }
}
