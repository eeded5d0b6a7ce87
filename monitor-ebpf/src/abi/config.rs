//! Settings that user space hands to the BPF programs as frozen read-only globals.

use zerocopy::{Immutable, IntoBytes};

use super::{
    GroupPlaces, OomPlaces, OrphanPlaces, PathPlaces, RefusalPlaces, UsagePlaces, WatchPlaces,
};

/// A place in a kernel struct in bytes, or the number of an argument. [`absent`] ones are `u32::MAX`.
pub type Offset = u32;

/// Whether this kernel has no such member or argument.
pub const fn absent(offset: Offset) -> bool {
    offset == u32::MAX
}

/// Most CPUs whose parts of a counter are added up: each has eight bytes in a map.
pub const MOST_CPUS: u32 = 4096;

/// Counters whose parts a CPU remembers, where looks at them are skipped: a power of two.
pub const PARTS: u32 = 1024;

/// Where things are in the running kernel, found by name in its BTF.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct Layout {
    /// `task_struct.pid` (what user space calls the thread id).
    pub task_pid: Offset,
    /// `task_struct.tgid` (what user space calls the process id).
    pub task_tgid: Offset,
    /// `task_struct.start_boottime`, ns.
    pub task_start_boottime: Offset,
    /// `task_struct.group_leader`.
    pub task_group_leader: Offset,
    /// `task_struct.real_parent`.
    pub task_real_parent: Offset,
    /// First child in `task_struct.children`.
    pub task_children: Offset,
    /// Next child in `task_struct.sibling`.
    pub task_sibling: Offset,
    /// `task_struct.flags`.
    pub task_flags: Offset,
    /// `task_struct.mm`.
    pub task_mm: Offset,
    /// `task_struct.active_mm`.
    pub task_active_mm: Offset,
    /// `task_struct.signal`.
    pub task_signal: Offset,
    /// `task_struct.exit_code`.
    pub task_exit_code: Offset,
    /// `task_struct.exit_signal`.
    pub task_exit_signal: Offset,
    /// `task_struct.comm`.
    pub task_comm: Offset,
    /// `task_struct.se.sum_exec_runtime`, ns.
    pub task_sum_exec_runtime: Offset,
    /// `signal_struct.live`.
    pub signal_live: Offset,
    /// `signal_struct.flags`.
    pub signal_flags: Offset,
    /// `signal_struct.group_exit_code`.
    pub signal_group_exit_code: Offset,
    /// `signal_struct.sum_sched_runtime`, ns.
    pub signal_sum_sched_runtime: Offset,
    /// First counter of `mm_struct.rss_stat`.
    pub mm_rss_stat: Offset,
    /// From one counter to the next.
    pub mm_rss_stride: Offset,
    /// `mm_struct.total_vm`.
    pub mm_total_vm: Offset,
    /// `mm_struct.data_vm`.
    pub mm_data_vm: Offset,
    /// `mm_struct.exec_vm`.
    pub mm_exec_vm: Offset,
    /// `mm_struct.stack_vm`.
    pub mm_stack_vm: Offset,
    /// `mm_struct.pgtables_bytes`.
    pub mm_pgtables_bytes: Offset,
    /// Per-CPU parts of the first counter of `mm_struct.rss_stat`; absent before 6.2.
    pub mm_rss_parts: Offset,
    /// Lock of the first counter of `mm_struct.rss_stat`: 4 bytes that are 0 while nobody holds it; absent before 6.2.
    pub mm_rss_lock: Offset,
    /// `mm_struct.mm_users`.
    pub mm_users: Offset,
    /// `mm_struct.arg_start`.
    pub mm_arg_start: Offset,
    /// `mm_struct.arg_end`.
    pub mm_arg_end: Offset,
    /// `mm_struct.env_start`.
    pub mm_env_start: Offset,
    /// `mm_struct.env_end`.
    pub mm_env_end: Offset,
    /// `linux_binprm.filename`.
    pub bprm_filename: Offset,
    /// `bpf_array.pptrs`.
    pub array_pptrs: Offset,
    /// The number of the system call in `pt_regs` (`orig_ax`, or `syscallno` on arm64).
    pub regs_syscall: Offset,
    /// Argument `clone_flags` of `task_newtask`.
    pub arg_newtask_flags: Offset,
    /// Argument `group_dead` of `sched_process_exit`; absent before 6.16.
    pub arg_exit_group_dead: Offset,
    /// Argument `count` of `rss_stat`; absent since 6.2.
    pub arg_rss_count: Offset,
    /// What a process has used.
    pub usage: UsagePlaces,
    /// The OOM killer's victims and their limits.
    pub oom: OomPlaces,
    /// Signals, failed calls, threads that wait.
    pub watch: WatchPlaces,
    /// Which control group a process is in.
    pub group: GroupPlaces,
    /// Its working directory.
    pub path: PathPlaces,
    /// Who gets its children.
    pub orphan: OrphanPlaces,
    /// What new processes are refused for.
    pub refusal: RefusalPlaces,
}

impl Layout {
    /// Everything absent.
    pub const ABSENT: Self = Self {
        task_pid: u32::MAX,
        task_tgid: u32::MAX,
        task_start_boottime: u32::MAX,
        task_group_leader: u32::MAX,
        task_real_parent: u32::MAX,
        task_children: u32::MAX,
        task_sibling: u32::MAX,
        task_flags: u32::MAX,
        task_mm: u32::MAX,
        task_active_mm: u32::MAX,
        task_signal: u32::MAX,
        task_exit_code: u32::MAX,
        task_exit_signal: u32::MAX,
        task_comm: u32::MAX,
        task_sum_exec_runtime: u32::MAX,
        signal_live: u32::MAX,
        signal_flags: u32::MAX,
        signal_group_exit_code: u32::MAX,
        signal_sum_sched_runtime: u32::MAX,
        mm_rss_stat: u32::MAX,
        mm_rss_stride: u32::MAX,
        mm_total_vm: u32::MAX,
        mm_data_vm: u32::MAX,
        mm_exec_vm: u32::MAX,
        mm_stack_vm: u32::MAX,
        mm_pgtables_bytes: u32::MAX,
        mm_rss_parts: u32::MAX,
        mm_rss_lock: u32::MAX,
        mm_users: u32::MAX,
        mm_arg_start: u32::MAX,
        mm_arg_end: u32::MAX,
        mm_env_start: u32::MAX,
        mm_env_end: u32::MAX,
        bprm_filename: u32::MAX,
        array_pptrs: u32::MAX,
        regs_syscall: u32::MAX,
        arg_newtask_flags: u32::MAX,
        arg_exit_group_dead: u32::MAX,
        arg_rss_count: u32::MAX,
        usage: UsagePlaces::ABSENT,
        oom: OomPlaces::ABSENT,
        watch: WatchPlaces::ABSENT,
        group: GroupPlaces::ABSENT,
        path: PathPlaces::ABSENT,
        orphan: OrphanPlaces::ABSENT,
        refusal: RefusalPlaces::ABSENT,
    };
}

/// What this recording wants.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct Config {
    /// Start of the recording, ns since boot.
    pub epoch_ns: u64,
    /// Size of the ring buffer, bytes.
    pub ring_bytes: u64,
    /// Fill at which the reader is woken, bytes.
    pub wake_bytes: u64,
    /// Fill above which memory records are dropped, so that all others find room, bytes.
    pub memory_limit_bytes: u64,
    /// Fill above which all are dropped but births, images and deaths of processes, bytes.
    pub detail_limit_bytes: u64,
    /// A memory record is due when a kind has moved by this many pages ([`super::Resolution`]).
    pub step_pages: u64,
    /// Bits that hold a CPU number.
    pub cpu_bits: u32,
    /// 1: this kernel has no tracepoint `exit_mmap`, so the end of an address space is told by its counters.
    pub ends_by_counters: u32,
    /// 1: programs can be preempted, and what happens meanwhile on that CPU is left to a second one.
    pub has_later: u32,
    /// And by this share of the whole, as a number of bits to shift by.
    pub share_bits: u32,
    /// CPUs that the kernel may ever use.
    pub cpus: u32,
    /// Thread of the recorder, whose renaming tells where CPUs keep their parts.
    pub recorder_tid: u32,
    /// 1: this kernel has no tracepoint `mmap_lock_released`, so VMS is read after [`Self::mapping_calls`].
    pub vm_by_calls: u32,
    /// What page faults tell: a sum of [`Self::SEES_WRITES`] and [`Self::COUNTS_PAGES`].
    pub faults: u32,
    /// 1: processes that are there already are recorded too, and their new threads and processes.
    pub attaches: u32,
    /// 1: all of them, but kernel threads and the recorder.
    pub whole_host: u32,
    /// Numbers of the system calls that change mappings; unused ones are `u32::MAX`.
    pub mapping_calls: [u32; 8],
    /// A wait that takes this long is told of, ns.
    pub sleep_ns: u64,
    /// 1: threads that wait are seen, and when processes first run.
    pub sees_switches: u32,
    /// 1: calls of [`Self::calls`] are told of.
    pub sees_calls: u32,
    /// Numbers of the system calls that are told of, by [`Self::EXECVE`] and the like; those that this machine
    /// doesn't have are `u32::MAX`.
    pub calls: [u32; 8],
    /// 1: processes of a control group are recorded, from the moment that they are in it.
    pub groups: u32,
    /// 1: counters aren't added up at every event, but before what was skipped could reach the resolution.
    pub skips: u32,
}

impl Config {
    /// Page faults are seen, so those of writes to pages that were there are counted.
    pub const SEES_WRITES: u32 = 1;
    /// Counters lag behind, so each fault of a page that wasn't there counts as one that came.
    pub const COUNTS_PAGES: u32 = 2;
    /// Place of execve in [`Self::calls`].
    pub const EXECVE: usize = 0;
    /// Place of execveat.
    pub const EXECVEAT: usize = 1;
    /// Place of setsid.
    pub const SETSID: usize = 2;
    /// Places of fork, vfork, clone and clone3, and all from here on.
    pub const FORKS: usize = 3;
    /// Place of clone3.
    pub const CLONE3: usize = 6;
}

const _: () = {
    assert!(core::mem::size_of::<Layout>() == (39 + 12 + 16 + 15 + 14 + 11 + 6 + 18) * 4);
    assert!(core::mem::size_of::<Config>() == 176);
};
