//! What the hooks and their places are on each kernel.
//!
//! Expected offsets were computed from `bpftool btf dump` of the untrimmed BTF.

use monitor_ebpf::abi::{
    GroupPlaces, OomPlaces, OrphanPlaces, PathPlaces, RefusalPlaces, UsagePlaces, WatchPlaces,
};

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
    task_children: 2264,
    task_sibling: 2280,
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
    mm_rss_lock: ABSENT,
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
    group: GroupPlaces {
        task_cgroups: 3328,
        css_set_links: 456,
        link_next: 32,
        link_cgroup: 0,
        cgroup_root: 480,
        hierarchy_id: 12,
        cgroup_kn: 248,
        kernfs_id: 104,
        kernfs_name: 16,
        cgroup_parent: 192,
        css_cgroup: 0,
        signal_threads: 16,
        task_thread: 2424,
        reserved: 0,
    },
    path: PathPlaces {
        task_fs: 2800,
        pwd_mount: 40,
        pwd_folder: 48,
        folder_parent: 24,
        folder_name: 40,
        folder_hash: 16,
        mount_inner: 32,
        mount_parent: 16,
        mount_point: 24,
        mount_namespace: 224,
        inner_root: 0,
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
    orphan: OrphanPlaces {
        has_subreaper: 120,
        has_subreaper_bits: 2,
        is_subreaper: 120,
        is_subreaper_bits: 1,
        number_namespace: 104,
        namespace_reaper: 56,
    },
    refusal: RefusalPlaces {
        task_cred: 2712,
        cred_uid: 8,
        cred_effective: 60,
        cred_namespace: 136,
        user_namespace_level: 232,
        // Of the user, not of the user in a namespace.
        cred_counts: 128,
        counts_tasks: 4,
        counts_bytes: 4,
        // The seventh of its limits, 16 bytes each.
        signal_limit: 672 + 6 * 16,
        task_proxy: 2824,
        proxy_namespace: 32,
        namespace_pids: 48,
        namespace_pid_max: ABSENT,
        // `pids_cgrp_id` is 11 in all five kernels.
        css_set_pids: 11 * 8,
        css_parent: 192,
        group_css: 0,
        group_tasks: 200,
        group_limit: 208,
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
    task_children: 2448,
    task_sibling: 2464,
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
    group: GroupPlaces {
        task_cgroups: 3600,
        css_set_links: 480,
        cgroup_root: 656,
        task_thread: 2608,
        ..V5_10.group
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
    path: PathPlaces {
        task_fs: 3040,
        mount_namespace: 232,
        ..V5_10.path
    },
    orphan: OrphanPlaces {
        has_subreaper: 128,
        is_subreaper: 128,
        namespace_reaper: 48,
        ..V5_10.orphan
    },
    refusal: RefusalPlaces {
        task_cred: 2952,
        user_namespace_level: 224,
        cred_counts: 144,
        counts_tasks: 128,
        counts_bytes: 8,
        signal_limit: 688 + 6 * 16,
        task_proxy: 3064,
        namespace_pids: 40,
        ..V5_10.refusal
    },
    ..V5_10
};

const V6_12: Layout = Layout {
    task_pid: 2432,
    task_tgid: 2436,
    task_group_leader: 2496,
    task_real_parent: 2448,
    task_children: 2464,
    task_sibling: 2480,
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
    mm_rss_lock: 824,
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
    group: GroupPlaces {
        task_cgroups: 3584,
        cgroup_root: 720,
        cgroup_kn: 256,
        kernfs_id: 96,
        ..V6_1.group
    },
    watch: WatchPlaces {
        task_thread_pid: 2536,
        pid_numbers: 112,
        ..V6_1.watch
    },
    path: PathPlaces {
        task_fs: 3040,
        mount_namespace: 240,
        ..V6_1.path
    },
    orphan: OrphanPlaces {
        number_namespace: 120,
        ..V6_1.orphan
    },
    refusal: RefusalPlaces {
        cred_effective: 64,
        cred_namespace: 144,
        user_namespace_level: 200,
        cred_counts: 152,
        signal_limit: 680 + 6 * 16,
        group_tasks: 208,
        group_limit: 216,
        ..V6_1.refusal
    },
    ..V6_1
};

const V6_18: Layout = Layout {
    task_pid: 1264,
    task_tgid: 1268,
    task_start_boottime: 1560,
    task_group_leader: 1328,
    task_real_parent: 1280,
    task_children: 1296,
    task_sibling: 1312,
    task_mm: 1136,
    task_active_mm: 1144,
    task_signal: 1848,
    task_exit_code: 1164,
    task_exit_signal: 1168,
    task_comm: 1752,
    task_sum_exec_runtime: 232,
    mm_rss_stat: 976,
    mm_rss_parts: 1000,
    mm_rss_lock: 968,
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
    group: GroupPlaces {
        task_cgroups: 2376,
        css_set_links: 432,
        cgroup_root: 696,
        cgroup_parent: 184,
        task_thread: 1440,
        ..V6_12.group
    },
    watch: WatchPlaces {
        task_sighand: 1856,
        task_thread_pid: 1368,
        pid_numbers: 144,
        ..V6_12.watch
    },
    path: PathPlaces {
        task_fs: 1816,
        mount_namespace: 232,
        ..V6_12.path
    },
    orphan: OrphanPlaces {
        number_namespace: 152,
        ..V6_12.orphan
    },
    refusal: RefusalPlaces {
        task_cred: 1728,
        counts_tasks: 152,
        signal_limit: 688 + 6 * 16,
        task_proxy: 1840,
        namespace_pid_max: 68,
        css_parent: 184,
        ..V6_12.refusal
    },
    ..V6_12
};

const V7_2: Layout = Layout {
    task_pid: 2808,
    task_tgid: 2812,
    task_start_boottime: 3160,
    task_group_leader: 2872,
    task_real_parent: 2824,
    task_children: 2840,
    task_sibling: 2856,
    task_mm: 2680,
    task_active_mm: 2688,
    task_signal: 3448,
    task_exit_code: 2708,
    task_exit_signal: 2712,
    task_comm: 3344,
    signal_sum_sched_runtime: 696,
    mm_rss_stat: 1216,
    mm_rss_parts: 1240,
    mm_rss_lock: 1208,
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
    group: GroupPlaces {
        task_cgroups: 4000,
        css_set_links: 480,
        cgroup_root: 808,
        cgroup_kn: 296,
        task_thread: 2984,
        ..V6_18.group
    },
    watch: WatchPlaces {
        task_sighand: 3456,
        task_thread_pid: 2912,
        pid_numbers: 128,
        ..V6_18.watch
    },
    path: PathPlaces {
        task_fs: 3408,
        mount_namespace: 232,
        ..V6_18.path
    },
    orphan: OrphanPlaces {
        has_subreaper: 129,
        has_subreaper_bits: 0xff,
        is_subreaper_bits: 0xff,
        number_namespace: 136,
        namespace_reaper: 160,
        ..V6_18.orphan
    },
    refusal: RefusalPlaces {
        task_cred: 3320,
        signal_limit: 704 + 6 * 16,
        task_proxy: 3440,
        namespace_pid_max: 180,
        group_tasks: 248,
        group_limit: 256,
        ..V6_18.refusal
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
    let has = |tracepoint| KERNELS.map(|(version, _)| kernel(version).has_tracepoint(tracepoint));
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
