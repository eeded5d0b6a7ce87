//! The hooks, and where the running kernel keeps what they read.

use monitor_ebpf::abi::Layout;

use crate::host::btf::Btf;

/// A tracepoint that the kernel side attaches to. Its program has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Name of tracepoint and program.
    pub name: &'static str,
    /// Whether recording makes no sense without it.
    pub is_required: bool,
}

/// All hooks, in the order in which they are attached.
pub const HOOKS: [Hook; 8] = [
    Hook {
        name: "sched_process_free",
        is_required: true,
    },
    Hook {
        name: "sched_process_exit",
        is_required: true,
    },
    // Not before 6.1. Without it, an address that the kernel gives to another address space can't be
    // told from the old one.
    Hook {
        name: "exit_mmap",
        is_required: true,
    },
    Hook {
        name: "rss_stat",
        is_required: true,
    },
    Hook {
        name: "task_rename",
        is_required: true,
    },
    Hook {
        name: "sched_process_exec",
        is_required: true,
    },
    Hook {
        name: "sched_process_fork",
        is_required: true,
    },
    Hook {
        name: "task_newtask",
        is_required: true,
    },
];

/// Finds members and arguments by name.
///
/// # Errors
/// The name of the first one that must be there and isn't.
pub(super) fn layout(btf: &Btf) -> Result<Layout, String> {
    let member = |of: &str, path: &str| {
        btf.member(of, path)
            .map(|member| member.offset)
            .ok_or_else(|| format!("struct {of} has no member {path}"))
    };
    let optional = |of: &str, path: &str| {
        btf.member(of, path)
            .map_or(u32::MAX, |member| member.offset)
    };
    let argument =
        |tracepoint: &str, name: &str| btf.argument(tracepoint, name).unwrap_or(u32::MAX);
    let (mm_rss_stat, mm_rss_stride) =
        rss_counters(btf).ok_or("struct mm_struct has no RSS counters of a known form")?;
    let newtask_flags = btf
        .argument("task_newtask", "clone_flags")
        .ok_or("task_newtask has no argument clone_flags")?;
    Ok(Layout {
        task_pid: member("task_struct", "pid")?,
        task_tgid: member("task_struct", "tgid")?,
        task_start_boottime: member("task_struct", "start_boottime")?,
        task_group_leader: member("task_struct", "group_leader")?,
        task_real_parent: member("task_struct", "real_parent")?,
        task_mm: member("task_struct", "mm")?,
        task_signal: member("task_struct", "signal")?,
        task_exit_code: member("task_struct", "exit_code")?,
        task_exit_signal: member("task_struct", "exit_signal")?,
        task_comm: member("task_struct", "comm")?,
        task_sum_exec_runtime: member("task_struct", "se.sum_exec_runtime")?,
        signal_live: member("signal_struct", "live")?,
        signal_flags: member("signal_struct", "flags")?,
        signal_group_exit_code: member("signal_struct", "group_exit_code")?,
        signal_sum_sched_runtime: optional("signal_struct", "sum_sched_runtime"),
        mm_rss_stat,
        mm_rss_stride,
        mm_total_vm: member("mm_struct", "total_vm")?,
        mm_users: member("mm_struct", "mm_users")?,
        mm_arg_start: member("mm_struct", "arg_start")?,
        mm_arg_end: member("mm_struct", "arg_end")?,
        bprm_filename: member("linux_binprm", "filename")?,
        arg_newtask_flags: newtask_flags,
        arg_exit_group_dead: argument("sched_process_exit", "group_dead"),
        arg_rss_count: argument("rss_stat", "count"),
    })
}

/// First RSS counter in `mm_struct` and the step to the next.
///
/// Since 6.2 an array of `struct percpu_counter`, whose `count` lacks what CPUs keep to themselves;
/// before, `struct mm_rss_stat` with an array of `atomic_long_t`.
fn rss_counters(btf: &Btf) -> Option<(u32, u32)> {
    let counters = btf.member("mm_struct", "rss_stat")?;
    let inner = btf.within(counters, "count")?;
    let stride = if btf.is_array(counters) {
        btf.element_size(counters)?
    } else {
        btf.element_size(inner)?
    };
    Some((inner.offset, stride))
}

/// Whether RSS counters keep parts per CPU (since 6.2), by the form of `mm_struct`.
pub(super) fn has_per_cpu_counters(btf: &Btf) -> bool {
    btf.member("mm_struct", "rss_stat")
        .is_some_and(|counters| btf.is_array(counters))
}

/// How far a shared RSS counter may be from the truth, bytes, for each kind.
///
/// Since 6.2 each CPU keeps up to `percpu_counter_batch` pages to itself, which is the larger of 32
/// and twice the CPUs (`lib/percpu_counter.c`, `compute_batch_value`). Before, each thread keeps up
/// to 64 (`mm/memory.c`, `TASK_RSS_EVENTS_THRESH`), and the number of threads isn't known yet: the
/// bound is for one thread then.
pub(super) fn rss_bound(btf: &Btf, cpus: u32, page_size: u64) -> u64 {
    let cpus = u64::from(cpus);
    let pages = if has_per_cpu_counters(btf) {
        cpus * 32.max(2 * cpus)
    } else {
        64
    };
    pages * page_size
}
