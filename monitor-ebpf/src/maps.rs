//! Maps and settings. Sizes here are defaults: user space sets them before loading.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf},
};
use monitor_ebpf::abi::{
    AddressSpace, ChargeState, Config, GROUP_PATH, Kind, Layout, MOST_CPUS, Rescue, ThreadState,
    TrackedProcess, TreeSums,
};

use crate::{call::PathRoom, environment, exec::Scratch, kernel::oom::Limit, title};

/// Where things are in this kernel. Written by user space before loading, then frozen.
#[unsafe(no_mangle)]
static LAYOUT: Layout = Layout::ABSENT;

/// What this recording wants. Written by user space before loading, then frozen.
#[unsafe(no_mangle)]
static CONFIG: Config = Config {
    epoch_ns: 0,
    ring_bytes: 0,
    wake_bytes: 0,
    memory_limit_bytes: 0,
    detail_limit_bytes: 0,
    step_pages: 0,
    cpu_bits: 0,
    ends_by_counters: 0,
    has_later: 0,
    share_bits: 0,
    cpus: 0,
    recorder_tid: 0,
    vm_by_calls: 0,
    faults: 0,
    attaches: 0,
    whole_host: 0,
    mapping_calls: [0; 8],
    sleep_ns: 0,
    sees_switches: 0,
    sees_calls: 0,
    calls: [0; 8],
    groups: 0,
    skips: 0,
};

/// The frozen [`Layout`]: its fields are constants to the verifier, not to the compiler, so each
/// read of one must be volatile.
#[inline(always)]
pub(crate) fn layout() -> &'static Layout {
    &LAYOUT
}

/// The frozen [`Config`]; volatile reads too.
#[inline(always)]
pub(crate) fn config() -> &'static Config {
    &CONFIG
}

/// Records on their way to user space.
#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(16 << 20, 0);

/// Records that found no room, per CPU, by [`Kind`].
#[map]
pub(crate) static LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(Kind::COUNT as u32, 0);

/// Entries that found no room, per CPU: 0 processes, 1 address spaces, 2 threads.
#[map]
pub(crate) static FULL: PerCpuArray<u64> = PerCpuArray::with_max_entries(3, 0);

/// Traced processes by pid, from before they can run until the kernel frees them.
#[map]
pub(crate) static PROCESSES: HashMap<u32, TrackedProcess> = HashMap::with_max_entries(65_536, 0);

/// Threads of traced processes by their ids, from before they can run until they end. Only where
/// [`Config::sees_switches`].
#[map]
pub(crate) static THREADS: HashMap<u32, ThreadState> = HashMap::with_max_entries(65_536, 0);

/// From the beginning of a thread's stack to the registers of the system call that it is in; 0: not known yet.
#[map]
pub(crate) static REGISTERS: Array<u64> = Array::with_max_entries(1, 0);

/// Processes that were named to be recorded, by pid; what they descend from isn't. The values say nothing.
#[map]
pub(crate) static TARGETS: HashMap<u32, u8> = HashMap::with_max_entries(1024, 0);

/// Processes that lost their parent while it was looked who is there, by pid: when they started.
#[map]
pub(crate) static CLAIMED: HashMap<u32, u64> = HashMap::with_max_entries(65_536, 0);

/// 0: processes found so far that were there when the walk began which found them; 1: when the present walk began, ns
/// since boot, or 0 if it isn't being looked who is there.
#[map]
pub(crate) static FOUND: Array<u64> = Array::with_max_entries(2, 0);

/// Control groups that are to be recorded once they are made, by their path or by the last part of it, which has no
/// slash. The value is the number of the hierarchy that is meant; [`monitor_ebpf::abi::ANY_HIERARCHY`]: the first that has one.
#[map]
pub(crate) static WANTED_GROUPS: HashMap<[u8; GROUP_PATH], u32> = HashMap::with_max_entries(64, 0);

/// Control groups that are recorded, with all groups below them, by their number in [`HIERARCHY`].
#[map]
pub(crate) static GROUPS: HashMap<u64, u8> = HashMap::with_max_entries(1024, 0);

/// Number of the hierarchy of [`GROUPS`] and one more; 0: there are none yet.
#[map]
pub(crate) static HIERARCHY: Array<u32> = Array::with_max_entries(1, 0);

/// Path of the first of [`GROUPS`] that was made while it was waited for.
#[map]
pub(crate) static MADE_GROUP: Array<[u8; GROUP_PATH]> = Array::with_max_entries(1, 0);

/// Room for a path or a name of a control group.
#[map]
pub(crate) static GROUP_ROOM: PerCpuArray<[u8; GROUP_PATH]> = PerCpuArray::with_max_entries(1, 0);

/// Address spaces of traced processes by the address of their `mm_struct`, until they are torn
/// down. The address is reused at once after that, so an entry must not outlive `exit_mmap`.
#[map]
pub(crate) static ADDRESS_SPACES: HashMap<u64, AddressSpace> = HashMap::with_max_entries(65_536, 0);

/// Room to put an entry of [`ADDRESS_SPACES`] together: with it, a program's stack would be too large.
#[map]
pub(crate) static NEW_SPACE: PerCpuArray<AddressSpace> = PerCpuArray::with_max_entries(1, 0);

/// Room to put an exec record together: it is larger than a BPF stack. One for each [`crate::pass::Pass`].
#[map]
pub(crate) static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(3, 0);

/// Room to put a record with a path together.
#[map]
pub(crate) static PATHS: PerCpuArray<PathRoom> = PerCpuArray::with_max_entries(1, 0);

/// Room to put a piece of an environment together.
#[map]
pub(crate) static ENV_SCRATCH: PerCpuArray<environment::Scratch> =
    PerCpuArray::with_max_entries(1, 0);

/// Room to put a record with a title together.
#[map]
pub(crate) static TITLES: PerCpuArray<title::Room> = PerCpuArray::with_max_entries(1, 0);

/// Threads whose beginning or end a program has reported and the last one hasn't seen yet.
#[map]
pub(crate) static REPORTED: HashMap<u64, u8> = HashMap::with_max_entries(4096, 0);

/// The last change of a counter that the first program saw on this CPU.
#[map]
pub(crate) static RSS_SEEN: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Events that the kernel didn't show to the first program and a later one reported, per CPU, by
/// [`Rescue`].
#[map]
pub(crate) static RESCUED: PerCpuArray<u64> = PerCpuArray::with_max_entries(Rescue::COUNT, 0);

/// Sums over all address spaces.
#[map]
pub(crate) static TREE: Array<TreeSums> = Array::with_max_entries(1, 0);

/// What the command's memory control group is charged.
#[map]
pub(crate) static CHARGE: Array<ChargeState> = Array::with_max_entries(1, 0);

/// What a CPU adds to an address that stands for its own part of something, by CPU. One value: a look-up for each CPU
/// would be a way of its own to the verifier.
#[map]
pub(crate) static CPU_OFFSETS: Array<[u64; MOST_CPUS as usize]> = Array::with_max_entries(1, 0);

/// Looks at a counter that didn't hold still in any try, per CPU.
#[map]
pub(crate) static UNSETTLED: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// What each CPU kept to itself of counters when it saw the last change of them, by [`crate::skip::place`].
#[map]
pub(crate) static PARTS: PerCpuArray<i64> = PerCpuArray::with_max_entries(1, 0);

/// A kind of memory that the verifier is to forget.
#[map]
pub(crate) static KIND: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// Something of which each CPU has a part: what [`CPU_OFFSETS`] is found by.
#[map]
pub(crate) static CPU_CELL: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Room for the beginning of a `struct bpf_array`.
#[map]
pub(crate) static ARRAY_COPY: Array<[u8; ARRAY_BYTES]> = Array::with_max_entries(1, 0);

/// A `struct bpf_array` up to its first pointer has 312 bytes at most, from 5.10 to 7.2.
pub(crate) const ARRAY_BYTES: usize = 1024;

/// What a thread has last reclaimed pages for, by thread id: one of [`monitor_ebpf::abi::OomScope`].
///
/// The kernel drops the entries that weren't used for longest. A victim of the OOM killer is chosen by
/// a thread that has just reclaimed; if its entry is gone, what ran out isn't known.
#[map]
pub(crate) static RECLAIMS: LruHashMap<u32, u32> = LruHashMap::with_max_entries(8192, 0);

/// The limit that a victim of the OOM killer has run into, while it is looked for.
#[map]
pub(crate) static LIMIT: PerCpuArray<Limit> = PerCpuArray::with_max_entries(1, 0);
