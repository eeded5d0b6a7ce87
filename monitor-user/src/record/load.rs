//! Loads the BPF programs and attaches them.

use std::{collections::BTreeMap, path::Path, time::Instant};

use aya::{
    Btf as LoaderBtf, Ebpf, EbpfLoader,
    programs::{BtfTracePoint, ProgramError},
};
use log::Log;
use monitor_ebpf::abi::{Config, Layout, MOST_CPUS, PARTS, Rescue, absent};
use zerocopy::IntoBytes;

use super::{
    attach::Attach,
    config::{FULL_SUM_CPUS, MM_LOCK, adds_up_too_much, config},
    cpu_parts,
    hooks::{GROUP_ENTERED, GROUP_MADE, HOOKS, RssBound, SYS_ENTER, SYS_EXIT, layout, rss_bound},
    object::object,
    refusal::{LoadError, chain, not_permitted, refused},
    verify::Exactness,
};
use crate::{
    event::Recording,
    host::{btf::Btf, facts},
};

/// The hook that shows programs, and what reads their environment there.
const EXEC: &str = "sched_process_exec";
const ENVIRONMENT: &str = "sched_process_exec_env";
/// What enters the threads of a process that comes into a control group.
const GROUP_THREADS: &str = "cgroup_attach_task_threads";
/// The hook that shows what is resident.
const RSS: &str = "rss_stat";
/// Where the kernel describes its own types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

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
    /// Possible CPUs up to which these parts are added up at every event; `None`: as many as is cheap.
    pub(super) full_sum_cpus: Option<u32>,
    /// What is recorded is compared with `/proc`.
    pub(super) verify: bool,
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
    pub(super) sleep_ns: Option<u64>,
    /// How exact values are that are compared with `/proc`.
    pub(super) exactness: Exactness,
    /// How long each step took, ms.
    steps: Vec<(&'static str, f64)>,
    /// Counters can be read with what CPUs keep to themselves.
    pub(super) is_exact: bool,
    /// Not at every event.
    skips: bool,
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
        full_sum_cpus: None,
        verify: false,
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

/// What is said of the hooks of system calls where they aren't wanted; `None` for any other hook.
fn not_wanted(hook: &str) -> Option<&'static str> {
    match hook {
        SYS_EXIT => Some("which calls of exec and fork failed is not known (--no-failed-calls)"),
        SYS_ENTER => {
            Some("how long the calls took that made processes is not known (--no-failed-calls)")
        }
        _ => None,
    }
}

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
        if config.groups != 0 {
            check_groups(&btf, &layout)?;
        }
        if adds_up_too_much(config.cpus, options.most_cpus) {
            // Counters are then as exact as what CPUs share of them, and the trace states by how much.
            layout.mm_rss_parts = u32::MAX;
        }
        let mut ebpf = load(&btf, &layout, &config, options)?;
        watch.step("making maps");
        if !absent(layout.mm_rss_parts) {
            let is_found = cpu_parts::find(&mut ebpf, &types, config.cpus);
            if !is_found.map_err(|error| refused("task_rename", &error))? {
                // Without them, what CPUs keep to themselves is an error that the trace states.
                layout.mm_rss_parts = u32::MAX;
                ebpf = load(&btf, &layout, &config, options)?;
            }
            watch.step("finding the CPUs' parts of counters");
        }
        let Absent { missing, stand_ins } =
            attach_what_it_takes(&mut ebpf, &btf, &mut layout, (&types, &config), options)?;
        let is_exact = !absent(layout.mm_rss_parts);
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
            skips: is_exact && config.skips != 0,
        })
    }

    /// Writes down what was loaded, and how exact that makes the recording.
    pub(super) fn note(&self, recording: &mut Recording) {
        recording.rss_bound_bytes = self.rss_bound.bytes;
        recording.rss_bound_per_thread = self.rss_bound.is_per_thread;
        recording.skips_looks = self.skips;
        recording.verified_instructions = self.verified_instructions();
        recording.sleep_ns = self.sleep_ns;
        recording.stand_ins.clone_from(&self.stand_ins);
        recording.missing_hooks.clone_from(&self.missing);
    }
}

/// What isn't attached.
#[derive(Default)]
struct Absent {
    /// Hooks that were left out.
    missing: Vec<String>,
    /// Hooks that the kernel doesn't have or that weren't wanted, and what is said instead.
    stand_ins: BTreeMap<String, String>,
}

/// Attaches all hooks. Sums over the parts of many CPUs can be more than a kernel's verifier follows to their end: it gets
/// programs without them then, and the trace states what error that leaves.
fn attach_what_it_takes(
    ebpf: &mut Ebpf,
    btf: &Btf,
    layout: &mut Layout,
    (types, config): (&LoaderBtf, &Config),
    options: &LoadOptions<'_>,
) -> Result<Absent, LoadError> {
    let is_exact = !absent(layout.mm_rss_parts);
    let attached = attach_hooks(ebpf, btf, types, config, is_exact, options);
    let is_refused = matches!(attached, Err(LoadError::Program { .. }));
    if !is_refused || !is_exact || config.cpus <= FULL_SUM_CPUS {
        return attached;
    }
    layout.mm_rss_parts = u32::MAX;
    *ebpf = load(btf, layout, config, options)?;
    attach_hooks(ebpf, btf, types, config, false, options)
}

/// Attaches each hook's programs.
fn attach_hooks(
    ebpf: &mut Ebpf,
    btf: &Btf,
    types: &LoaderBtf,
    config: &Config,
    is_exact: bool,
    options: &LoadOptions<'_>,
) -> Result<Absent, LoadError> {
    let mut absent = Absent::default();
    let has_groups = config.groups != 0;
    for hook in HOOKS {
        if hook.only_for_groups && !has_groups {
            continue;
        }
        if options.without.iter().any(|name| name == hook.name) {
            absent.missing.push(hook.name.to_owned());
            continue;
        }
        if let Some(said) = not_wanted(hook.name).filter(|_| !options.failed_calls) {
            let stand_ins = &mut absent.stand_ins;
            stand_ins.insert(hook.name.to_owned(), said.to_owned());
            if hook.name == SYS_ENTER || config.vm_by_calls == 0 {
                continue;
            }
        }
        if !btf.has_tracepoint(hook.name) {
            let Some(stand_in) = hook.stand_in else {
                let reason = format!("it has no tracepoint {}", hook.name);
                return Err(LoadError::Unsupported(reason));
            };
            absent
                .stand_ins
                .insert(hook.name.to_owned(), stand_in.to_owned());
            continue;
        }
        let enters = hook.name == GROUP_ENTERED && has_groups;
        for program in programs(
            hook.name,
            is_exact && (hook.name == RSS || enters),
            config.has_later,
            options.passes,
        ) {
            attach(ebpf, &program, hook.name, types)?;
        }
        if enters {
            attach(ebpf, GROUP_THREADS, GROUP_ENTERED, types)?;
        }
    }
    Ok(absent)
}

/// Whether the kernel tells what a recording of a control group needs.
fn check_groups(btf: &Btf, layout: &Layout) -> Result<(), LoadError> {
    let has_hooks = btf.has_tracepoint(GROUP_MADE) && btf.has_tracepoint(GROUP_ENTERED);
    if absent(layout.group.task_cgroups) || !has_hooks {
        let reason = "it doesn't tell which control groups processes are in";
        return Err(LoadError::Unsupported(reason.to_owned()));
    }
    Ok(())
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
        .map_max_entries("PARTS", if config.skips != 0 { PARTS } else { 1 })
        .load(&object(btf))
        .map_err(|error| not_permitted(&error).unwrap_or_else(|| LoadError::Object(chain(&error))))
}

/// Names of the programs of a hook, in the order in which they run. `is_exact`: it is one that has another program
/// where counters can be read exactly, and they can.
fn programs(
    hook: &'static str,
    is_exact: bool,
    has_later: u32,
    passes: Option<Passes>,
) -> Vec<String> {
    let first = if is_exact {
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
pub(super) fn later(first: &str) -> Vec<String> {
    let suffixes: &[&str] = if Rescue::HOOKS.contains(&first) {
        &LATER
    } else if first == MM_LOCK || first == format!("{RSS}{EXACTLY}") {
        &LATER[..1]
    } else {
        &[]
    };
    let name = |suffix| format!("{first}{suffix}");
    suffixes.iter().map(name).collect()
}

pub(super) fn is_later(program: &str) -> bool {
    LATER.iter().any(|suffix| program.ends_with(suffix))
}

/// What the names of later programs end with.
const LATER: [&str; 2] = ["_again", "_last"];
/// What the name of the program for counters that can be read exactly ends with.
pub(super) const EXACTLY: &str = "_exactly";

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
