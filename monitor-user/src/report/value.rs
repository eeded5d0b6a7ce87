//! The report as one value. Field names are the keys of the JSON report.
//!
//! `None` is "not known". Times are ns since boot, sizes are bytes. Keys that rtrace can't tell
//! anything about yet are absent.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    event::{
        Charge, ChargeScope, Conditions, Environment, Exit, Oom, OomScope, Recording, Verification,
    },
    findings::{Selection, assess},
    model::{
        CreatedBy, CreatorFrom, Ending, Growth, How, Image, ImageMemory, Mark, Part, Peak, Polled,
        Process, Share, Step, Summary, Tree,
        bounds::{KINDS, counter_bound, most_unique, sum_bound, sum_peak, unique_at_peak},
        clone_flag_names,
        pools::{Pools, Role},
        program,
    },
    report::request::{Known, RequestReport, request},
    report::{
        BlockedReport, ByteText, ChargeReport, ExecFailureReport, FindingReport, MoveReport,
        PoolReport, SenderReport, StallReport, WaitReport, findings::findings, pools, watch,
    },
    units::ProcessKey,
};

/// Everything that a trace says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was recorded, where, how.
    pub recording: RecordingReport,
    /// Process that executed the command.
    pub root: Option<Id>,
    /// Every process, by start and pid.
    pub processes: Vec<ProcessReport>,
    /// Pools of workers, by the start of their first worker.
    pub pools: Vec<PoolReport>,
    /// The tree as a whole.
    pub tree: TreeReport,
    /// What went wrong or is worth knowing, the most severe first; then what could not be judged.
    pub findings: Vec<FindingReport>,
    /// How far all this can be trusted.
    pub trust: TrustReport,
}

/// A process; `start_ns` is `None` if it isn't in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Id {
    /// Its pid.
    pub pid: u32,
    /// When the kernel created it.
    pub start_ns: Option<u64>,
}

/// What was recorded, where, how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingReport {
    /// Version of rtrace that recorded.
    pub rtrace_version: String,
    /// The command.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine.
    pub machine: String,
    /// CPUs.
    pub cpus: u32,
    /// Memory of the host.
    pub memory_bytes: u64,
    /// Environment that names the job.
    pub env: BTreeMap<String, String>,
    /// What bounds and shapes the command from outside; `None` if that isn't known.
    pub conditions: Option<Conditions>,
    /// Add this to a time to get ns since 1970.
    pub wall_offset_ns: i64,
    /// Start.
    pub start_ns: u64,
    /// End; `None` if the recorder didn't say.
    pub end_ns: Option<u64>,
    /// Processes that were there already and were named to be recorded, with their descendants.
    pub attached_pids: Vec<u32>,
    /// Whether all processes of the host were recorded.
    pub whole_host: bool,
    /// When all that were there already had been found; `None`: none were looked for.
    pub attached_ns: Option<u64>,
    /// How the command ended; `None` if that isn't known.
    pub exit: Option<ExitReport>,
    /// A row of memory is due when a kind, or VMS, has moved by this much; 0: at every change.
    pub resolution_bytes: u64,
    /// And by the whole divided by this; 0: whatever the whole is.
    pub resolution_share: u64,
    /// RSS of each kind may be off by this much.
    pub rss_bound_bytes: u64,
    /// Whether that is for each thread of a process.
    pub rss_bound_per_thread: bool,
    /// A thread that waited for this long is told of; `None`: waits weren't seen.
    pub sleep_ns: Option<u64>,
    /// Hooks that were off.
    pub missing_hooks: Vec<String>,
    /// Hooks that this kernel doesn't have, and what is told from other events instead.
    pub stand_ins: BTreeMap<String, String>,
    /// Records lost in the kernel, by kind.
    pub lost: BTreeMap<String, u64>,
    /// The same, by CPU.
    pub lost_by_cpu: BTreeMap<u32, u64>,
    /// Runs of BPF programs that the kernel skipped, by program.
    pub recursion_misses: BTreeMap<String, u64>,
    /// Entries that found no room in a kernel-side map, by map.
    pub full_maps: BTreeMap<String, u64>,
    /// Events that came too late to be put in order.
    pub late_events: u64,
    /// Instructions that the kernel's verifier looked at, by BPF program.
    pub verified_instructions: BTreeMap<String, u64>,
    /// The recorder didn't end the file itself.
    pub cut_short: bool,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExitReport {
    /// Exit code; `None` for a death by signal.
    pub code: Option<u32>,
    /// Signal; `None` otherwise.
    pub signal: Option<u32>,
    /// Whether a core was written.
    pub core: bool,
    /// Whether the OOM killer did it; `None` if that isn't known.
    pub oom: Option<bool>,
    /// Who sent the signal; `None` without one, or if that isn't known.
    pub sender: Option<SenderReport>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// Its pid.
    pub pid: u32,
    /// When the kernel created it.
    pub start_ns: u64,
    /// When its last thread ended; `None` if it was alive at the end, or that isn't known.
    pub end_ns: Option<u64>,
    /// Whether it was alive when the recording ended.
    pub alive_at_end: Option<bool>,
    /// Process that made it.
    pub creator: Option<Id>,
    /// Only there if `creator` is not from the event of the creation, which was lost:
    /// `parent_at_end` is the parent that it had at its end. Or the process was there before the recording began:
    /// `parent_at_start` is the parent that it had then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creator_from: Option<&'static str>,
    /// Thread that made it.
    pub creator_tid: Option<u32>,
    /// Live threads of the creator then.
    pub creator_threads: Option<u32>,
    /// Parent at its end, or at the end of the recording.
    pub final_parent: Option<Id>,
    /// `root`, `fork`, `vfork` or `clone_vm`.
    pub created_by: Option<&'static str>,
    /// Names of clone's flags.
    pub clone_flags: Option<Vec<&'static str>>,
    /// Last name of the leader.
    pub comm: Option<ByteText>,
    /// When it was found; only there if it was there before the recording began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_ns: Option<u64>,
    /// What it does in a pool: `worker`, `resource_tracker`, `forkserver` or `manager`; only there if it has a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Programs it was, in order.
    pub images: Vec<ImageReport>,
    /// What its last program got of the variables that are kept, by name; `None`: not known. A name that comes twice
    /// has its first value, as the C library has it.
    pub env: Option<BTreeMap<String, ByteText>>,
    /// Moments that it marked, in order of time.
    pub marks: Vec<MarkReport>,
    /// Threads it made besides its first.
    pub threads_created: Option<u32>,
    /// Most threads alive at once.
    pub threads_max: Option<u32>,
    /// User plus system time of all threads.
    pub cpu_ns: Option<u64>,
    /// In user mode, as the kernel's ticks share it out; this and what follows is known of a process
    /// that was reaped, and of no other.
    pub user_ns: Option<u64>,
    /// In the kernel; with `user_ns` it is `cpu_ns`.
    pub system_ns: Option<u64>,
    /// Page faults that needed nothing from storage.
    pub faults_minor: Option<u64>,
    /// Page faults that had to wait for storage.
    pub faults_major: Option<u64>,
    /// Times that a thread gave up the CPU to wait.
    pub switches_voluntary: Option<u64>,
    /// Times that the CPU was taken from a thread.
    pub switches_involuntary: Option<u64>,
    /// Bytes that system calls read.
    pub read_chars: Option<u64>,
    /// Bytes that system calls wrote.
    pub written_chars: Option<u64>,
    /// Bytes read from storage.
    pub read_bytes: Option<u64>,
    /// Bytes to be written to storage.
    pub written_bytes: Option<u64>,
    /// The OOM killer chose it; only there if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom: Option<OomReport>,
    /// How it ended.
    pub exit: Option<ExitReport>,
    /// Made before the root ended and alive more than 250 ms after.
    pub survived_root: Option<bool>,
    /// From its end to the reaping.
    pub zombie_ns: Option<u64>,
    /// Ended and not reaped when the recording ended.
    pub zombie_at_end: Option<bool>,
    /// When it first had a CPU; the command's is not known.
    pub first_run_ns: Option<u64>,
    /// How long signals had stopped it.
    pub stopped_ns: Option<u64>,
    /// It did nothing but wait until it was killed, or until the recording ended. `None` also if that isn't known.
    pub blocked_at_end: Option<BlockedReport>,
    /// Its longest waits, of those of at least `recording.sleep_ns`, in order.
    pub waits: Vec<WaitReport>,
    /// Calls of exec that failed, in order; of more than 256 the first 255 and the last. `None` if they weren't watched.
    pub exec_failures: Option<Vec<ExecFailureReport>>,
    /// How many there were.
    pub failed_execs: Option<u64>,
    /// Calls of fork, vfork and clone that failed, by name of the error. `None` if they weren't watched.
    pub fork_failures: Option<BTreeMap<String, u64>>,
    /// Its pid in its own pid namespace; not known of the command.
    pub pid_ns: Option<u32>,
    /// How deep that namespace is below the first one.
    pub pid_ns_level: Option<u32>,
    /// When it made a session of its own.
    pub session_ns: Option<u64>,
    /// Moves to other control groups; the first 64.
    pub moves: Vec<MoveReport>,
}

/// A moment that a process marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkReport {
    /// When.
    pub ns: u64,
    /// What it said.
    pub text: ByteText,
}

/// A victim of the OOM killer, at the moment at which it was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OomReport {
    /// That moment.
    pub ns: u64,
    /// `cgroup`: a control group had reached its limit; `host`: the host had no memory left.
    pub scope: Option<&'static str>,
    /// Name of that control group: the last part of its folder's path.
    pub cgroup: Option<String>,
    /// Its limit.
    pub limit_bytes: Option<u64>,
    /// Its RSS; `None`, as all that follows, if it isn't known.
    pub rss_bytes: Option<u64>,
    /// Anonymous pages.
    pub rss_anon_bytes: Option<u64>,
    /// Pages of files.
    pub rss_file_bytes: Option<u64>,
    /// Pages of shared memory.
    pub rss_shmem_bytes: Option<u64>,
    /// Swapped out.
    pub swap_bytes: Option<u64>,
    /// Size of the address space.
    pub vms_bytes: Option<u64>,
}

/// A program that a process was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageReport {
    /// From then.
    pub start_ns: Option<u64>,
    /// Until then.
    pub end_ns: Option<u64>,
    /// `inherited` or `exec`.
    pub how: &'static str,
    /// Path given to exec.
    pub filename: Option<ByteText>,
    /// Name at its start.
    pub comm: Option<ByteText>,
    /// Arguments.
    pub argv: Option<Vec<ByteText>>,
    /// Bytes of all arguments with their NULs.
    pub argv_bytes: Option<u64>,
    /// Whether `argv` is cut.
    pub argv_truncated: Option<bool>,
    /// Highest RSS.
    pub peak_rss_bytes: Option<u64>,
    /// The true peak differs from that by this at most.
    pub peak_rss_bound_bytes: Option<u64>,
    /// Anonymous pages at that moment.
    pub peak_rss_anon_bytes: Option<u64>,
    /// Pages of files at that moment.
    pub peak_rss_file_bytes: Option<u64>,
    /// Pages of shared memory at that moment.
    pub peak_rss_shmem_bytes: Option<u64>,
    /// That moment.
    pub peak_rss_ns: Option<u64>,
    /// Highest swap use.
    pub peak_swap_bytes: Option<u64>,
    /// RSS that it began with: of `inherited` ones what was copied from the creator.
    pub start_rss_bytes: Option<u64>,
    /// Anonymous pages that it has from its creator's fork; only of `inherited` ones.
    pub inherited_anon_bytes: Option<u64>,
    /// Anonymous pages that came since, those included that have gone again.
    pub anon_grown_bytes: Option<u64>,
    /// Write faults on pages that were there; each copied a page at most.
    pub write_faults: Option<u64>,
    /// RSS before exec or end.
    pub end_rss_bytes: Option<u64>,
    /// Highest size of the address space.
    pub peak_vms_bytes: Option<u64>,
    /// Process whose address space it uses.
    pub shared_mm_with: Option<Id>,
}

/// The tree as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeReport {
    /// All processes there ever were.
    pub processes: u64,
    /// Threads besides the first of each process.
    pub threads_created: Option<u64>,
    /// Most processes alive at once; zombies are not.
    pub max_live_processes: u64,
    /// Most creators between a process and the root.
    pub max_depth: u64,
    /// Processes that survived the root.
    pub survivors: Option<u64>,
    /// Calls of fork, vfork and clone that failed; `None` if they weren't watched.
    pub failed_forks: Option<u64>,
    /// Calls of exec that failed; `None` if they weren't watched.
    pub failed_execs: Option<u64>,
    /// Times of more than a second in which nothing of the tree ran, the longest 100; `None` if waits weren't seen.
    pub stalls: Option<Vec<StallReport>>,
    /// Processes that the OOM killer ended; `None` if that isn't known of each.
    pub oom_kills: Option<u64>,
    /// Highest sum of RSS over all address spaces, each once.
    pub peak_rss_sum_bytes: Option<u64>,
    /// The true highest sum differs from that by this at most.
    pub peak_rss_sum_bound_bytes: Option<u64>,
    /// That moment.
    pub peak_rss_sum_ns: Option<u64>,
    /// Who had most then.
    pub peak_rss_sum_top: Option<TopReport>,
    /// Every address space at that moment, those with most memory first. Sums of rows, so within the
    /// resolution of each.
    pub peak_rss_sum_shares: Option<Vec<ShareReport>>,
    /// Highest sum of VMS.
    pub peak_vms_sum_bytes: Option<u64>,
    /// Memory really in use at the highest sum of RSS, pages that processes share counted once: at least this.
    pub peak_unique_low_bytes: Option<u64>,
    /// At most this.
    pub peak_unique_high_bytes: Option<u64>,
    /// Memory in use was at most this at every moment, pages counted once.
    pub max_unique_high_bytes: Option<u64>,
    /// What the memory controller charged; `None` if it wasn't asked.
    pub charge: Option<ChargeReport>,
    /// How much memory to ask a scheduler for.
    pub request: Option<RequestReport>,
    /// The largest steps in which mapped memory grew, the largest first.
    pub vms_steps: Vec<StepReport>,
    /// What tools that look from time to time would have seen on average, the slowest first.
    pub polled: Vec<PolledReport>,
}

/// What a tool that looks once in each period would have seen, on average over when its first look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PolledReport {
    /// Time from one look to the next.
    pub period_ns: u64,
    /// Processes that it would have met.
    pub processes: Option<u64>,
    /// Highest sum of RSS that it would have seen.
    pub peak_rss_sum_bytes: u64,
}

/// A step in which mapped memory grew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// When.
    pub ns: u64,
    /// Process that did it; the new one after a fork. `None` if that isn't known.
    pub process: Option<Id>,
    /// Thread that did it.
    pub tid: Option<u32>,
    /// `mapped`, `forked` or `executed`.
    pub how: &'static str,
    /// By this much; what came between two rows of memory is one step.
    pub bytes: u64,
    /// Size of the address space after it.
    pub vms_bytes: u64,
    /// What grew most: `data`, `stack`, `exec` or `other` (shared, read-only, reserved).
    pub part: Option<&'static str>,
}

/// What an address space had at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShareReport {
    /// The process; `None` if the address space had none yet.
    pub process: Option<Id>,
    /// What a person would call its program then.
    pub program: ByteText,
    /// Its anonymous pages.
    pub anon_bytes: u64,
    /// Its pages of files.
    pub file_bytes: u64,
    /// Its pages of shared memory.
    pub shmem_bytes: u64,
    /// What of it was swapped out.
    pub swap_bytes: u64,
}

/// Who had most memory at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopReport {
    /// The process; `None` if the address space had none yet.
    pub process: Option<Id>,
    /// What a person would call its program then.
    pub program: ByteText,
    /// Its RSS then.
    pub rss_bytes: u64,
}

/// How far a report can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustReport {
    /// Events in the trace.
    pub events: u64,
    /// Events that are known to be missing.
    pub lost_events: u64,
    /// Nothing is missing.
    pub complete: bool,
    /// What is missing or was repaired, in plain sentences.
    pub notes: Vec<String>,
    /// What comparing with `/proc` while recording has found; only there if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

impl ExitReport {
    /// From a status as `wait` gives it.
    pub fn from_status(status: u32) -> Self {
        let exit = Exit {
            status,
            ..Exit::default()
        };
        Self {
            code: exit.code(),
            signal: exit.signal(),
            core: exit.core(),
            oom: None,
            sender: None,
        }
    }
}

impl Report {
    /// From a tree and what is known about its recording, with all findings.
    pub fn new(tree: &Tree, recording: &Recording) -> Self {
        Self::with_findings(tree, recording, &Selection::default())
    }

    /// The same with those findings only that are asked for.
    pub fn with_findings(tree: &Tree, recording: &Recording, selection: &Selection) -> Self {
        let id = |key: ProcessKey| Id {
            pid: key.pid,
            start_ns: tree.position(key).map(|_| key.start_ns),
        };
        let pools = Pools::of(tree);
        let process = |p: &Process| ProcessReport {
            role: pools.role(p.key).map(Role::name),
            ..process(p, recording, &id)
        };
        let root = tree.root.and_then(|key| tree.position(key));
        let root_status = root.and_then(|at| tree.processes[at].status);
        let status = recording.exit_status.or(root_status);
        Self {
            recording: facts(
                recording,
                status.map(|status| exit(status, root.map(|at| &tree.processes[at]), &id)),
            ),
            root: tree.root.map(id),
            processes: tree.processes.iter().map(process).collect(),
            pools: pools::reports(tree, &pools),
            tree: tree_report(tree, recording, &id),
            findings: findings(&assess(tree, &pools, recording, selection), &id),
            trust: TrustReport {
                events: tree.trust.events,
                lost_events: tree.trust.lost_events,
                complete: tree.trust.complete,
                notes: tree.trust.notes.clone(),
                verification: recording.verification.clone(),
            },
        }
    }
}

fn facts(recording: &Recording, exit: Option<ExitReport>) -> RecordingReport {
    RecordingReport {
        rtrace_version: recording.rtrace_version.clone(),
        command: recording.command.clone(),
        host: recording.host.clone(),
        kernel: recording.kernel.clone(),
        machine: recording.machine.clone(),
        cpus: recording.cpus,
        memory_bytes: recording.memory_bytes,
        env: recording.env.clone(),
        conditions: recording.conditions.clone(),
        wall_offset_ns: recording.wall_offset_ns,
        start_ns: recording.start_ns,
        end_ns: recording.end_ns,
        attached_pids: recording.attached_pids.clone(),
        whole_host: recording.whole_host,
        attached_ns: recording.attached_ns,
        exit,
        resolution_bytes: recording.resolution_bytes,
        resolution_share: recording.resolution_share,
        rss_bound_bytes: recording.rss_bound_bytes,
        rss_bound_per_thread: recording.rss_bound_per_thread,
        sleep_ns: recording.sleep_ns,
        missing_hooks: recording.missing_hooks.clone(),
        stand_ins: recording.stand_ins.clone(),
        lost: recording.lost.clone(),
        lost_by_cpu: recording.lost_by_cpu.clone(),
        recursion_misses: recording.recursion_misses.clone(),
        full_maps: recording.full_maps.clone(),
        late_events: recording.late_events,
        verified_instructions: recording.verified_instructions.clone(),
        cut_short: recording.cut_short,
    }
}

fn tree_report(tree: &Tree, recording: &Recording, id: &impl Fn(ProcessKey) -> Id) -> TreeReport {
    let peak = tree.summary.peak();
    let top = peak.as_ref().and_then(Peak::top);
    let sum = sum_peak(&tree.summary, recording, tree.totals.max_spaces);
    let unique = unique_at_peak(&tree.summary, recording, tree.totals.max_spaces);
    TreeReport {
        processes: tree.totals.processes,
        threads_created: tree.totals.threads_created,
        max_live_processes: tree.summary.max_live(),
        max_depth: tree.totals.max_depth,
        survivors: tree.totals.survivors,
        failed_forks: tree.totals.failed_forks,
        failed_execs: tree.totals.failed_execs,
        stalls: tree
            .stalls
            .as_ref()
            .map(|stalls| stalls.iter().map(watch::stall).collect()),
        oom_kills: tree.totals.oom_kills,
        peak_rss_sum_bytes: sum.map(|sum| sum.rss),
        peak_rss_sum_bound_bytes: sum.map(|sum| sum.bound),
        peak_rss_sum_ns: sum.map(|sum| sum.time_ns),
        peak_rss_sum_top: top.map(|top| TopReport {
            process: top.process.map(id),
            program: ByteText(top.program.to_vec()),
            rss_bytes: top.memory.rss(),
        }),
        peak_rss_sum_shares: peak.map(|peak| shares(&peak, id)),
        peak_vms_sum_bytes: tree.summary.peak_vms().max(recording.peak_vms_sum_bytes),
        peak_unique_low_bytes: unique.map(|unique| unique.low),
        peak_unique_high_bytes: unique.map(|unique| unique.high),
        max_unique_high_bytes: most_unique(&tree.summary, recording, tree.totals.max_spaces),
        charge: recording.charge.as_ref().map(ChargeReport::new),
        request: asked(&tree.summary, recording, tree.totals.max_spaces),
        vms_steps: tree
            .steps
            .iter()
            .map(|step| step_report(step, id))
            .collect(),
        polled: tree.polled.iter().map(polled).collect(),
    }
}

/// How much memory to ask for, from the sums over a recording.
pub(super) fn asked(
    summary: &Summary,
    recording: &Recording,
    spaces: u64,
) -> Option<RequestReport> {
    let sum = sum_peak(summary, recording, spaces);
    request(
        &recording.env,
        Known {
            charge: recording.charge.as_ref().and_then(own_charge),
            vms: summary.peak_vms().max(recording.peak_vms_sum_bytes),
            least: unique_at_peak(summary, recording, spaces).map(|unique| unique.low),
            in_use: most_unique(summary, recording, spaces),
            rss: sum.map(|sum| sum.rss.saturating_add(sum.bound)),
        },
    )
}

/// Most that was charged to the command alone.
fn own_charge(charge: &Charge) -> Option<u64> {
    let is_own = charge.scope == ChargeScope::Own;
    charge.peak.max(charge.seen_peak).filter(|_| is_own)
}

fn polled(polled: &Polled) -> PolledReport {
    PolledReport {
        period_ns: polled.period_ns,
        processes: polled.processes,
        peak_rss_sum_bytes: polled.peak_rss,
    }
}

fn step_report(step: &Step, id: &impl Fn(ProcessKey) -> Id) -> StepReport {
    StepReport {
        ns: step.time_ns,
        process: step.subject.map(|subject| id(subject.process)),
        tid: step.subject.map(|subject| subject.tid),
        how: match step.growth {
            Growth::Mapped => "mapped",
            Growth::Forked => "forked",
            Growth::Executed => "executed",
        },
        bytes: step.bytes,
        vms_bytes: step.vms,
        part: step.part.map(|part| match part {
            Part::Data => "data",
            Part::Stack => "stack",
            Part::Exec => "exec",
            Part::Other => "other",
        }),
    }
}

fn shares(peak: &Peak, id: &impl Fn(ProcessKey) -> Id) -> Vec<ShareReport> {
    let mut shares: Vec<_> = peak.shares.iter().collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.memory.rss()));
    let report = |share: &Share| ShareReport {
        process: share.process.map(id),
        program: ByteText(share.program.to_vec()),
        anon_bytes: share.memory.anon,
        file_bytes: share.memory.file,
        shmem_bytes: share.memory.shmem,
        swap_bytes: share.memory.swap,
    };
    shares.into_iter().map(report).collect()
}

fn process(p: &Process, recording: &Recording, id: &impl Fn(ProcessKey) -> Id) -> ProcessReport {
    let created = &p.created;
    ProcessReport {
        pid: p.key.pid,
        start_ns: p.key.start_ns,
        end_ns: p.end_ns(),
        alive_at_end: match p.ending {
            Ending::Ended { .. } => Some(false),
            Ending::Alive => Some(true),
            Ending::Unknown => None,
        },
        creator: created.creator.map(id),
        creator_from: match created.creator_from {
            CreatorFrom::Fork => None,
            CreatorFrom::ParentAtEnd => Some("parent_at_end"),
            CreatorFrom::ParentAtStart => Some("parent_at_start"),
        },
        creator_tid: created.creator_tid,
        creator_threads: created.creator_threads,
        final_parent: p.final_parent.map(id),
        created_by: created.by.map(|by| match by {
            CreatedBy::Root => "root",
            CreatedBy::Fork => "fork",
            CreatedBy::Vfork => "vfork",
            CreatedBy::CloneVm => "clone_vm",
        }),
        clone_flags: created.flags.map(clone_flag_names),
        comm: p.comm.clone().map(ByteText),
        found_ns: p.found_ns,
        role: None,
        images: p
            .images
            .iter()
            .map(|i| image(i, recording, p.threads_max.unwrap_or(1), id))
            .collect(),
        env: p.environment.as_ref().map(variables),
        marks: p.marks.iter().map(mark).collect(),
        threads_created: p.threads_created,
        threads_max: p.threads_max,
        cpu_ns: p.cpu_ns,
        user_ns: p.usage.user_ns,
        system_ns: p.usage.system_ns,
        faults_minor: p.usage.faults_minor,
        faults_major: p.usage.faults_major,
        switches_voluntary: p.usage.switches_voluntary,
        switches_involuntary: p.usage.switches_involuntary,
        read_chars: p.usage.read_chars,
        written_chars: p.usage.written_chars,
        read_bytes: p.usage.read_bytes,
        written_bytes: p.usage.written_bytes,
        oom: p.oom.as_ref().map(|(ns, oom)| victim(*ns, oom)),
        exit: p.status.map(|status| exit(status, Some(p), id)),
        survived_root: p.survived_root,
        zombie_ns: p.zombie_ns,
        zombie_at_end: p.zombie_at_end,
        first_run_ns: p.first_run_ns,
        stopped_ns: p.stopped_ns,
        blocked_at_end: p.blocked_at_end.as_ref().map(watch::blocked),
        waits: p.waits.iter().map(watch::wait).collect(),
        exec_failures: watch::exec_failures(p),
        failed_execs: p.failed_execs,
        fork_failures: watch::fork_failures(p),
        pid_ns: p.ns_pid,
        pid_ns_level: p.ns_level,
        session_ns: p.session_ns,
        moves: watch::moves(p),
    }
}

fn exit(status: u32, process: Option<&Process>, id: &impl Fn(ProcessKey) -> Id) -> ExitReport {
    let sender = process.and_then(|process| process.sender.as_ref());
    ExitReport {
        oom: process.and_then(|process| process.killed_for_memory),
        sender: sender.map(|sender| watch::sender(sender, id)),
        ..ExitReport::from_status(status)
    }
}

fn variables(environment: &Environment) -> BTreeMap<String, ByteText> {
    let mut variables = BTreeMap::new();
    for variable in &environment.values {
        let at = variable.iter().position(|byte| *byte == b'=');
        let (name, value) = variable.split_at(at.unwrap_or(variable.len()));
        let name = String::from_utf8_lossy(name).into_owned();
        let value = value.strip_prefix(b"=").unwrap_or(value);
        variables
            .entry(name)
            .or_insert_with(|| ByteText(value.to_vec()));
    }
    variables
}

fn mark(mark: &Mark) -> MarkReport {
    MarkReport {
        ns: mark.ns,
        text: ByteText(mark.text.clone()),
    }
}

fn victim(ns: u64, oom: &Oom) -> OomReport {
    let memory = oom.memory;
    OomReport {
        ns,
        scope: oom.scope.map(OomScope::name),
        cgroup: oom.cgroup.clone(),
        limit_bytes: oom.limit,
        rss_bytes: memory.map(|m| m.rss()),
        rss_anon_bytes: memory.map(|m| m.anon),
        rss_file_bytes: memory.map(|m| m.file),
        rss_shmem_bytes: memory.map(|m| m.shmem),
        swap_bytes: memory.map(|m| m.swap),
        vms_bytes: memory.map(|m| m.vms),
    }
}

fn image(
    image: &Image,
    recording: &Recording,
    threads: u32,
    id: &impl Fn(ProcessKey) -> Id,
) -> ImageReport {
    let memory = image.memory;
    let counters = counter_bound(recording, threads).saturating_mul(KINDS);
    let bound = |memory: ImageMemory| {
        if memory.kept_at_every_event {
            counters
        } else {
            sum_bound(recording, memory.peak.rss(), 1, threads)
        }
    };
    let argv = image.argv.as_ref();
    let start = memory.and_then(|m| m.start);
    let churn = memory.and_then(|m| m.churn);
    ImageReport {
        start_ns: image.start_ns,
        end_ns: image.end_ns,
        how: match image.how {
            How::Inherited => "inherited",
            How::Exec => "exec",
        },
        filename: image.filename.clone().map(ByteText),
        comm: image.comm.clone().map(ByteText),
        argv: argv.map(|argv| argv.iter().cloned().map(ByteText).collect()),
        argv_bytes: image.argv_bytes,
        argv_truncated: image.argv_truncated,
        peak_rss_bytes: memory.map(|m| m.peak.rss()),
        peak_rss_bound_bytes: memory.map(bound),
        peak_rss_anon_bytes: memory.map(|m| m.peak.anon),
        peak_rss_file_bytes: memory.map(|m| m.peak.file),
        peak_rss_shmem_bytes: memory.map(|m| m.peak.shmem),
        peak_rss_ns: memory.map(|m| m.peak_ns),
        peak_swap_bytes: memory.map(|m| m.peak_swap),
        start_rss_bytes: start.map(|start| start.rss()),
        inherited_anon_bytes: start
            .filter(|_| image.how == How::Inherited)
            .map(|start| start.anon),
        anon_grown_bytes: churn.map(|churn| churn.grown),
        write_faults: churn.and_then(|churn| churn.write_faults),
        end_rss_bytes: memory.and_then(|m| m.end_rss),
        peak_vms_bytes: memory.map(|m| m.peak_vms),
        shared_mm_with: image.shared_mm_with.map(id),
    }
}

impl ImageReport {
    /// What a person would call this program; `None` if it is inherited or its exec was lost.
    pub fn program(&self) -> Option<ByteText> {
        let argv: Vec<Vec<u8>> = self.argv.as_ref()?.iter().map(|a| a.0.clone()).collect();
        let filename = self.filename.as_ref().map_or(&[][..], |f| &f.0);
        let comm = self.comm.as_ref().map_or(&[][..], |c| &c.0);
        Some(ByteText(program::label(filename, &argv, comm)))
    }
}

impl ProcessReport {
    /// Identity.
    pub fn id(&self) -> Id {
        Id {
            pid: self.pid,
            start_ns: Some(self.start_ns),
        }
    }

    /// Highest RSS of its last program. Earlier ones don't count: what `/bin/true` inherited from a
    /// large Python says nothing about `/bin/true`. `None` if it isn't known, or used the memory of
    /// another process.
    pub fn program_peak_rss_bytes(&self) -> Option<u64> {
        let own = self.images.last().filter(|i| i.shared_mm_with.is_none());
        own.and_then(|i| i.peak_rss_bytes)
    }
}
