//! Places that only some records need, as parts of the [`super::Layout`].

use zerocopy::{Immutable, IntoBytes};

use super::Offset;

/// Where a process's use of the machine is summed up: members of `signal_struct`, which has what its
/// released threads used.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct UsagePlaces {
    /// `utime`, ns in user mode as ticks sampled it.
    pub utime: Offset,
    /// `stime`, ns in the kernel as ticks sampled it.
    pub stime: Offset,
    /// `prev_cputime.stime`, ns: what the kernel last said of the time in the kernel.
    pub prev_stime: Offset,
    /// `prev_cputime.utime`, ns: the same in user mode.
    pub prev_utime: Offset,
    /// `min_flt`.
    pub min_flt: Offset,
    /// `maj_flt`.
    pub maj_flt: Offset,
    /// `nvcsw`.
    pub nvcsw: Offset,
    /// `nivcsw`.
    pub nivcsw: Offset,
    /// `ioac.rchar`, bytes; absent without `CONFIG_TASK_XACCT`.
    pub rchar: Offset,
    /// `ioac.wchar`, bytes; absent without `CONFIG_TASK_XACCT`.
    pub wchar: Offset,
    /// `ioac.read_bytes`; absent without `CONFIG_TASK_IO_ACCOUNTING`.
    pub read_bytes: Offset,
    /// `ioac.write_bytes`; absent without `CONFIG_TASK_IO_ACCOUNTING`.
    pub write_bytes: Offset,
}

/// Where a victim of the OOM killer, its control group and that group's limits are found.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct OomPlaces {
    /// Argument `task` of `mark_victim`; absent on 5.10, which has `pid` (a thread's) instead.
    pub arg_task: Offset,
    /// Argument `pid` of `mark_victim`.
    pub arg_pid: Offset,
    /// `mm_struct.owner`; absent without control groups for memory, and so are the next ones.
    pub mm_owner: Offset,
    /// `task_struct.cgroups`.
    pub task_cgroups: Offset,
    /// `css_set.subsys[memory_cgrp_id]`.
    pub css_set_memory: Offset,
    /// `mem_cgroup.css.cgroup`, in the `css` itself.
    pub css_cgroup: Offset,
    /// `mem_cgroup.css`.
    pub memcg_css: Offset,
    /// `mem_cgroup.memory`.
    pub memcg_memory: Offset,
    /// `mem_cgroup.memsw`, memory and swap together: of version 1 alone.
    pub memcg_memsw: Offset,
    /// `page_counter.usage`, pages.
    pub counter_usage: Offset,
    /// `page_counter.max`, pages.
    pub counter_max: Offset,
    /// `page_counter.parent`.
    pub counter_parent: Offset,
    /// `cgroup.root`.
    pub cgroup_root: Offset,
    /// `cgroup_root.hierarchy_id`; 0 is version 2.
    pub hierarchy_id: Offset,
    /// `cgroup.kn`.
    pub cgroup_kn: Offset,
    /// `kernfs_node.name`.
    pub kernfs_name: Offset,
}

/// What tells of signals, failed calls, and threads that wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct WatchPlaces {
    /// Argument `prev_state` of `sched_switch`; absent on 5.10.
    pub arg_prev_state: Offset,
    /// `task_struct.__state`, `state` until 5.13.
    pub task_state: Offset,
    /// `task_struct.stack`.
    pub task_stack: Offset,
    /// `task_struct.sighand`; absent like the next three if one of them is.
    pub task_sighand: Offset,
    /// First of `sighand_struct.action`.
    pub sighand_action: Offset,
    /// From one action to the next.
    pub action_size: Offset,
    /// `k_sigaction.sa.sa_handler`.
    pub action_handler: Offset,
    /// `kernel_siginfo.si_code`.
    pub siginfo_code: Offset,
    /// `task_struct.thread_pid`; absent like the next three if one of them is.
    pub task_thread_pid: Offset,
    /// `pid.level`.
    pub pid_level: Offset,
    /// `pid.numbers[0].nr`.
    pub pid_numbers: Offset,
    /// From one number to the next.
    pub upid_size: Offset,
    /// First argument of a system call in `pt_regs`, also when it ends.
    pub regs_first: Offset,
    /// Second argument of a system call in `pt_regs`, also when it ends.
    pub regs_second: Offset,
    /// `task_struct.thread_info.status`, which marks system calls of 32-bit programs on x86-64.
    pub task_status: Offset,
}

/// Which control groups a process is in, and its threads.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct GroupPlaces {
    /// `task_struct.cgroups`; absent like all the others if one of them is.
    pub task_cgroups: Offset,
    /// First link in `css_set.cgrp_links`.
    pub css_set_links: Offset,
    /// Next link in `cgrp_cset_link.cgrp_link`.
    pub link_next: Offset,
    /// `cgrp_cset_link.cgrp`.
    pub link_cgroup: Offset,
    /// `cgroup.root`.
    pub cgroup_root: Offset,
    /// `cgroup_root.hierarchy_id`; 0 is version 2.
    pub hierarchy_id: Offset,
    /// `cgroup.kn`.
    pub cgroup_kn: Offset,
    /// `kernfs_node.id`: the inode number of the group's folder.
    pub kernfs_id: Offset,
    /// `kernfs_node.name`.
    pub kernfs_name: Offset,
    /// `cgroup.self.parent`: the `css` of the group above.
    pub cgroup_parent: Offset,
    /// `cgroup_subsys_state.cgroup`.
    pub css_cgroup: Offset,
    /// First thread in `signal_struct.thread_head`.
    pub signal_threads: Offset,
    /// Next thread in `task_struct.thread_node`.
    pub task_thread: Offset,
    /// Zero.
    pub reserved: u32,
}

/// Who gets the children of a process that ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct OrphanPlaces {
    /// Byte of `signal_struct.has_child_subreaper`; absent like all the others if one of them is.
    pub has_subreaper: Offset,
    /// Its bits in that byte.
    pub has_subreaper_bits: u32,
    /// Byte of `signal_struct.is_child_subreaper`.
    pub is_subreaper: Offset,
    /// Its bits in that byte.
    pub is_subreaper_bits: u32,
    /// `pid.numbers[0].ns`.
    pub number_namespace: Offset,
    /// `pid_namespace.child_reaper`.
    pub namespace_reaper: Offset,
}

impl OrphanPlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        has_subreaper: u32::MAX,
        has_subreaper_bits: 0,
        is_subreaper: u32::MAX,
        is_subreaper_bits: 0,
        number_namespace: u32::MAX,
        namespace_reaper: u32::MAX,
    };
}

/// What a new process or thread may be refused for: a user's limit, a namespace's numbers, a group's limit.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct RefusalPlaces {
    /// `task_struct.real_cred`; absent like the next ones up to [`Self::signal_limit`] if one of them is.
    pub task_cred: Offset,
    /// `cred.uid`, as the first user namespace has it.
    pub cred_uid: Offset,
    /// `cred.cap_effective`, a set of 64 bits.
    pub cred_effective: Offset,
    /// `cred.user_ns`.
    pub cred_namespace: Offset,
    /// `user_namespace.level`; 0 is the first one.
    pub user_namespace_level: Offset,
    /// `cred.ucounts`; in 5.10 `cred.user`.
    pub cred_counts: Offset,
    /// Threads of a user: `ucounts.rlimit[UCOUNT_RLIMIT_NPROC]`; in 5.10 `user_struct.processes`.
    pub counts_tasks: Offset,
    /// Its size, bytes.
    pub counts_bytes: u32,
    /// `signal_struct.rlim[RLIMIT_NPROC].rlim_cur`.
    pub signal_limit: Offset,
    /// `task_struct.nsproxy`; absent like the next two if one of them is.
    pub task_proxy: Offset,
    /// `nsproxy.pid_ns_for_children`.
    pub proxy_namespace: Offset,
    /// `pid_namespace.pid_allocated`.
    pub namespace_pids: Offset,
    /// `pid_namespace.pid_max`; absent before 6.14.
    pub namespace_pid_max: Offset,
    /// `css_set.subsys[pids_cgrp_id]`; absent like all the next ones, or like the places of [`OomPlaces`] that lead to
    /// a group's name, if one of them is.
    pub css_set_pids: Offset,
    /// `pids_cgroup.css.parent`, in the `css` itself.
    pub css_parent: Offset,
    /// `pids_cgroup.css`.
    pub group_css: Offset,
    /// `pids_cgroup.counter`.
    pub group_tasks: Offset,
    /// `pids_cgroup.limit`.
    pub group_limit: Offset,
}

impl RefusalPlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        task_cred: u32::MAX,
        cred_uid: u32::MAX,
        cred_effective: u32::MAX,
        cred_namespace: u32::MAX,
        user_namespace_level: u32::MAX,
        cred_counts: u32::MAX,
        counts_tasks: u32::MAX,
        counts_bytes: 0,
        signal_limit: u32::MAX,
        task_proxy: u32::MAX,
        proxy_namespace: u32::MAX,
        namespace_pids: u32::MAX,
        namespace_pid_max: u32::MAX,
        css_set_pids: u32::MAX,
        css_parent: u32::MAX,
        group_css: u32::MAX,
        group_tasks: u32::MAX,
        group_limit: u32::MAX,
    };
}

/// Where a process's working directory is, and what leads from there to the top.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct PathPlaces {
    /// `task_struct.fs`; absent like all the others if one of them is.
    pub task_fs: Offset,
    /// `fs_struct.pwd.mnt`, which points to a [`Self::mount_inner`].
    pub pwd_mount: Offset,
    /// `fs_struct.pwd.dentry`.
    pub pwd_folder: Offset,
    /// `dentry.d_parent`.
    pub folder_parent: Offset,
    /// `dentry.d_name.name`.
    pub folder_name: Offset,
    /// `dentry.d_hash.pprev`; null: it has been removed.
    pub folder_hash: Offset,
    /// `mount.mnt`.
    pub mount_inner: Offset,
    /// `mount.mnt_parent`.
    pub mount_parent: Offset,
    /// `mount.mnt_mountpoint`.
    pub mount_point: Offset,
    /// `mount.mnt_ns`.
    pub mount_namespace: Offset,
    /// `vfsmount.mnt_root`.
    pub inner_root: Offset,
}

impl PathPlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        task_fs: u32::MAX,
        pwd_mount: u32::MAX,
        pwd_folder: u32::MAX,
        folder_parent: u32::MAX,
        folder_name: u32::MAX,
        folder_hash: u32::MAX,
        mount_inner: u32::MAX,
        mount_parent: u32::MAX,
        mount_point: u32::MAX,
        mount_namespace: u32::MAX,
        inner_root: u32::MAX,
    };
}

/// Most bytes of a control group's path that is waited for, with NUL.
pub const GROUP_PATH: usize = 512;
/// Stands for whichever hierarchy.
pub const ANY_HIERARCHY: u32 = u32::MAX;

impl GroupPlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        task_cgroups: u32::MAX,
        css_set_links: u32::MAX,
        link_next: u32::MAX,
        link_cgroup: u32::MAX,
        cgroup_root: u32::MAX,
        hierarchy_id: u32::MAX,
        cgroup_kn: u32::MAX,
        kernfs_id: u32::MAX,
        kernfs_name: u32::MAX,
        cgroup_parent: u32::MAX,
        css_cgroup: u32::MAX,
        signal_threads: u32::MAX,
        task_thread: u32::MAX,
        reserved: 0,
    };
}

impl UsagePlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        utime: u32::MAX,
        stime: u32::MAX,
        prev_stime: u32::MAX,
        prev_utime: u32::MAX,
        min_flt: u32::MAX,
        maj_flt: u32::MAX,
        nvcsw: u32::MAX,
        nivcsw: u32::MAX,
        rchar: u32::MAX,
        wchar: u32::MAX,
        read_bytes: u32::MAX,
        write_bytes: u32::MAX,
    };
}

impl OomPlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        arg_task: u32::MAX,
        arg_pid: u32::MAX,
        mm_owner: u32::MAX,
        task_cgroups: u32::MAX,
        css_set_memory: u32::MAX,
        css_cgroup: u32::MAX,
        memcg_css: u32::MAX,
        memcg_memory: u32::MAX,
        memcg_memsw: u32::MAX,
        counter_usage: u32::MAX,
        counter_max: u32::MAX,
        counter_parent: u32::MAX,
        cgroup_root: u32::MAX,
        hierarchy_id: u32::MAX,
        cgroup_kn: u32::MAX,
        kernfs_name: u32::MAX,
    };
}

impl WatchPlaces {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        arg_prev_state: u32::MAX,
        task_state: u32::MAX,
        task_stack: u32::MAX,
        task_sighand: u32::MAX,
        sighand_action: u32::MAX,
        action_size: u32::MAX,
        action_handler: u32::MAX,
        siginfo_code: u32::MAX,
        task_thread_pid: u32::MAX,
        pid_level: u32::MAX,
        pid_numbers: u32::MAX,
        upid_size: u32::MAX,
        regs_first: u32::MAX,
        regs_second: u32::MAX,
        task_status: u32::MAX,
    };
}
