//! The hooks, and where the running kernel keeps what they read.

use monitor_ebpf::abi::Layout;

use super::{fork_limits, places};
use crate::host::btf::Btf;

/// A tracepoint that the kernel side attaches to. Its program has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Name of tracepoint and program.
    pub name: &'static str,
    /// What a recording says where the kernel doesn't have it; `None`: there can be no recording then.
    pub stand_in: Option<&'static str>,
    /// It is attached only where a control group is recorded.
    pub only_for_groups: bool,
}

impl Hook {
    const fn needed(name: &'static str) -> Self {
        Self {
            name,
            stand_in: None,
            only_for_groups: false,
        }
    }
}

/// All hooks, in the order in which they are attached.
pub const HOOKS: [Hook; 20] = [
    Hook::needed("sched_process_free"),
    Hook::needed("sched_process_exit"),
    // Not before 6.1: there the counters tell the end of an address space (`Config::ends_by_counters`).
    Hook {
        stand_in: Some(
            "when memory was given back is told by its counters, and how much was mapped then by their last change",
        ),
        ..Hook::needed("exit_mmap")
    },
    Hook::needed("rss_stat"),
    // Not before 5.11.
    Hook {
        stand_in: Some(
            "what is mapped is read after the system calls that change it, and the growth of stacks at changes of RSS",
        ),
        ..Hook::needed("mmap_lock_released")
    },
    // Not on every machine: arm64 has none.
    Hook {
        stand_in: Some(NO_COPIES),
        ..Hook::needed("page_fault_user")
    },
    Hook {
        stand_in: Some(NO_COPIES),
        ..Hook::needed("page_fault_kernel")
    },
    // Costs every system call of the host something; it is needed where mmap_lock_released is missing.
    Hook {
        stand_in: Some("which calls of exec and fork failed is not known"),
        ..Hook::needed(SYS_EXIT)
    },
    // As that one; both are costly together or not at all.
    Hook {
        stand_in: Some("how long the calls took that made processes is not known"),
        ..Hook::needed(SYS_ENTER)
    },
    Hook {
        stand_in: Some("how long threads waited and when processes first ran is not known"),
        ..Hook::needed("sched_switch")
    },
    Hook {
        stand_in: Some("who sent a signal is not known"),
        ..Hook::needed("signal_generate")
    },
    Hook {
        stand_in: Some("moves to other control groups are not known"),
        ..Hook::needed("cgroup_attach_task")
    },
    Hook {
        stand_in: Some(NO_SCOPE),
        ..Hook::needed("mm_vmscan_direct_reclaim_begin")
    },
    // Not without control groups for memory.
    Hook {
        stand_in: Some(NO_SCOPE),
        ..Hook::needed("mm_vmscan_memcg_reclaim_begin")
    },
    Hook {
        stand_in: Some("whether a killed process was killed for memory is not known"),
        ..Hook::needed("mark_victim")
    },
    Hook::needed("task_rename"),
    Hook::needed("sched_process_exec"),
    Hook::needed("sched_process_fork"),
    Hook::needed("task_newtask"),
    Hook {
        stand_in: Some("a control group that is yet to be made is not recorded"),
        only_for_groups: true,
        ..Hook::needed(GROUP_MADE)
    },
];

/// The hook that shows the beginning of system calls.
pub(super) const SYS_ENTER: &str = "sys_enter";
/// The hook that shows the end of system calls.
pub(super) const SYS_EXIT: &str = "sys_exit";

/// The hook that shows new control groups, only there where one is recorded.
pub(super) const GROUP_MADE: &str = "cgroup_mkdir";
/// The hook that shows moves between them, with another program there.
pub(super) const GROUP_ENTERED: &str = "cgroup_attach_task";

const NO_COPIES: &str = "which pages of its creator a forked process has copied since is not known";

const NO_SCOPE: &str =
    "what ran out when a process was killed for memory, a control group or the host, is not known";

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
        // Heads of lists, which begin with the pointer to the first or next one.
        task_children: optional("task_struct", "children"),
        task_sibling: optional("task_struct", "sibling"),
        task_flags: member("task_struct", "flags")?,
        task_mm: member("task_struct", "mm")?,
        task_active_mm: member("task_struct", "active_mm")?,
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
        mm_data_vm: member("mm_struct", "data_vm")?,
        mm_exec_vm: member("mm_struct", "exec_vm")?,
        mm_stack_vm: member("mm_struct", "stack_vm")?,
        mm_pgtables_bytes: member("mm_struct", "pgtables_bytes")?,
        mm_rss_parts: rss_part(btf, "counters").unwrap_or(u32::MAX),
        mm_rss_lock: rss_part(btf, "lock").unwrap_or(u32::MAX),
        mm_users: member("mm_struct", "mm_users")?,
        mm_arg_start: member("mm_struct", "arg_start")?,
        mm_arg_end: member("mm_struct", "arg_end")?,
        mm_env_start: member("mm_struct", "env_start")?,
        mm_env_end: member("mm_struct", "env_end")?,
        bprm_filename: member("linux_binprm", "filename")?,
        array_pptrs: optional("bpf_array", "pptrs"),
        regs_syscall: btf
            .member("pt_regs", "orig_ax")
            .or_else(|| btf.member("pt_regs", "syscallno"))
            .map_or(u32::MAX, |member| member.offset),
        arg_newtask_flags: newtask_flags,
        arg_exit_group_dead: argument("sched_process_exit", "group_dead"),
        arg_rss_count: argument("rss_stat", "count"),
        usage: places::usage(btf),
        oom: places::oom(btf),
        watch: places::watch(btf),
        group: places::group(btf),
        path: places::path(btf),
        orphan: places::orphan(btf),
        refusal: fork_limits::places(btf),
    })
}

/// What of a kernel recording can use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Support {
    /// Hooks that it has.
    pub hooks: usize,
    /// Hooks that it doesn't have and can be done without, and what is said instead.
    pub stand_ins: Vec<(String, String)>,
    /// What there can be no recording without, in words.
    pub missing: Vec<String>,
    /// BPF memory counts against the limit of locked memory (until 5.10, `struct bpf_map_memory`).
    pub locks_memory: bool,
}

/// Judges a kernel by its types.
pub fn support(btf: &Btf) -> Support {
    let mut support = Support {
        locks_memory: btf.has_struct("bpf_map_memory"),
        ..Support::default()
    };
    let mut lacking = Vec::new();
    for hook in HOOKS {
        match (btf.has_tracepoint(hook.name), hook.stand_in) {
            (true, _) => support.hooks += 1,
            (false, Some(says)) => support
                .stand_ins
                .push((hook.name.to_owned(), says.to_owned())),
            (false, None) => lacking.push(hook.name),
        }
    }
    if !lacking.is_empty() {
        let word = if lacking.len() == 1 {
            "tracepoint"
        } else {
            "tracepoints"
        };
        let names = lacking.join(", ");
        support
            .missing
            .push(format!("the kernel has no {word} {names}"));
    }
    support.missing.extend(layout(btf).err());
    support
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

/// A member of the first RSS counter in `mm_struct`, a `struct percpu_counter` (since 6.2).
fn rss_part(btf: &Btf, name: &str) -> Option<u32> {
    let counters = btf.member("mm_struct", "rss_stat")?;
    let part = btf.within(counters, name)?;
    Some(part.offset)
}

/// Whether RSS counters keep parts per CPU (since 6.2), by the form of `mm_struct`.
pub(super) fn has_per_cpu_counters(btf: &Btf) -> bool {
    btf.member("mm_struct", "rss_stat")
        .is_some_and(|counters| btf.is_array(counters))
}

/// Whether a program can be preempted while it runs, so that the kernel skips it for what happens on
/// its CPU meanwhile: since tracepoints are guarded by fast SRCU, whose guard is a type by this name.
pub(super) fn preempts_programs(btf: &Btf) -> bool {
    btf.has_typedef("class_srcu_fast_notrace_t")
}

/// How far a shared RSS counter may be from the truth, bytes, for each kind; by nothing if the parts of all
/// CPUs are read too.
///
/// Since 6.2 each CPU keeps up to `percpu_counter_batch` pages to itself, which is the larger of 32
/// and twice the CPUs (`lib/percpu_counter.c`, `compute_batch_value`). Before, each thread keeps what it
/// faults in to itself until its 66th page fault (`mm/memory.c`, `check_sync_rss_stat`), so it depends on
/// their number: the bound is for one thread then. A fault brings one page, or of a file or shared memory up
/// to 64 KiB around it (`do_fault_around`; unless an administrator has set another size in debugfs).
pub(super) fn rss_bound(btf: &Btf, is_exact: bool, cpus: u32, page_size: u64) -> RssBound {
    if is_exact {
        return RssBound {
            bytes: 0,
            is_per_thread: false,
        };
    }
    let cpus = u64::from(cpus);
    let is_per_thread = !has_per_cpu_counters(btf);
    let pages = if is_per_thread {
        FAULTS * (FAULT_AROUND / page_size).max(1)
    } else {
        cpus * 32.max(2 * cpus)
    };
    RssBound {
        bytes: pages * page_size,
        is_per_thread,
    }
}

/// Page faults of a thread from one time that it hands over what it counted to the next, before 6.2.
const FAULTS: u64 = 66;
/// Bytes that one page fault maps at most, huge pages aside, which are counted at once.
const FAULT_AROUND: u64 = 64 << 10;

/// How far a shared RSS counter may be from the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RssBound {
    /// For each kind.
    pub(super) bytes: u64,
    /// Whether that is for each thread of a process.
    pub(super) is_per_thread: bool,
}

#[cfg(test)]
mod tests;
