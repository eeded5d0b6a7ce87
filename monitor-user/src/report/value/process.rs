//! Processes and how they ended.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Id,
    image::{ImageReport, image},
};
use crate::{
    event::{Environment, Exit, Oom, OomScope, Recording},
    model::{CreatedBy, CreatorFrom, Ending, Mark, Parent, Process, Title, clone_flag_names},
    report::{
        BlockedReport, ByteText, ExecFailureReport, ForkRefusalReport, MoveReport, SenderReport,
        WaitReport, watch,
    },
    units::ProcessKey,
};

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
    /// RSS of the creator then.
    pub creator_rss_bytes: Option<u64>,
    /// Address space of the creator then.
    pub creator_vms_bytes: Option<u64>,
    /// Page tables of the creator then.
    pub creator_page_tables_bytes: Option<u64>,
    /// How long the call took in the kernel until it had made the process; what vfork waits for isn't in it.
    pub fork_ns: Option<u64>,
    /// Parent at its end, or at the end of the recording.
    pub final_parent: Option<Id>,
    /// All parents that it had, in order, the creator first; `final_parent` is the last one, if that is known.
    pub parents: Vec<ParentReport>,
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
    /// What it called itself last by writing over its arguments; `None`: nothing was seen, or it has executed another
    /// program since.
    pub title: Option<ByteText>,
    /// All that it was seen to call itself so; of more than 64 the first 63 and the last.
    pub titles: Vec<TitleReport>,
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
    /// The same calls by what refused them. `None` if they weren't watched.
    pub fork_refusals: Option<Vec<ForkRefusalReport>>,
    /// Its pid in its own pid namespace; not known of the command.
    pub pid_ns: Option<u32>,
    /// How deep that namespace is below the first one.
    pub pid_ns_level: Option<u32>,
    /// When it made a session of its own.
    pub session_ns: Option<u64>,
    /// Moves to other control groups; the first 64.
    pub moves: Vec<MoveReport>,
}

/// A parent that a process had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ParentReport {
    /// Since then; `None`: since when isn't known.
    pub ns: Option<u64>,
    /// Who.
    #[serde(flatten)]
    pub id: Id,
}

/// What a process called itself by writing over its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TitleReport {
    /// When that was seen; it may have been so for some time.
    pub ns: u64,
    /// What it was; words put together with spaces.
    pub text: ByteText,
    /// Whether there was more of it.
    pub truncated: bool,
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

pub(super) fn process(
    p: &Process,
    recording: &Recording,
    id: &impl Fn(ProcessKey) -> Id,
) -> ProcessReport {
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
        creator_rss_bytes: created.creator_rss,
        creator_vms_bytes: created.creator_vms,
        creator_page_tables_bytes: created.creator_page_tables,
        fork_ns: created.fork_ns,
        final_parent: p.final_parent.map(id),
        parents: parents(p, id),
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
        title: p.title().map(|title| ByteText(title.text.clone())),
        titles: p.titles.iter().map(title).collect(),
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
        fork_refusals: watch::fork_refusals(p),
        pid_ns: p.ns_pid,
        pid_ns_level: p.ns_level,
        session_ns: p.session_ns,
        moves: watch::moves(p),
    }
}

fn parents(p: &Process, id: &impl Fn(ProcessKey) -> Id) -> Vec<ParentReport> {
    let parent = |parent: Parent| ParentReport {
        ns: parent.ns,
        id: id(parent.key),
    };
    p.parents().map(parent).collect()
}

pub(super) fn exit(
    status: u32,
    process: Option<&Process>,
    id: &impl Fn(ProcessKey) -> Id,
) -> ExitReport {
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

fn title(title: &Title) -> TitleReport {
    TitleReport {
        ns: title.ns,
        text: ByteText(title.text.clone()),
        truncated: title.is_cut,
    }
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

impl ProcessReport {
    /// Identity.
    pub fn id(&self) -> Id {
        Id {
            pid: self.pid,
            start_ns: Some(self.start_ns),
        }
    }

    /// From its start to the end of its last thread, ns; `None` if it hadn't ended or that isn't known.
    pub fn lifetime_ns(&self) -> Option<u64> {
        Some(self.end_ns?.saturating_sub(self.start_ns))
    }

    /// Highest RSS of its last program. Earlier ones don't count: what `/bin/true` inherited from a
    /// large Python says nothing about `/bin/true`. `None` if it isn't known, or used the memory of
    /// another process.
    pub fn program_peak_rss_bytes(&self) -> Option<u64> {
        let own = self.images.last().filter(|i| i.shared_mm_with.is_none());
        own.and_then(|i| i.peak_rss_bytes)
    }
}
