//! Loads the BPF programs and attaches them.

use std::{collections::BTreeMap, io, path::Path, time::Instant};

use aya::{
    Btf as LoaderBtf, Ebpf, EbpfLoader, include_bytes_aligned,
    maps::{HashMap, MapData, PerCpuArray, RingBuf},
    programs::{BtfTracePoint, ProgramError},
};
use aya_log::EbpfLogger;
use log::Log;
use monitor_ebpf::abi::{Config, Rescue, TrackedProcess};
use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

use super::hooks::{HOOKS, RssBound, layout, preempts_programs, rss_bound};
use crate::host::{
    btf::{Btf, BtfError},
    facts,
};

/// The hook that shows the end of an address space.
const MM_END: &str = "exit_mmap";
/// Where the kernel describes its own types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/rtrace-bpf"));

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

/// Which of a hook's two programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// The first: enough where a program can't be preempted.
    First,
    /// The second alone, as if the kernel skipped the first each time: for tests.
    Second,
    /// Both.
    Both,
}

/// How to load.
pub(super) struct LoadOptions<'a> {
    /// Size of the ring buffer, bytes: a power of two and at least a page.
    pub(super) buffer_bytes: u32,
    /// Step at which a memory record is due, bytes.
    pub(super) step_bytes: u64,
    /// Hooks to leave out, for tests.
    pub(super) without: &'a [String],
    /// Which programs are attached; `None`: what this kernel needs.
    pub(super) passes: Option<Passes>,
    /// Level of the programs' own messages: 0 none, 5 all.
    pub(super) debug: bool,
}

/// The attached kernel side. Dropping it detaches the programs.
pub(super) struct Loaded {
    ebpf: Ebpf,
    /// Hooks that were left out.
    pub(super) missing: Vec<String>,
    /// Hooks that the kernel doesn't have, and what is said instead.
    pub(super) stand_ins: BTreeMap<String, String>,
    /// How far an RSS counter may be from the truth.
    pub(super) rss_bound: RssBound,
    /// How long each step took, ms.
    steps: Vec<(&'static str, f64)>,
}

/// Loads and attaches everything, as a recording would, and lets go of it again: how long each step
/// took, ms.
///
/// # Errors
/// As a recording's.
pub fn try_load() -> Result<Vec<(&'static str, f64)>, LoadError> {
    let loaded = Loaded::new(&LoadOptions {
        buffer_bytes: 1 << 16,
        step_bytes: 1 << 16,
        without: &[],
        passes: None,
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

/// A map that this object always has.
const NO_MAP: &str = "the object has no such map";

impl Loaded {
    /// Loads and attaches everything that the kernel has.
    pub(super) fn new(options: &LoadOptions<'_>) -> Result<Self, LoadError> {
        let mut watch = Watch::start();
        let btf = Btf::read(Path::new(BTF))?;
        let layout = layout(&btf).map_err(LoadError::Unsupported)?;
        let cpus = facts::online_cpus();
        // Numbers of CPUs go up to the possible ones, whether they are online or not.
        let possible = aya::util::nr_cpus().map_or(cpus, |n| u32::try_from(n).unwrap_or(cpus));
        let ring = u64::from(options.buffer_bytes);
        let passes = options.passes.unwrap_or(if preempts_programs(&btf) {
            Passes::Both
        } else {
            Passes::First
        });
        let has_second = passes != Passes::First;
        // With a hook, what stands in for it is left out too.
        let is_left_out = |hook: &str| options.without.iter().any(|name| name == hook);
        let config = Config {
            epoch_ns: facts::boot_ns(),
            ring_bytes: ring,
            wake_bytes: ring / 2,
            memory_limit_bytes: ring - ring / 4,
            detail_limit_bytes: ring - ring / 8,
            step_pages: (options.step_bytes / facts::page_size()).max(1),
            cpu_bits: u32::BITS - possible.saturating_sub(1).leading_zeros(),
            has_second: u32::from(has_second),
            reserved: 0,
            ends_by_counters: u32::from(!btf.has_tracepoint(MM_END) && !is_left_out(MM_END)),
        };
        let log_level = if options.debug { 5_u8 } else { 0 };
        watch.step("looking up the kernel's types");
        let types =
            LoaderBtf::from_sys_fs().map_err(|error| LoadError::Object(error.to_string()))?;
        watch.step("reading them for the loader");
        let mut ebpf = EbpfLoader::new()
            .btf(None)
            .override_global("LAYOUT", layout.as_bytes(), true)
            .override_global("CONFIG", config.as_bytes(), true)
            .override_global("AYA_LOG_LEVEL", &log_level, false)
            .map_max_entries("EVENTS", options.buffer_bytes)
            .load(OBJECT)
            .map_err(|error| {
                not_permitted(&error).unwrap_or_else(|| LoadError::Object(chain(&error)))
            })?;
        watch.step("making maps");
        let mut missing = Vec::new();
        let mut stand_ins = BTreeMap::new();
        for hook in HOOKS {
            let is_there = btf.has_tracepoint(hook.name);
            if is_left_out(hook.name) {
                missing.push(hook.name.to_owned());
                continue;
            }
            if !is_there {
                let Some(stand_in) = hook.stand_in else {
                    let reason = format!("it has no tracepoint {}", hook.name);
                    return Err(LoadError::Unsupported(reason));
                };
                stand_ins.insert(hook.name.to_owned(), stand_in.to_owned());
                continue;
            }
            let second = second_of(hook.name);
            if second.is_none() || passes != Passes::Second {
                attach(&mut ebpf, hook.name, hook.name, &types)?;
            }
            if let Some(second) = second.filter(|_| has_second) {
                attach(&mut ebpf, &second, hook.name, &types)?;
            }
        }
        watch.step("verifying and attaching programs");
        let rss_bound = rss_bound(&btf, cpus, facts::page_size());
        Ok(Self {
            ebpf,
            missing,
            stand_ins,
            rss_bound,
            steps: watch.steps,
        })
    }

    /// The ring buffer; can be taken once.
    pub(super) fn take_ring(&mut self) -> Result<RingBuf<MapData>, LoadError> {
        let map = self
            .ebpf
            .take_map("EVENTS")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        RingBuf::try_from(map).map_err(|error| LoadError::Object(error.to_string()))
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
        let Some(map) = self.ebpf.map("PROCESSES") else {
            return Vec::new();
        };
        let Ok(map) = HashMap::<_, u32, [u8; size_of::<TrackedProcess>()]>::try_from(map) else {
            return Vec::new();
        };
        // An entry that goes away meanwhile is no error: it isn't there any more.
        map.iter()
            .filter_map(Result::ok)
            .filter_map(|(pid, bytes)| Some((pid, TrackedProcess::read_from_bytes(&bytes).ok()?)))
            .collect()
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
    /// Where a hook has a second program, an event is missing only if both were skipped: it is in the
    /// count of each, and wasn't reported by the second.
    pub(super) fn recursion_misses(&self) -> BTreeMap<String, u64> {
        let mut misses = self.told("recursion_misses:");
        let rescued = self.counters("RESCUED");
        for (hook, rescued) in Rescue::HOOKS.iter().zip(rescued) {
            let second = second_of(hook).and_then(|second| misses.remove(&second));
            if let (Some(first), Some(second)) = (misses.get_mut(*hook), second) {
                *first = second.min(first.saturating_sub(rescued.iter().sum()));
            }
        }
        misses
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

/// Name of a hook's second program, if it has one.
fn second_of(hook: &str) -> Option<String> {
    Rescue::HOOKS
        .contains(&hook)
        .then(|| format!("{hook}_again"))
}

fn attach(
    ebpf: &mut Ebpf,
    name: &str,
    hook: &'static str,
    types: &LoaderBtf,
) -> Result<(), LoadError> {
    let refused =
        |error: &ProgramError| not_permitted(error).unwrap_or_else(|| refusal(hook, chain(error)));
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
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
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
