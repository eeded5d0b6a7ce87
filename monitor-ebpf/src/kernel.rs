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
use monitor_ebpf::abi::{COMM_LEN, MOST_CPUS, Memory, Parts, absent};

use crate::{
    emit::{count, cpu, now, setting},
    maps::{CPU_OFFSETS, UNSETTLED, layout},
};

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
pub(crate) mod group;
pub(crate) mod oom;
pub(crate) mod path;
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

    /// One RSS counter, pages: its shared value and, since 6.2, what each CPU keeps to itself. Before 6.2 threads keep
    /// parts, which are left out.
    #[inline(always)]
    pub(crate) fn counter(self, member: u32) -> i64 {
        if absent(at!(mm_rss_parts)) {
            return self.shared_counter(member);
        }
        let first = self.reading::<false, 1>(member);
        let reading = if first.is_settled {
            first
        } else {
            self.reading::<false, 1>(member)
        };
        if !reading.is_settled {
            count(&UNSETTLED, 0);
        }
        reading.value
    }

    /// One RSS counter without what CPUs or threads keep to themselves, pages.
    #[inline(always)]
    fn shared_counter(self, member: u32) -> i64 {
        let place = at!(mm_rss_stride) * (member & 3);
        let mut value = 0_i64;
        // SAFETY: a fault leaves zero. Not a direct load: before 6.2 the verifier refuses to look into `struct
        // mm_rss_stat`.
        unsafe {
            bpf_probe_read_kernel(
                (&raw mut value).cast(),
                8,
                self.0.add((at!(mm_rss_stat) + place) as usize).cast(),
            );
        }
        value
    }

    /// One RSS counter with the parts of all CPUs (since 6.2).
    ///
    /// That is the kernel's own way to an exact value (`percpu_counter_sum`), without its lock. A CPU whose part has
    /// come to a batch adds it to `count` and then clears it, holding the lock (`percpu_counter_add_batch` in
    /// `lib/percpu_counter.c`): what is read meanwhile lacks that part or has it twice. If the lock was free after
    /// `count` was read, all that `count` had was cleared; if `count` is the same at the end, nothing that was read has
    /// been added to it since. In this order: free before `count` is read, it could be taken and given back in between.
    ///
    /// `IS_TYPED`: the verifier knows this as an `mm_struct`, so that it can be read at a third of the cost.
    /// `WAITS`: how often to look whether the lock is free.
    #[inline(always)]
    pub(crate) fn reading<const IS_TYPED: bool, const WAITS: u32>(self, member: u32) -> Reading {
        let member = if IS_TYPED { fixed(member) } else { member & 3 };
        let place = at!(mm_rss_stride) * member;
        let (mut count, mut is_free) = (0, false);
        for _ in 0..WAITS {
            count = self.word::<IS_TYPED>(at!(mm_rss_stat) + place);
            is_free = self.half_word::<IS_TYPED>(at!(mm_rss_lock) + place) == 0;
            if is_free {
                break;
            }
            // Only for the time that this takes: more turns would cost the verifier more.
            let _now = now();
        }
        let parts = self.word::<IS_TYPED>(at!(mm_rss_parts) + place);
        let mut value = count as i64;
        for cpu in 0..MOST_CPUS {
            if cpu >= setting!(cpus) {
                break;
            }
            let Some(offset) = CPU_OFFSETS.get_ptr(cpu) else {
                break;
            };
            // SAFETY: a map value.
            value += i64::from(part_at(parts.wrapping_add(unsafe { *offset })));
        }
        let is_settled = is_free && self.word::<IS_TYPED>(at!(mm_rss_stat) + place) == count;
        Reading {
            value,
            count: count as i64,
            is_settled,
        }
    }

    /// The shared `count` of one RSS counter and the part of the running CPU (since 6.2), pages.
    #[inline(always)]
    pub(crate) fn own_part(self, member: u32) -> Option<(i64, i64)> {
        let place = at!(mm_rss_stride) * fixed(member);
        let parts = self.word::<true>(at!(mm_rss_parts) + place);
        let offset = CPU_OFFSETS.get_ptr(cpu())?;
        // SAFETY: a map value.
        let part = part_at(parts.wrapping_add(unsafe { *offset }));
        // Behind the part: what of it has been added to `count` is seen there.
        let count = self.word::<true>(at!(mm_rss_stat) + place);
        Some((count as i64, i64::from(part)))
    }

    /// Four bytes, as [`Self::word`].
    #[inline(always)]
    fn half_word<const IS_TYPED: bool>(self, place: u32) -> u32 {
        if !IS_TYPED {
            return word_at(self.address(), place) as u32;
        }
        // SAFETY: as in `word`.
        unsafe { core::ptr::read_volatile(self.0.add(place as usize).cast::<u32>()) }
    }

    /// A word at a place, which the verifier has to know as a number if it `IS_TYPED`.
    #[inline(always)]
    fn word<const IS_TYPED: bool>(self, place: u32) -> u64 {
        if !IS_TYPED {
            return word_at(self.address(), place);
        }
        // SAFETY: the verifier checks it and makes the load safe against faults.
        unsafe { core::ptr::read_volatile(self.0.add(place as usize).cast::<u64>()) }
    }

    /// All of it now.
    #[inline(always)]
    pub(crate) fn memory(self) -> Memory {
        Memory {
            rss: self.counters(),
            total_vm: self.total_vm(),
        }
    }

    #[inline(always)]
    fn counters(self) -> [i64; 4] {
        [0, 1, 2, 3].map(|member| self.counter(member))
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

/// An RSS counter with the parts of all CPUs.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// Pages.
    pub(crate) value: i64,
    /// The shared part of it.
    pub(crate) count: i64,
    /// No CPU has added its part to the shared `count` meanwhile.
    pub(crate) is_settled: bool,
}

/// What a CPU keeps to itself of a counter, pages.
#[inline(always)]
fn part_at(address: u64) -> i32 {
    let mut part = 0_i32;
    // SAFETY: an address of the kernel's own making, a fault leaves zero.
    unsafe {
        bpf_probe_read_kernel((&raw mut part).cast(), 4, address as *const _);
    }
    part
}

/// A member as a number that the verifier knows, each on a way of its own: it wants to know where it looks.
#[inline(always)]
fn fixed(member: u32) -> u32 {
    match member & 3 {
        0 => constant::<0>(),
        1 => constant::<1>(),
        2 => constant::<2>(),
        _ => constant::<3>(),
    }
}

/// In assembly: LLVM makes one way of four that differ by a number only.
#[inline(always)]
fn constant<const N: u32>() -> u32 {
    let value: u64;
    // SAFETY: it touches nothing else.
    unsafe {
        core::arch::asm!("{value} = {n}", value = out(reg) value, n = const N, options(nostack));
    }
    value as u32
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
