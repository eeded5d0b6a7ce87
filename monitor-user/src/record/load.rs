//! Loads the BPF programs and attaches them.

use std::{collections::BTreeMap, io, path::Path, time::Instant};

use aya::{
    Btf as LoaderBtf, Ebpf, EbpfLoader,
    maps::{Array, HashMap, MapData, PerCpuArray, RingBuf},
    programs::{BtfTracePoint, ProgramError},
};
use aya_log::EbpfLogger;
use log::Log;
use monitor_ebpf::abi::{
    ChargeState, Config, Layout, MOST_CPUS, Rescue, ThreadState, TrackedProcess, TreeSums, absent,
};
use syscalls::Sysno;
use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

use super::{
    attach::Attach,
    cpu_parts,
    hooks::{
        HOOKS, RssBound, SYS_EXIT, has_per_cpu_counters, layout, preempts_programs, rss_bound,
    },
    object::object,
    verify::{Exactness, Kept},
};
use crate::{
    event::Recording,
    host::{
        btf::{Btf, BtfError},
        facts,
    },
};

/// The hook that shows the end of an address space.
const MM_END: &str = "exit_mmap";
/// The hook that shows programs, and what reads their environment there.
const EXEC: &str = "sched_process_exec";
const ENVIRONMENT: &str = "sched_process_exec_env";
/// The hook that shows what is resident.
const RSS: &str = "rss_stat";
/// The hook that shows when what is mapped may have changed.
const MM_LOCK: &str = "mmap_lock_released";
/// The hook that shows which thread has a CPU.
const SWITCH: &str = "sched_switch";
/// A thread that waits for this long is told of, ns.
const SLEEP_NS: u64 = 100_000_000;
/// The hooks that show copies on write.
const FAULTS: [&str; 2] = ["page_fault_user", "page_fault_kernel"];
/// Where the kernel describes its own types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Why the kernel side couldn't be put in place.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The kernel's types.
    #[error("this kernel doesn't tell its types (CONFIG_DEBUG_INFO_BTF)")]
    Btf(#[from] BtfError),
    /// Something that recording can't do without.
    #[error("this kernel can't be recorded: {0}")]
    Unsupported(String),
    /// Not allowed.
    #[error("loading BPF programs needs root: run `sudo rtrace record -- COMMAND`")]
    NotPermitted,
    /// The kernel keeps its memory from programs.
    #[error(
        "the kernel lets no program read its memory, as one that is locked down for confidentiality does -> boot \
         without lockdown=confidentiality"
    )]
    Confidential,
    /// The loader refused the object.
    #[error("cannot load the BPF programs: {0}")]
    Object(String),
    /// The kernel refused a program.
    #[error("cannot load the BPF program for {hook}: {reason}")]
    Program {
        /// The hook.
        hook: &'static str,
        /// What the loader said, with the verifier's last words.
        reason: String,
    },
}

/// Which of a hook's programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// The first: enough where a program can't be preempted.
    First,
    /// All but the first, as if the kernel skipped that one each time: for tests.
    Later,
    /// All.
    All,
}

/// How exactly memory is followed between records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// A record is due when a kind of memory, or what is mapped, has moved by this many bytes; 0: at every
    /// change.
    pub step_bytes: u64,
    /// And by the whole (RSS, or what is mapped) shifted by this many bits; 64: by nothing.
    pub share_bits: u32,
}

impl Default for Resolution {
    /// 64 KiB and 1/256.
    fn default() -> Self {
        Self {
            step_bytes: 64 << 10,
            share_bits: 8,
        }
    }
}

impl Resolution {
    /// Writes it down.
    pub(super) fn note(self, recording: &mut Recording) {
        recording.resolution_bytes = self.step_bytes;
        recording.resolution_share = 1_u64.checked_shl(self.share_bits).unwrap_or(0);
    }
}

/// How to load.
pub(super) struct LoadOptions<'a> {
    /// Size of the ring buffer, bytes: a power of two and at least a page.
    pub(super) buffer_bytes: u32,
    /// When a memory record is due.
    pub(super) resolution: Resolution,
    /// Hooks to leave out, for tests.
    pub(super) without: &'a [String],
    /// Which programs are attached; `None`: what this kernel needs.
    pub(super) passes: Option<Passes>,
    /// Possible CPUs up to which their parts of counters are added up; at most [`MOST_CPUS`].
    pub(super) most_cpus: u32,
    /// Calls of exec and fork that fail are told of.
    pub(super) failed_calls: bool,
    /// Which processes that are there already are recorded.
    pub(super) attach: &'a Attach,
    /// Level of the programs' own messages: 0 none, 5 all.
    pub(super) debug: bool,
}

/// The attached kernel side. Dropping it detaches the programs.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    /// Hooks that were left out.
    pub(super) missing: Vec<String>,
    /// Hooks that the kernel doesn't have, and what is said instead.
    pub(super) stand_ins: BTreeMap<String, String>,
    /// How far an RSS counter may be from the truth.
    pub(super) rss_bound: RssBound,
    /// Waits from this length on are told of, ns; `None`: none are.
    sleep_ns: Option<u64>,
    /// How exact values are that are compared with `/proc`.
    pub(super) exactness: Exactness,
    /// How long each step took, ms.
    steps: Vec<(&'static str, f64)>,
    /// Counters can be read with what CPUs keep to themselves.
    is_exact: bool,
}

/// Loads and attaches everything, as a recording would, and lets go of it again: how long each step
/// took, ms.
///
/// # Errors
/// As a recording's.
pub fn try_load() -> Result<Vec<(&'static str, f64)>, LoadError> {
    let loaded = Loaded::new(&LoadOptions {
        buffer_bytes: 1 << 16,
        resolution: Resolution::default(),
        without: &[],
        passes: None,
        most_cpus: MOST_CPUS,
        failed_calls: true,
        attach: &Attach::default(),
        debug: false,
    })?;
    Ok(loaded.steps)
}

/// Times of the steps of one load.
struct Watch {
    last: Instant,
    steps: Vec<(&'static str, f64)>,
}

impl Watch {
    fn start() -> Self {
        Self {
            last: Instant::now(),
            steps: Vec::new(),
        }
    }

    fn step(&mut self, name: &'static str) {
        let now = Instant::now();
        let ms = now.duration_since(self.last).as_secs_f64() * 1000.0;
        self.steps.push((name, ms));
        self.last = now;
    }
}

/// What is said of the ends of system calls where they aren't wanted.
const NOT_WANTED: &str = "which calls of exec and fork failed is not known (--no-failed-calls)";

/// A map that this object always has.
pub(super) const NO_MAP: &str = "the object has no such map";

impl Loaded {
    /// Loads and attaches everything that the kernel has.
    pub(super) fn new(options: &LoadOptions<'_>) -> Result<Self, LoadError> {
        let mut watch = Watch::start();
        let btf = Btf::read(Path::new(BTF))?;
        let mut layout = layout(&btf).map_err(LoadError::Unsupported)?;
        watch.step("looking up the kernel's types");
        let types =
            LoaderBtf::from_sys_fs().map_err(|error| LoadError::Object(error.to_string()))?;
        watch.step("reading them for the loader");
        let config = config(&btf, options);
        if adds_up_too_much(config.cpus, options.most_cpus) {
            // Counters are then as exact as what CPUs share of them, and the trace states by how much.
            layout.mm_rss_parts = u32::MAX;
        }
        let mut ebpf = load(&btf, &layout, &config, options)?;
        watch.step("making maps");
        if !absent(layout.mm_rss_parts) {
            let is_found = cpu_parts::find(&mut ebpf, &types);
            if !is_found.map_err(|error| refused("task_rename", &error))? {
                // Without them, what CPUs keep to themselves is an error that the trace states.
                layout.mm_rss_parts = u32::MAX;
                ebpf = load(&btf, &layout, &config, options)?;
            }
            watch.step("finding the CPUs' parts of counters");
        }
        let is_exact = !absent(layout.mm_rss_parts);
        let mut missing = Vec::new();
        let mut stand_ins = BTreeMap::new();
        let is_left_out = |hook: &str| options.without.iter().any(|name| name == hook);
        for hook in HOOKS {
            if is_left_out(hook.name) {
                missing.push(hook.name.to_owned());
                continue;
            }
            if hook.name == SYS_EXIT && !options.failed_calls {
                stand_ins.insert(SYS_EXIT.to_owned(), NOT_WANTED.to_owned());
                if config.vm_by_calls == 0 {
                    continue;
                }
            }
            if !btf.has_tracepoint(hook.name) {
                let Some(stand_in) = hook.stand_in else {
                    let reason = format!("it has no tracepoint {}", hook.name);
                    return Err(LoadError::Unsupported(reason));
                };
                stand_ins.insert(hook.name.to_owned(), stand_in.to_owned());
                continue;
            }
            for program in programs(hook.name, is_exact, config.has_later, options.passes) {
                attach(&mut ebpf, &program, hook.name, &types)?;
            }
        }
        watch.step("verifying and attaching programs");
        let cpus = facts::online_cpus();
        let page_size = facts::page_size();
        let rss_bound = |is_exact| rss_bound(&btf, is_exact, cpus, page_size);
        let exactness = Exactness {
            recorded: rss_bound(is_exact),
            shared: rss_bound(false),
            is_vms_late: config.vm_by_calls != 0,
            page_size,
        };
        Ok(Self {
            ebpf,
            missing,
            stand_ins,
            rss_bound: exactness.recorded,
            exactness,
            sleep_ns: (config.sees_switches != 0).then_some(config.sleep_ns),
            steps: watch.steps,
            is_exact,
        })
    }

    /// Writes down what was loaded, and how exact that makes the recording.
    pub(super) fn note(&self, recording: &mut Recording) {
        recording.rss_bound_bytes = self.rss_bound.bytes;
        recording.rss_bound_per_thread = self.rss_bound.is_per_thread;
        recording.verified_instructions = self.verified_instructions();
        recording.sleep_ns = self.sleep_ns;
        recording.stand_ins.clone_from(&self.stand_ins);
        recording.missing_hooks.clone_from(&self.missing);
    }

    /// The ring buffer; can be taken once.
    pub(super) fn take_ring(&mut self) -> Result<RingBuf<MapData>, LoadError> {
        let map = self
            .ebpf
            .take_map("EVENTS")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        RingBuf::try_from(map).map_err(|error| LoadError::Object(error.to_string()))
    }

    /// The maps to compare with `/proc`, for a thread of its own.
    pub(super) fn kept(&self) -> Result<Kept, LoadError> {
        Kept::new(&self.ebpf)
    }

    /// Enters the process that will execute the command.
    pub(super) fn track_root(&mut self, pid: u32) -> Result<(), LoadError> {
        let root = TrackedProcess {
            flags: TrackedProcess::PENDING,
            clone_flags: u64::MAX,
            ..TrackedProcess::default()
        };
        let bytes: [u8; size_of::<TrackedProcess>()] = zerocopy::transmute!(root);
        let map = self
            .ebpf
            .map_mut("PROCESSES")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        let mut map: HashMap<_, u32, [u8; size_of::<TrackedProcess>()]> = map
            .try_into()
            .map_err(|error: aya::maps::MapError| LoadError::Object(error.to_string()))?;
        map.insert(pid, bytes, 0)
            .map_err(|error| LoadError::Object(chain(&error)))
    }

    /// Has the kernel side read what the command's memory control group is charged, from its exec on.
    pub(super) fn read_charge(&mut self) -> Result<(), LoadError> {
        let state = ChargeState {
            wanted: 1,
            ..ChargeState::default()
        };
        let bytes: [u8; size_of::<ChargeState>()] = zerocopy::transmute!(state);
        let map = self
            .ebpf
            .map_mut("CHARGE")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        let mut map: Array<_, [u8; size_of::<ChargeState>()]> = map
            .try_into()
            .map_err(|error: aya::maps::MapError| LoadError::Object(error.to_string()))?;
        map.set(0, bytes, 0)
            .map_err(|error| LoadError::Object(chain(&error)))
    }

    /// Name of the program that looks who is there.
    pub(super) fn walk_program(&self) -> &'static str {
        if self.is_exact {
            "find_tasks_exactly"
        } else {
            "find_tasks"
        }
    }

    /// What it has seen of it.
    pub(super) fn charge(&self) -> Option<ChargeState> {
        let map = self.ebpf.map("CHARGE")?;
        let map = Array::<_, [u8; size_of::<ChargeState>()]>::try_from(map).ok()?;
        ChargeState::read_from_bytes(&map.get(&0, 0).ok()?).ok()
    }

    /// Whether the command's exec has been seen; `None` if its process ended before.
    pub(super) fn root_has_started(&self, pid: u32) -> Option<bool> {
        let tracked = self.tracked();
        let (_, root) = tracked.iter().find(|(known, _)| *known == pid)?;
        Some(root.flags & TrackedProcess::PENDING == 0)
    }

    /// Stops recording: no program runs after this.
    pub(super) fn detach(&mut self) {
        for (_, program) in self.ebpf.programs_mut() {
            let program: Result<&mut BtfTracePoint, _> = program.try_into();
            // What can't be unloaded, or never was loaded, goes when the recorder ends.
            let _kept = program.map(BtfTracePoint::unload);
        }
    }

    /// Whether the kernel lets maps be read with the privileges in effect.
    pub(super) fn can_read_maps(&self) -> bool {
        let map = self.ebpf.map("LOST").map(PerCpuArray::<_, u64>::try_from);
        matches!(map, Some(Ok(counters)) if counters.get(&0, 0).is_ok())
    }

    /// Processes that are traced now, the dead that haven't been freed included.
    pub(super) fn tracked(&self) -> Vec<(u32, TrackedProcess)> {
        let mut all = Vec::new();
        self.each_tracked(|pid, process| {
            all.push((pid, process));
            true
        });
        all
    }

    /// Whether something holds for any of them; looks no further than the first.
    pub(super) fn is_any(&self, holds: impl Fn(&TrackedProcess) -> bool) -> bool {
        let mut is_found = false;
        self.each_tracked(|_, process| {
            is_found = holds(&process);
            !is_found
        });
        is_found
    }

    /// Shows one after the other, as long as `take` wants more.
    fn each_tracked(&self, mut take: impl FnMut(u32, TrackedProcess) -> bool) {
        let Some(map) = self.ebpf.map("PROCESSES") else {
            return;
        };
        let Ok(map) = HashMap::<_, u32, [u8; size_of::<TrackedProcess>()]>::try_from(map) else {
            return;
        };
        // An entry that goes away meanwhile is no error: it isn't there any more.
        for (pid, bytes) in map.iter().filter_map(Result::ok) {
            let wants_more =
                TrackedProcess::read_from_bytes(&bytes).is_ok_and(|process| take(pid, process));
            if !wants_more {
                return;
            }
        }
    }

    /// Threads of traced processes that wait now, by thread.
    pub(super) fn waiting(&self) -> Vec<(u32, ThreadState)> {
        let Some(map) = self.ebpf.map("THREADS") else {
            return Vec::new();
        };
        let Ok(map) = HashMap::<_, u32, [u8; size_of::<ThreadState>()]>::try_from(map) else {
            return Vec::new();
        };
        map.iter()
            .filter_map(Result::ok)
            .filter_map(|(tid, bytes)| Some((tid, ThreadState::read_from_bytes(&bytes).ok()?)))
            .filter(|(_, thread)| thread.since_ns != 0)
            .collect()
    }

    /// Waits from this length on are told of, ns; `None`: none are seen.
    pub(super) fn sleep_ns(&self) -> Option<u64> {
        self.sleep_ns
    }

    /// Sums over all address spaces; `None` where counters can't be read exactly.
    pub(super) fn tree_sums(&self) -> Option<TreeSums> {
        if self.rss_bound.bytes > 0 {
            return None;
        }
        let map = self.ebpf.map("TREE")?;
        let map = Array::<_, [u8; size_of::<TreeSums>()]>::try_from(map).ok()?;
        TreeSums::read_from_bytes(&map.get(&0, 0).ok()?).ok()
    }

    /// A per-CPU counter array: by index, then by CPU.
    pub(super) fn counters(&self, map: &str) -> Vec<Vec<u64>> {
        let Some(Ok(counters)) = self.ebpf.map(map).map(PerCpuArray::<_, u64>::try_from) else {
            return Vec::new();
        };
        (0..counters.len())
            .map(|index| {
                counters
                    .get(&index, 0)
                    .map_or_else(|_| Vec::new(), |values| values.to_vec())
            })
            .collect()
    }

    /// Runs that the kernel skipped since the program was running on that CPU already, by program;
    /// kernels before 5.12 don't tell.
    ///
    /// Where a hook has more programs, an event is missing only if all were skipped: it is in the count of
    /// each, and wasn't reported by a later one.
    pub(super) fn recursion_misses(&self) -> BTreeMap<String, u64> {
        let told = self.told("recursion_misses:");
        let rescued = self.counters("RESCUED");
        let rescued = |hook: &str| {
            let n = Rescue::HOOKS.iter().position(|known| *known == hook);
            n.and_then(|n| rescued.get(n))
                .map_or(0, |counts| counts.iter().sum())
        };
        let firsts = told.iter().filter(|(program, _)| !is_later(program));
        firsts
            .map(|(program, skipped)| {
                let left = skipped.saturating_sub(rescued(program));
                let later = later(program);
                let later = later.iter().filter_map(|program| told.get(program));
                let hook = program.strip_suffix(EXACTLY).unwrap_or(program);
                (hook.to_owned(), later.fold(left, |least, n| least.min(*n)))
            })
            .collect()
    }

    /// Instructions that the verifier looked at, by program; kernels before 5.16 don't tell.
    pub(super) fn verified_instructions(&self) -> BTreeMap<String, u64> {
        self.told("verified_insns:")
    }

    /// A number of each program, from its descriptor's `/proc` entry, which needs no privilege.
    fn told(&self, field: &str) -> BTreeMap<String, u64> {
        use std::os::fd::{AsFd, AsRawFd};
        let number = |fd: i32| {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            text.lines()
                .find_map(|line| line.strip_prefix(field))?
                .trim()
                .parse()
                .ok()
        };
        self.ebpf
            .programs()
            .filter_map(|(name, program)| {
                let fd = program.fd().ok()?.as_fd().as_raw_fd();
                Some((name.to_owned(), number(fd)?))
            })
            .collect()
    }

    /// Begins to read the programs' own messages, for stderr.
    pub(super) fn start_log(&mut self) -> Result<EbpfLogger<StderrLog>, LoadError> {
        EbpfLogger::init_with_logger(&mut self.ebpf, StderrLog)
            .map_err(|error| LoadError::Object(chain(&error)))
    }
}

/// Whether there are more possible CPUs than whose parts of a counter can be added up: each costs instructions that
/// the verifier looks at, and it stops at a million.
fn adds_up_too_much(possible: u32, most_cpus: u32) -> bool {
    possible > most_cpus.min(MOST_CPUS)
}

/// What the programs are told of this recording.
fn config(btf: &Btf, options: &LoadOptions<'_>) -> Config {
    use nix::libc;
    // Numbers of CPUs go up to the possible ones, whether they are online or not.
    let possible = aya::util::nr_cpus()
        .ok()
        .and_then(|n| u32::try_from(n).ok());
    let possible = possible.unwrap_or_else(facts::online_cpus);
    let ring = u64::from(options.buffer_bytes);
    let needs_second = options
        .passes
        .map_or_else(|| preempts_programs(btf), |passes| passes != Passes::First);
    let is_left_out = |hook: &str| options.without.iter().any(|name| name == hook);
    let call = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    Config {
        epoch_ns: facts::boot_ns(),
        ring_bytes: ring,
        wake_bytes: ring / 2,
        memory_limit_bytes: ring - ring / 4,
        detail_limit_bytes: ring - ring / 8,
        step_pages: options.resolution.step_bytes.div_ceil(facts::page_size()),
        cpu_bits: u32::BITS - possible.saturating_sub(1).leading_zeros(),
        ends_by_counters: u32::from(!btf.has_tracepoint(MM_END) && !is_left_out(MM_END)),
        has_later: u32::from(needs_second),
        share_bits: options.resolution.share_bits,
        cpus: possible,
        recorder_tid: cpu_parts::own_thread(),
        attaches: u32::from(options.attach.is_wanted()),
        whole_host: u32::from(options.attach.whole_host),
        vm_by_calls: u32::from(
            !btf.has_tracepoint(MM_LOCK) && !is_left_out(MM_LOCK) && !is_left_out(SYS_EXIT),
        ),
        faults: faults(btf, &is_left_out),
        mapping_calls: [
            call(libc::SYS_mmap),
            call(libc::SYS_munmap),
            call(libc::SYS_brk),
            call(libc::SYS_mremap),
            call(libc::SYS_shmat),
            call(libc::SYS_shmdt),
            call(libc::SYS_remap_file_pages),
            call(libc::SYS_mprotect),
        ],
        sleep_ns: SLEEP_NS,
        sees_switches: u32::from(btf.has_tracepoint(SWITCH) && !is_left_out(SWITCH)),
        sees_calls: u32::from(options.failed_calls && !is_left_out(SYS_EXIT)),
        calls: calls(),
    }
}

/// Numbers of the system calls that are told of, in the order of [`Config::calls`].
fn calls() -> [u32; 8] {
    let number = |call: Sysno| u32::try_from(call.id()).unwrap_or(u32::MAX);
    let mut calls = [u32::MAX; 8];
    calls[Config::EXECVE] = number(Sysno::execve);
    calls[Config::EXECVEAT] = number(Sysno::execveat);
    calls[Config::SETSID] = number(Sysno::setsid);
    let forks = &mut calls[Config::FORKS..];
    // By name: newer machines have neither fork nor vfork.
    for (place, name) in forks.iter_mut().zip(["fork", "vfork", "clone", "clone3"]) {
        *place = name.parse().map_or(u32::MAX, number);
    }
    calls
}

/// What page faults tell: [`Config::faults`].
fn faults(btf: &Btf, is_left_out: &impl Fn(&str) -> bool) -> u32 {
    let is_there = |hook: &&str| btf.has_tracepoint(hook) && !is_left_out(hook);
    if !FAULTS.iter().all(is_there) {
        0
    } else if has_per_cpu_counters(btf) {
        Config::SEES_WRITES
    } else {
        Config::SEES_WRITES | Config::COUNTS_PAGES
    }
}

/// Makes the maps and puts the programs in order; none is in the kernel yet.
fn load(
    btf: &Btf,
    layout: &Layout,
    config: &Config,
    options: &LoadOptions<'_>,
) -> Result<Ebpf, LoadError> {
    let log_level = if options.debug { 5_u8 } else { 0 };
    EbpfLoader::new()
        .btf(None)
        .override_global("LAYOUT", layout.as_bytes(), true)
        .override_global("CONFIG", config.as_bytes(), true)
        .override_global("AYA_LOG_LEVEL", &log_level, false)
        .map_max_entries("EVENTS", options.buffer_bytes)
        .map_max_entries("CPU_OFFSETS", config.cpus)
        .load(&object(btf))
        .map_err(|error| not_permitted(&error).unwrap_or_else(|| LoadError::Object(chain(&error))))
}

/// Names of the programs of a hook, in the order in which they run.
fn programs(
    hook: &'static str,
    is_exact: bool,
    has_later: u32,
    passes: Option<Passes>,
) -> Vec<String> {
    let first = if hook == RSS && is_exact {
        format!("{hook}{EXACTLY}")
    } else {
        hook.to_owned()
    };
    let later = later(&first);
    let has_first = passes != Some(Passes::Later) || !Rescue::HOOKS.contains(&hook);
    has_first
        .then_some(first)
        .into_iter()
        .chain(later.into_iter().filter(|_| has_later != 0))
        // After those that report the exec itself.
        .chain((hook == EXEC).then(|| ENVIRONMENT.to_owned()))
        .collect()
}

/// Prints messages of BPF programs as they come.
pub(super) struct StderrLog;

impl Log for StderrLog {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    #[expect(
        clippy::print_stderr,
        reason = "these messages are asked for with --debug-bpf"
    )]
    fn log(&self, record: &log::Record<'_>) {
        eprintln!("rtrace bpf: {}", record.args());
    }

    fn flush(&self) {}
}

/// Names of the programs that run after the first one of a hook.
fn later(first: &str) -> Vec<String> {
    let suffixes: &[&str] = if Rescue::HOOKS.contains(&first) {
        &LATER
    } else if first == MM_LOCK || first.ends_with(EXACTLY) {
        &LATER[..1]
    } else {
        &[]
    };
    let name = |suffix| format!("{first}{suffix}");
    suffixes.iter().map(name).collect()
}

fn is_later(program: &str) -> bool {
    LATER.iter().any(|suffix| program.ends_with(suffix))
}

/// What the names of later programs end with.
const LATER: [&str; 2] = ["_again", "_last"];
/// What the name of the program for counters that can be read exactly ends with.
const EXACTLY: &str = "_exactly";

fn attach(
    ebpf: &mut Ebpf,
    name: &str,
    hook: &'static str,
    types: &LoaderBtf,
) -> Result<(), LoadError> {
    let refused = |error: &ProgramError| refused(hook, error);
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| LoadError::Object(format!("the object has no program {name}")))?;
    let program: &mut BtfTracePoint = program
        .try_into()
        .map_err(|error: ProgramError| refused(&error))?;
    program.load(hook, types).map_err(|error| refused(&error))?;
    program.attach().map_err(|error| refused(&error))?;
    Ok(())
}

fn refused(hook: &'static str, error: &ProgramError) -> LoadError {
    not_permitted(error).unwrap_or_else(|| refusal(hook, chain(error)))
}

/// What a program was refused for. Where lockdown can't be seen, as in a container without
/// /sys/kernel/security, this is where it shows: the verifier knows no helper that reads.
fn refusal(hook: &'static str, reason: String) -> LoadError {
    let is_kept = |words: &str| reason.contains(&format!("{words} bpf_probe_read"));
    // Older kernels have the first words for it, newer ones the second.
    if is_kept("unknown func") || is_kept("cannot use helper") {
        return LoadError::Confidential;
    }
    LoadError::Program { hook, reason }
}

/// Whether the cause is that the caller isn't allowed to.
fn not_permitted(error: &(dyn std::error::Error + 'static)) -> Option<LoadError> {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(io) = current.downcast_ref::<io::Error>()
            && io.raw_os_error() == Some(nix::libc::EPERM)
            && !nix::unistd::geteuid().is_root()
        {
            return Some(LoadError::NotPermitted);
        }
        cause = current.source();
    }
    None
}

/// An error with its causes. The verifier's log is long: its last lines tell why.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text = format!("{text}: {current}");
        cause = current.source();
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 24 {
        return text;
    }
    [&lines[..2], &["..."], &lines[lines.len() - 20..]]
        .concat()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_512_cpus_are_added_up_and_of_more_are_not() {
        assert!(!adds_up_too_much(2, MOST_CPUS));
        assert!(!adds_up_too_much(512, MOST_CPUS));
        assert!(adds_up_too_much(513, MOST_CPUS));
        // A test may ask for fewer, and nobody for more.
        assert!(adds_up_too_much(1, 0));
        assert!(adds_up_too_much(513, u32::MAX));
    }

    #[test]
    fn a_kernel_that_keeps_its_memory_is_told_from_other_refusals() {
        for (said, is_kept) in [
            ("unknown func bpf_probe_read#4", true),
            (
                "program of this type cannot use helper bpf_probe_read_kernel#113",
                true,
            ),
            ("43: (85) call bpf_probe_read#4\nR1 type=fp", false),
            ("unknown func bpf_ringbuf_reserve#131", false),
        ] {
            let error = refusal("rss_stat", format!("a\n{said}\nprocessed 35 insns"));
            assert_eq!(matches!(error, LoadError::Confidential), is_kept, "{said}");
        }
    }
}
