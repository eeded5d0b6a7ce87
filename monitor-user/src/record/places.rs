//! Where the running kernel keeps what a process has used, and what tells of the OOM killer, of signals, of calls
//! and of waits.
//!
//! Nothing of it must be there: what isn't found is not known in the recording.

use monitor_ebpf::abi::{
    GroupPlaces, OomPlaces, OrphanPlaces, PathPlaces, UsagePlaces, WatchPlaces,
};

use crate::host::btf::Btf;

/// Size of a pointer, bytes.
const POINTER: u32 = 8;

fn member(btf: &Btf, of: &str, path: &str) -> u32 {
    btf.member(of, path)
        .map_or(u32::MAX, |member| member.offset)
}

/// Sums over the threads of a process.
pub(super) fn usage(btf: &Btf) -> UsagePlaces {
    let signal = |path| member(btf, "signal_struct", path);
    UsagePlaces {
        utime: signal("utime"),
        stime: signal("stime"),
        prev_stime: signal("prev_cputime.stime"),
        prev_utime: signal("prev_cputime.utime"),
        min_flt: signal("min_flt"),
        maj_flt: signal("maj_flt"),
        nvcsw: signal("nvcsw"),
        nivcsw: signal("nivcsw"),
        rchar: signal("ioac.rchar"),
        wchar: signal("ioac.wchar"),
        read_bytes: signal("ioac.read_bytes"),
        write_bytes: signal("ioac.write_bytes"),
    }
}

/// A victim and its limits; the limits are all there or all absent.
pub(super) fn oom(btf: &Btf) -> OomPlaces {
    let argument = |name| btf.argument("mark_victim", name).unwrap_or(u32::MAX);
    OomPlaces {
        arg_task: argument("task"),
        arg_pid: argument("pid"),
        ..limits(btf).unwrap_or(OomPlaces::ABSENT)
    }
}

fn limits(btf: &Btf) -> Option<OomPlaces> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    let memory = btf.enumerator("cgroup_subsys_id", "memory_cgrp_id")?;
    Some(OomPlaces {
        mm_owner: member("mm_struct", "owner")?,
        task_cgroups: member("task_struct", "cgroups")?,
        css_set_memory: memory
            .checked_mul(POINTER)?
            .checked_add(member("css_set", "subsys")?)?,
        css_cgroup: member("cgroup_subsys_state", "cgroup")?,
        memcg_css: member("mem_cgroup", "css")?,
        memcg_memory: member("mem_cgroup", "memory")?,
        memcg_memsw: member("mem_cgroup", "memsw")?,
        counter_usage: member("page_counter", "usage")?,
        counter_max: member("page_counter", "max")?,
        counter_parent: member("page_counter", "parent")?,
        cgroup_root: member("cgroup", "root")?,
        hierarchy_id: member("cgroup_root", "hierarchy_id")?,
        cgroup_kn: member("cgroup", "kn")?,
        kernfs_name: member("kernfs_node", "name")?,
        ..OomPlaces::ABSENT
    })
}

/// Signals, failed calls, waits. What belongs together is all there or all absent.
pub(super) fn watch(btf: &Btf) -> WatchPlaces {
    let either = |of: &str, paths: [&str; 2]| {
        let place = paths.into_iter().find_map(|path| btf.member(of, path));
        place.map_or(u32::MAX, |member| member.offset)
    };
    let handlers = handlers(btf).unwrap_or(WatchPlaces::ABSENT);
    let pids = pids(btf).unwrap_or(WatchPlaces::ABSENT);
    WatchPlaces {
        arg_prev_state: btf
            .argument("sched_switch", "prev_state")
            .unwrap_or(u32::MAX),
        // Renamed in 5.14.
        task_state: either("task_struct", ["__state", "state"]),
        task_stack: member(btf, "task_struct", "stack"),
        siginfo_code: member(btf, "kernel_siginfo", "si_code"),
        // On arm64 a call's result takes the place of its first argument, which is kept elsewhere.
        regs_first: either("pt_regs", ["di", "orig_x0"]),
        regs_second: btf
            .member("pt_regs", "si")
            .map(|member| member.offset)
            .or_else(|| btf.member("pt_regs", "regs")?.offset.checked_add(8))
            .unwrap_or(u32::MAX),
        task_status: member(btf, "task_struct", "thread_info.status"),
        task_sighand: handlers.task_sighand,
        sighand_action: handlers.sighand_action,
        action_size: handlers.action_size,
        action_handler: handlers.action_handler,
        ..pids
    }
}

/// Control groups and threads, all there or all absent.
pub(super) fn group(btf: &Btf) -> GroupPlaces {
    groups(btf).unwrap_or(GroupPlaces::ABSENT)
}

fn groups(btf: &Btf) -> Option<GroupPlaces> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    Some(GroupPlaces {
        task_cgroups: member("task_struct", "cgroups")?,
        // Heads of lists, which begin with the pointer to the first or next one.
        css_set_links: member("css_set", "cgrp_links")?,
        link_next: member("cgrp_cset_link", "cgrp_link")?,
        link_cgroup: member("cgrp_cset_link", "cgrp")?,
        cgroup_root: member("cgroup", "root")?,
        hierarchy_id: member("cgroup_root", "hierarchy_id")?,
        cgroup_kn: member("cgroup", "kn")?,
        kernfs_id: member("kernfs_node", "id")?,
        kernfs_name: member("kernfs_node", "name")?,
        cgroup_parent: member("cgroup", "self.parent")?,
        css_cgroup: member("cgroup_subsys_state", "cgroup")?,
        signal_threads: member("signal_struct", "thread_head")?,
        task_thread: member("task_struct", "thread_node")?,
        reserved: 0,
    })
}

/// Working directories, all there or all absent.
pub(super) fn path(btf: &Btf) -> PathPlaces {
    paths(btf).unwrap_or(PathPlaces::ABSENT)
}

fn paths(btf: &Btf) -> Option<PathPlaces> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    Some(PathPlaces {
        task_fs: member("task_struct", "fs")?,
        pwd_mount: member("fs_struct", "pwd.mnt")?,
        pwd_folder: member("fs_struct", "pwd.dentry")?,
        folder_parent: member("dentry", "d_parent")?,
        folder_name: member("dentry", "d_name.name")?,
        folder_hash: member("dentry", "d_hash.pprev")?,
        mount_inner: member("mount", "mnt")?,
        mount_parent: member("mount", "mnt_parent")?,
        mount_point: member("mount", "mnt_mountpoint")?,
        mount_namespace: member("mount", "mnt_ns")?,
        inner_root: member("vfsmount", "mnt_root")?,
    })
}

/// Who gets orphans, all there or all absent.
pub(super) fn orphan(btf: &Btf) -> OrphanPlaces {
    orphans(btf).unwrap_or(OrphanPlaces::ABSENT)
}

fn orphans(btf: &Btf) -> Option<OrphanPlaces> {
    // Bit fields until 6.18, bytes in 7.2.
    let flag = |name| {
        let member = btf.member("signal_struct", name)?;
        Some((member.offset, member.flag_bits()?))
    };
    let (has_subreaper, has_subreaper_bits) = flag("has_child_subreaper")?;
    let (is_subreaper, is_subreaper_bits) = flag("is_child_subreaper")?;
    let numbers = btf.member("pid", "numbers")?;
    Some(OrphanPlaces {
        has_subreaper,
        has_subreaper_bits,
        is_subreaper,
        is_subreaper_bits,
        number_namespace: btf.within(numbers, "ns")?.offset,
        namespace_reaper: btf.member("pid_namespace", "child_reaper")?.offset,
    })
}

fn handlers(btf: &Btf) -> Option<WatchPlaces> {
    let actions = btf.member("sighand_struct", "action")?;
    Some(WatchPlaces {
        task_sighand: btf.member("task_struct", "sighand")?.offset,
        sighand_action: actions.offset,
        action_size: btf.element_size(actions)?,
        action_handler: btf.member("k_sigaction", "sa.sa_handler")?.offset,
        ..WatchPlaces::ABSENT
    })
}

fn pids(btf: &Btf) -> Option<WatchPlaces> {
    let numbers = btf.member("pid", "numbers")?;
    Some(WatchPlaces {
        task_thread_pid: btf.member("task_struct", "thread_pid")?.offset,
        pid_level: btf.member("pid", "level")?.offset,
        pid_numbers: btf.within(numbers, "nr")?.offset,
        upid_size: btf.element_size(numbers)?,
        ..WatchPlaces::ABSENT
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::btf::fixtures::KERNELS;

    /// BTF of the newest kernel, in which a name isn't found.
    fn without(name: &str) -> Btf {
        let mut raw = KERNELS[4].1.to_vec();
        let needle = [b"\0", name.as_bytes(), b"\0"].concat();
        let at = memchr::memmem::find(&raw, &needle).unwrap();
        raw[at + 1] = b'?';
        Btf::parse(raw).unwrap()
    }

    #[test]
    fn what_a_kernel_does_not_count_is_absent_and_the_rest_is_there() {
        let usage = usage(&without("read_bytes"));
        assert_eq!(usage.read_bytes, u32::MAX);
        assert!(usage.write_bytes != u32::MAX && usage.min_flt != u32::MAX);
    }

    #[test]
    fn without_one_step_there_is_no_way_to_the_top() {
        for name in ["mnt_mountpoint", "d_parent", "pprev"] {
            assert_eq!(path(&without(name)), PathPlaces::ABSENT, "{name}");
        }
        assert!(path(&without("read_bytes")) != PathPlaces::ABSENT);
    }

    #[test]
    fn limits_are_all_there_or_all_absent() {
        for name in ["memory_cgrp_id", "owner", "memsw", "hierarchy_id"] {
            let found = oom(&without(name));
            let expected = OomPlaces {
                arg_task: 0,
                ..OomPlaces::ABSENT
            };
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn who_gets_orphans_is_known_as_a_whole_or_not() {
        for name in ["has_child_subreaper", "child_reaper", "numbers"] {
            assert_eq!(orphan(&without(name)), OrphanPlaces::ABSENT, "{name}");
        }
    }

    #[test]
    fn places_of_control_groups_are_all_there_or_all_absent() {
        for name in ["cgrp_links", "cgrp_cset_link", "thread_head", "kernfs_node"] {
            assert_eq!(group(&without(name)), GroupPlaces::ABSENT, "{name}");
        }
        for (version, raw) in KERNELS {
            let found = group(&Btf::parse(raw.to_vec()).unwrap());
            assert_ne!(found.css_set_links, u32::MAX, "{version}");
        }
    }
}
