//! The hooks, and where the running kernel keeps what they read.

use monitor_ebpf::abi::Layout;

use super::places;
use crate::host::btf::Btf;

/// A tracepoint that the kernel side attaches to. Its program has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Name of tracepoint and program.
    pub name: &'static str,
    /// What a recording says where the kernel doesn't have it; `None`: there can be no recording then.
    pub stand_in: Option<&'static str>,
}

impl Hook {
    const fn needed(name: &'static str) -> Self {
        Self {
            name,
            stand_in: None,
        }
    }
}

/// All hooks, in the order in which they are attached.
pub const HOOKS: [Hook; 18] = [
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
];

/// The hook that shows the end of system calls.
pub(super) const SYS_EXIT: &str = "sys_exit";

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
        mm_rss_parts: rss_parts(btf).unwrap_or(u32::MAX),
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

/// Per-CPU parts of the first RSS counter in `mm_struct` (since 6.2).
fn rss_parts(btf: &Btf) -> Option<u32> {
    let counters = btf.member("mm_struct", "rss_stat")?;
    let parts = btf.within(counters, "counters")?;
    Some(parts.offset)
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
mod tests {
    //! Expected offsets were computed from `bpftool btf dump` of the untrimmed BTF.

    use monitor_ebpf::abi::{OomPlaces, UsagePlaces, WatchPlaces};

    use super::*;
    use crate::host::btf::fixtures::{KERNELS, kernel};

    const ABSENT: u32 = u32::MAX;

    /// What 5.10 has, and the base of what later kernels have.
    const V5_10: Layout = Layout {
        task_pid: 2232,
        task_tgid: 2236,
        task_start_boottime: 2544,
        task_group_leader: 2296,
        task_real_parent: 2248,
        // Not in the trimmed types.
        task_children: ABSENT,
        task_sibling: ABSENT,
        task_flags: 36,
        task_mm: 2056,
        task_active_mm: 2064,
        task_signal: 2832,
        task_exit_code: 2136,
        task_exit_signal: 2140,
        task_comm: 2736,
        task_sum_exec_runtime: 200,
        signal_live: 4,
        signal_flags: 116,
        signal_group_exit_code: 96,
        signal_sum_sched_runtime: 664,
        mm_rss_stat: 712,
        mm_rss_stride: 8,
        mm_total_vm: 192,
        mm_data_vm: 216,
        mm_exec_vm: 224,
        mm_stack_vm: 232,
        mm_pgtables_bytes: 104,
        mm_rss_parts: ABSENT,
        mm_users: 92,
        mm_arg_start: 312,
        mm_arg_end: 320,
        mm_env_start: 328,
        mm_env_end: 336,
        bprm_filename: 96,
        array_pptrs: 272,
        regs_syscall: 120,
        arg_newtask_flags: 1,
        arg_exit_group_dead: ABSENT,
        arg_rss_count: 2,
        usage: usage_from(424),
        oom: OomPlaces {
            arg_task: ABSENT,
            arg_pid: 0,
            mm_owner: 912,
            task_cgroups: 3328,
            // The fifth of its pointers: `memory_cgrp_id` is 4 in all five kernels.
            css_set_memory: 4 * 8,
            css_cgroup: 0,
            memcg_css: 0,
            memcg_memory: 208,
            memcg_memsw: 320,
            counter_usage: 0,
            counter_max: 32,
            counter_parent: 40,
            cgroup_root: 480,
            hierarchy_id: 12,
            cgroup_kn: 248,
            kernfs_name: 16,
        },
        watch: WatchPlaces {
            arg_prev_state: ABSENT,
            task_state: 16,
            task_stack: 24,
            task_sighand: 2840,
            sighand_action: 32,
            action_size: 32,
            action_handler: 0,
            siginfo_code: 8,
            task_thread_pid: 2336,
            pid_level: 4,
            pid_numbers: 96,
            upid_size: 16,
            regs_first: 112,
            regs_second: 104,
            task_status: 8,
        },
    };

    /// The members stand in the same order, without a gap that differs, in all five kernels.
    const fn usage_from(utime: u32) -> UsagePlaces {
        UsagePlaces {
            utime,
            stime: utime + 8,
            prev_utime: utime + 48,
            prev_stime: utime + 56,
            nvcsw: utime + 72,
            nivcsw: utime + 80,
            min_flt: utime + 104,
            maj_flt: utime + 112,
            rchar: utime + 184,
            wchar: utime + 192,
            read_bytes: utime + 216,
            write_bytes: utime + 224,
        }
    }

    const V6_1: Layout = Layout {
        task_pid: 2416,
        task_tgid: 2420,
        task_start_boottime: 2784,
        task_group_leader: 2480,
        task_real_parent: 2432,
        task_flags: 44,
        task_mm: 2272,
        task_active_mm: 2280,
        task_signal: 3072,
        task_exit_code: 2312,
        task_exit_signal: 2316,
        task_comm: 2976,
        signal_sum_sched_runtime: 680,
        mm_rss_stat: 720,
        mm_total_vm: 184,
        mm_data_vm: 208,
        mm_exec_vm: 216,
        mm_stack_vm: 224,
        mm_pgtables_bytes: 96,
        mm_users: 84,
        mm_arg_start: 304,
        mm_arg_end: 312,
        mm_env_start: 320,
        mm_env_end: 328,
        usage: usage_from(440),
        oom: OomPlaces {
            arg_task: 0,
            arg_pid: ABSENT,
            mm_owner: 920,
            task_cgroups: 3600,
            memcg_memory: 256,
            memcg_memsw: 448,
            counter_max: 152,
            counter_parent: 160,
            cgroup_root: 656,
            ..V5_10.oom
        },
        watch: WatchPlaces {
            arg_prev_state: 3,
            task_state: 24,
            task_stack: 32,
            task_sighand: 3080,
            task_thread_pid: 2520,
            task_status: 16,
            ..V5_10.watch
        },
        ..V5_10
    };

    const V6_12: Layout = Layout {
        task_pid: 2432,
        task_tgid: 2436,
        task_group_leader: 2496,
        task_real_parent: 2448,
        task_mm: 2304,
        task_active_mm: 2312,
        task_exit_code: 2332,
        task_exit_signal: 2336,
        task_sum_exec_runtime: 224,
        signal_sum_sched_runtime: 672,
        // The array is at 824, `count` 8 bytes into its elements.
        mm_rss_stat: 832,
        mm_rss_stride: 40,
        // `counters` is 24 bytes behind `count`.
        mm_rss_parts: 856,
        mm_total_vm: 256,
        mm_data_vm: 280,
        mm_exec_vm: 288,
        mm_stack_vm: 296,
        mm_pgtables_bytes: 152,
        array_pptrs: 264,
        mm_users: 132,
        mm_arg_start: 376,
        mm_arg_end: 384,
        mm_env_start: 392,
        mm_env_end: 400,
        arg_rss_count: ABSENT,
        usage: usage_from(432),
        oom: OomPlaces {
            mm_owner: 1152,
            task_cgroups: 3584,
            memcg_memsw: 512,
            counter_max: 224,
            counter_parent: 232,
            cgroup_root: 720,
            cgroup_kn: 256,
            ..V6_1.oom
        },
        watch: WatchPlaces {
            task_thread_pid: 2536,
            pid_numbers: 112,
            ..V6_1.watch
        },
        ..V6_1
    };

    const V6_18: Layout = Layout {
        task_pid: 1264,
        task_tgid: 1268,
        task_start_boottime: 1560,
        task_group_leader: 1328,
        task_real_parent: 1280,
        task_mm: 1136,
        task_active_mm: 1144,
        task_signal: 1848,
        task_exit_code: 1164,
        task_exit_signal: 1168,
        task_comm: 1752,
        task_sum_exec_runtime: 232,
        mm_rss_stat: 976,
        mm_rss_parts: 1000,
        mm_total_vm: 368,
        mm_data_vm: 392,
        mm_exec_vm: 400,
        mm_stack_vm: 408,
        mm_pgtables_bytes: 168,
        array_pptrs: 312,
        mm_arg_start: 488,
        mm_arg_end: 496,
        mm_env_start: 504,
        mm_env_end: 512,
        arg_exit_group_dead: 1,
        oom: OomPlaces {
            mm_owner: 1304,
            task_cgroups: 2376,
            memcg_memsw: 448,
            counter_max: 160,
            counter_parent: 168,
            cgroup_root: 696,
            ..V6_12.oom
        },
        watch: WatchPlaces {
            task_sighand: 1856,
            task_thread_pid: 1368,
            pid_numbers: 144,
            ..V6_12.watch
        },
        ..V6_12
    };

    const V7_2: Layout = Layout {
        task_pid: 2808,
        task_tgid: 2812,
        task_start_boottime: 3160,
        task_group_leader: 2872,
        task_real_parent: 2824,
        task_mm: 2680,
        task_active_mm: 2688,
        task_signal: 3448,
        task_exit_code: 2708,
        task_exit_signal: 2712,
        task_comm: 3344,
        signal_sum_sched_runtime: 696,
        mm_rss_stat: 1216,
        mm_rss_parts: 1240,
        mm_total_vm: 608,
        mm_data_vm: 632,
        mm_exec_vm: 640,
        mm_stack_vm: 648,
        mm_pgtables_bytes: 392,
        array_pptrs: 304,
        mm_arg_start: 728,
        mm_arg_end: 736,
        mm_env_start: 744,
        mm_env_end: 752,
        bprm_filename: 112,
        usage: usage_from(456),
        oom: OomPlaces {
            mm_owner: 1528,
            task_cgroups: 4000,
            cgroup_root: 808,
            cgroup_kn: 296,
            ..V6_18.oom
        },
        watch: WatchPlaces {
            task_sighand: 3456,
            task_thread_pid: 2912,
            pid_numbers: 128,
            ..V6_18.watch
        },
        ..V6_18
    };

    #[test]
    fn members_and_arguments_are_where_each_kernel_has_them() {
        let expected = [
            ("5.10", V5_10),
            ("6.1", V6_1),
            ("6.12", V6_12),
            ("6.18", V6_18),
            ("7.2", V7_2),
        ];
        assert_eq!(expected.len(), KERNELS.len());
        for (version, layout) in expected {
            assert_eq!(super::layout(&kernel(version)), Ok(layout), "{version}");
        }
    }

    #[test]
    fn of_all_hooks_two_are_missing_and_only_in_5_10() {
        for (version, _) in KERNELS {
            let btf = kernel(version);
            let missing: Vec<_> = HOOKS
                .into_iter()
                .map(|hook| hook.name)
                .filter(|name| !btf.has_tracepoint(name))
                .collect();
            let expected: &[&str] = if version == "5.10" {
                &["exit_mmap", "mmap_lock_released"]
            } else {
                &[]
            };
            assert_eq!(missing, expected, "{version}");
        }
    }

    #[test]
    fn later_tracepoints_are_told_apart() {
        let has =
            |tracepoint| KERNELS.map(|(version, _)| kernel(version).has_tracepoint(tracepoint));
        assert_eq!(has("mmap_lock_released"), [false, true, true, true, true]);
        assert_eq!(has("sched_prepare_exec"), [false, false, true, true, true]);
        assert_eq!(has("page_fault_user"), [true; 5]);
    }

    #[test]
    fn every_kernel_is_supported_and_5_10_with_two_limits() {
        for (version, _) in KERNELS {
            let support = support(&kernel(version));
            assert_eq!(support.missing, [""; 0], "{version}");
            let is_old = version == "5.10";
            assert_eq!(support.locks_memory, is_old, "{version}");
            let stand_ins = if is_old { 2 } else { 0 };
            assert_eq!(support.stand_ins.len(), stand_ins, "{version}");
        }
    }

    #[test]
    fn programs_can_be_preempted_in_7_2_only() {
        let preempts = KERNELS.map(|(version, _)| preempts_programs(&kernel(version)));
        assert_eq!(preempts, [false, false, false, false, true]);
    }

    #[test]
    fn counters_have_parts_per_cpu_since_6_2() {
        let per_cpu = KERNELS.map(|(version, _)| has_per_cpu_counters(&kernel(version)));
        assert_eq!(per_cpu, [false, false, true, true, true]);
    }

    #[test]
    fn the_bound_of_a_counter_grows_with_cpus_where_each_keeps_pages() {
        let whole = |version, cpus| rss_bound(&kernel(version), false, cpus, 4096);
        let bound = |version, cpus| whole(version, cpus).bytes;
        for cpus in [2, 64] {
            let for_one_thread = RssBound {
                bytes: 66 * 16 * 4096,
                is_per_thread: true,
            };
            assert_eq!(whole("6.1", cpus), for_one_thread);
        }
        let large_pages = rss_bound(&kernel("5.10"), false, 2, 65536);
        assert_eq!(large_pages.bytes, 66 * 65536);
        assert!(!whole("6.12", 2).is_per_thread);
        assert_eq!(bound("6.12", 2), 256 << 10);
        // A batch is 32 pages up to 16 CPUs, then twice the CPUs.
        assert_eq!(bound("6.12", 16), 16 * 32 * 4096);
        assert_eq!(bound("6.12", 17), 17 * 34 * 4096);
        assert_eq!(bound("6.12", 64), 32 << 20);
        assert_eq!(rss_bound(&kernel("7.2"), false, 2, 65536).bytes, 4 << 20);
        assert_eq!(rss_bound(&kernel("7.2"), true, 64, 4096).bytes, 0);
    }

    #[test]
    fn a_kernel_without_a_needed_member_is_refused_by_name() {
        let mut raw = KERNELS[4].1.to_vec();
        let at = memchr::memmem::find(&raw, b"\0start_boottime\0").unwrap();
        raw[at + 1] = b'S';
        let error = super::layout(&Btf::parse(raw).unwrap()).unwrap_err();
        assert_eq!(error, "struct task_struct has no member start_boottime");
    }
}
