//! The JSON report as typed values: the part of the contract that these tests read.
//!
//! `None` means that the report says "not known".

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

use crate::lone_surrogates::{self, Text};

/// A process is its pid and its start together.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Process id.
    pub pid: u32,
    /// Created then, ns since boot; `None` for a process outside the report.
    pub start_ns: Option<u64>,
}

/// `rtrace report --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// The recorded command; pid 0 if there was none.
    #[serde(deserialize_with = "root")]
    pub root: Id,
    /// Every process of the tree.
    pub processes: Vec<Process>,
    /// Totals.
    pub tree: Tree,
    /// What went wrong or is worth knowing.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// How it was recorded.
    pub recording: Recording,
    /// What the report can't know.
    pub trust: Trust,
}

/// Something that went wrong or is worth knowing.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    /// Its id.
    pub id: String,
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// Whether it could be judged.
    pub assessed: bool,
    /// Processes that it is about.
    pub subjects: Vec<Id>,
    /// What happened.
    pub text: String,
}

fn root<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
    let none = Id {
        pid: 0,
        start_ns: None,
    };
    Ok(Option::deserialize(deserializer)?.unwrap_or(none))
}

/// A control group that was recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct Group {
    /// As it was named.
    pub wanted: String,
    /// Its path.
    pub path: Option<String>,
    /// Its hierarchy in words.
    pub hierarchy: Option<String>,
    /// Its first process, ns since boot.
    pub first_ns: Option<u64>,
    /// The container that has it.
    pub container: Option<Container>,
}

/// A container.
#[derive(Clone, Debug, Deserialize)]
pub struct Container {
    /// Its full id.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// What keeps it.
    pub runtime: Option<String>,
    /// Its pod's name.
    pub pod: Option<String>,
    /// Its pod's id.
    pub pod_id: Option<String>,
    /// Its pod's namespace.
    pub namespace: Option<String>,
}

/// How it was recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    /// By how much one counter may be wrong.
    pub rss_bound_bytes: u64,
    /// Start of the recording, ns since boot.
    pub start_ns: u64,
    /// All processes that were there already had been found, ns since boot.
    pub attached_ns: Option<u64>,
    /// The control group that was recorded.
    pub group: Option<Group>,
    /// Environment that names the job.
    pub env: BTreeMap<String, String>,
    /// What bounds and shapes the command from outside.
    pub conditions: Option<Conditions>,
    /// Instructions that the verifier looked at, by BPF program.
    #[serde(default)]
    pub verified_instructions: BTreeMap<String, u64>,
}

/// What bounds and shapes the command from outside.
#[derive(Clone, Debug, Deserialize)]
pub struct Conditions {
    /// User.
    pub uid: Option<u32>,
    /// CPUs that it may run on.
    pub allowed_cpus: Option<String>,
    /// Limits of control groups.
    pub cgroup_limits: Vec<HeldLimit>,
    /// Limits of the process by name.
    pub ulimits: BTreeMap<String, Limit>,
    /// Mode of overcommitting.
    pub overcommit_memory: Option<u32>,
    /// `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
}

/// A limit of a control group.
#[derive(Clone, Debug, Deserialize)]
pub struct HeldLimit {
    /// Folder of the group.
    pub group: String,
    /// File that holds it.
    pub file: String,
    /// What is in it.
    pub value: String,
}

/// A limit of a process; `None` is unlimited.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Limit {
    /// The one that holds.
    pub soft: Option<u64>,
    /// The highest that it may set.
    pub hard: Option<u64>,
}

/// Totals over the tree.
#[derive(Clone, Debug, Deserialize)]
pub struct Tree {
    /// Processes, the root included.
    pub processes: u64,
    /// Threads besides each process's first.
    pub threads_created: Option<u64>,
    /// Most processes alive at once.
    pub max_live_processes: Option<u64>,
    /// Most creators between a process and the root.
    pub max_depth: Option<u64>,
    /// Processes that the OOM killer ended.
    pub oom_kills: Option<u64>,
    /// Highest sum of RSS.
    pub peak_rss_sum_bytes: Option<u64>,
    /// The truth differs from that by this at most.
    pub peak_rss_sum_bound_bytes: Option<u64>,
    /// Memory in use then, shared pages counted once: at least this.
    pub peak_unique_low_bytes: Option<u64>,
    /// At most this.
    pub peak_unique_high_bytes: Option<u64>,
    /// The largest steps in which mapped memory grew.
    #[serde(default)]
    pub vms_steps: Vec<Step>,
    /// What the memory controller charged.
    pub charge: Option<Charge>,
}

/// A step in which mapped memory grew.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// `mapped`, `forked` or `executed`.
    pub how: String,
    /// By this much.
    pub bytes: u64,
    /// Thread that did it.
    pub tid: Option<u32>,
    /// What grew most.
    pub part: Option<String>,
}

/// What the memory controller charged a control group, bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Charge {
    /// `own`, `given` or `shared`.
    pub scope: Option<String>,
    /// Why it is no group of the command's own.
    pub why_shared: Option<String>,
    /// Name of the group.
    pub group: Option<String>,
    /// Version of the memory controller.
    pub version: Option<u32>,
    /// When the command began.
    pub start_bytes: Option<u64>,
    /// Highest, as the kernel kept it.
    pub peak_bytes: Option<u64>,
    /// Highest at an event.
    pub peak_seen_bytes: Option<u64>,
    /// That moment.
    pub peak_seen_ns: Option<u64>,
    /// At the look that found most.
    pub at_peak: Option<ChargeSplit>,
    /// When the recording ended.
    pub at_end: Option<ChargeSplit>,
    /// Processes in the group then.
    pub processes_at_end: Option<u64>,
}

/// What a charge consists of, bytes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ChargeSplit {
    /// All of it.
    pub total_bytes: Option<u64>,
    /// Private memory.
    pub anon_bytes: Option<u64>,
    /// Cached files.
    pub file_bytes: Option<u64>,
    /// Shared memory and files in memory.
    pub shmem_bytes: Option<u64>,
    /// The kernel's own.
    pub kernel_bytes: Option<u64>,
    /// Page tables.
    pub page_tables_bytes: Option<u64>,
}

/// How far the report can be relied on.
#[derive(Clone, Debug, Deserialize)]
pub struct Trust {
    /// Events read.
    pub events: u64,
    /// Events that the kernel side could not hand over.
    pub lost_events: u64,
    /// Nothing is missing.
    pub complete: bool,
    /// What is missing, in words.
    pub notes: Vec<String>,
}

/// A parent that a process had.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Parent {
    /// Since then, ns since boot; `None`: since when isn't known.
    pub ns: Option<u64>,
    /// Its pid.
    pub pid: u32,
    /// Its start; `None` if it isn't in the report.
    pub start_ns: Option<u64>,
}

/// One process.
#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Created then, ns since boot.
    pub start_ns: u64,
    /// Last thread ended then, ns since boot.
    pub end_ns: Option<u64>,
    /// Process that created it; `None` for the root.
    pub creator: Option<Id>,
    /// Where `creator` is from, if not from its creation.
    pub creator_from: Option<String>,
    /// It was there before the recording and was found then, ns since boot.
    pub found_ns: Option<u64>,
    /// Thread that created it.
    pub creator_tid: Option<u32>,
    /// Live threads of the creator then.
    pub creator_threads: Option<u32>,
    /// How long the call took that created it, ns.
    pub fork_ns: Option<u64>,
    /// RSS of the creator then.
    pub creator_rss_bytes: Option<u64>,
    /// Its address space.
    pub creator_vms_bytes: Option<u64>,
    /// Its page tables.
    pub creator_page_tables_bytes: Option<u64>,
    /// Parent at the end.
    pub final_parent: Option<Id>,
    /// All parents, the creator first.
    pub parents: Vec<Parent>,
    /// `root`, `fork`, `vfork` or `clone_vm`.
    pub created_by: Option<String>,
    /// Names of clone's flags.
    pub clone_flags: Option<Vec<String>>,
    /// Last name of the first thread.
    pub comm: Option<Text>,
    /// Programs that it was, in order.
    pub images: Vec<Image>,
    /// What its last program got of the variables that are kept.
    pub env: Option<BTreeMap<String, Text>>,
    /// What it called itself last by writing over its arguments.
    pub title: Option<Text>,
    /// All that it called itself so.
    #[serde(default)]
    pub titles: Vec<Title>,
    /// Moments that it marked.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Threads besides its first.
    pub threads_created: Option<u32>,
    /// Most threads alive at once.
    pub threads_max: Option<u32>,
    /// User plus system time, ns.
    pub cpu_ns: Option<u64>,
    /// What else all its threads used.
    #[serde(flatten)]
    pub usage: Usage,
    /// The OOM killer chose it.
    pub oom: Option<Oom>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Lived on after the root.
    pub survived_root: Option<bool>,
    /// From its end until it was reaped, ns.
    pub zombie_ns: Option<u64>,
    /// First had a CPU then, ns since boot.
    pub first_run_ns: Option<u64>,
    /// Stopped by signals for so long, ns.
    pub stopped_ns: Option<u64>,
    /// Waited until it was killed, or until the recording ended.
    pub blocked_at_end: Option<Blocked>,
    /// Its longest waits.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// Calls of exec that failed.
    pub exec_failures: Option<Vec<ExecFailure>>,
    /// Calls of fork that failed, by name of the error.
    pub fork_failures: Option<BTreeMap<String, u64>>,
    /// Its pid in its own pid namespace.
    pub pid_ns: Option<u32>,
    /// How deep that is below the first one.
    pub pid_ns_level: Option<u32>,
    /// Made a session of its own then, ns since boot.
    pub session_ns: Option<u64>,
    /// Moves to other control groups.
    #[serde(default)]
    pub moves: Vec<Move>,
}

/// A process that did nothing but wait.
#[derive(Clone, Debug, Deserialize)]
pub struct Blocked {
    /// `futex`, `read`, `wait`, `sleep` or `other`.
    pub kind: String,
    /// How long, ns.
    pub ns: u64,
}

/// A long wait of a thread.
#[derive(Clone, Debug, Deserialize)]
pub struct Wait {
    /// The thread.
    pub tid: u32,
    /// From then, ns since boot.
    pub since_ns: u64,
    /// Until then, ns since boot.
    pub until_ns: u64,
    /// `sleeping`, `uninterruptible`, `stopped` or `traced`.
    pub state: String,
    /// System call that it waited in.
    pub syscall: Option<String>,
}

/// A call of exec that failed.
#[derive(Clone, Debug, Deserialize)]
pub struct ExecFailure {
    /// Name of the error.
    pub errno: String,
    /// Path that was to be executed.
    pub filename: Text,
}

/// A move to another control group.
#[derive(Clone, Debug, Deserialize)]
pub struct Move {
    /// Its path in its hierarchy.
    pub cgroup: Text,
}

/// Who sent a signal.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Sender {
    /// `user` or `kernel`.
    pub kind: String,
    /// The process; 0 for the kernel.
    pub pid: u32,
}

/// What a process called itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Title {
    /// Seen then, ns since boot.
    pub ns: u64,
    /// What.
    pub text: Text,
    /// There was more.
    pub truncated: bool,
}

/// A moment that a process marked.
#[derive(Clone, Debug, Deserialize)]
pub struct Mark {
    /// When, ns since boot.
    pub ns: u64,
    /// What it said.
    pub text: Text,
}

/// What all threads of a process used, if it was reaped.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode, ns.
    pub user_ns: Option<u64>,
    /// Time in the kernel, ns.
    pub system_ns: Option<u64>,
    /// Page faults without storage.
    pub faults_minor: Option<u64>,
    /// Page faults that waited for storage.
    pub faults_major: Option<u64>,
    /// Gave up the CPU.
    pub switches_voluntary: Option<u64>,
    /// Lost the CPU.
    pub switches_involuntary: Option<u64>,
    /// Read by system calls, bytes.
    pub read_chars: Option<u64>,
    /// Written by system calls, bytes.
    pub written_chars: Option<u64>,
    /// Read from storage.
    pub read_bytes: Option<u64>,
    /// Written to storage.
    pub written_bytes: Option<u64>,
}

/// A victim of the OOM killer.
#[derive(Clone, Debug, Deserialize)]
pub struct Oom {
    /// `cgroup` or `host`.
    pub scope: Option<String>,
    /// Name of the control group.
    pub cgroup: Option<String>,
    /// Its limit.
    pub limit_bytes: Option<u64>,
    /// RSS.
    pub rss_bytes: Option<u64>,
    /// Anonymous pages.
    pub rss_anon_bytes: Option<u64>,
    /// Pages of files.
    pub rss_file_bytes: Option<u64>,
    /// Shared memory.
    pub rss_shmem_bytes: Option<u64>,
    /// Size of the address space.
    pub vms_bytes: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Exit {
    /// Exit code.
    pub code: Option<u32>,
    /// Deadly signal.
    pub signal: Option<u32>,
    /// A core was written.
    pub core: Option<bool>,
    /// The OOM killer did it.
    pub oom: Option<bool>,
    /// Who sent the signal.
    pub sender: Option<Sender>,
}

/// One program that a process was.
#[derive(Clone, Debug, Deserialize)]
pub struct Image {
    /// From then, ns since boot.
    pub start_ns: Option<u64>,
    /// Until then, ns since boot.
    pub end_ns: Option<u64>,
    /// `inherited` or `exec`.
    pub how: String,
    /// Path given to exec.
    pub filename: Option<Text>,
    /// Name right after exec.
    pub comm: Option<Text>,
    /// Arguments.
    #[serde(default)]
    pub argv: Option<Vec<Text>>,
    /// Size of all arguments with their NULs.
    pub argv_bytes: Option<u64>,
    /// Some arguments are missing.
    pub argv_truncated: Option<bool>,
    /// Working directory at its start.
    pub cwd: Option<Text>,
    /// Outer folders of that are missing.
    #[serde(default)]
    pub cwd_truncated: bool,
    /// It had been removed.
    #[serde(default)]
    pub cwd_deleted: bool,
    /// It wasn't mounted any more.
    #[serde(default)]
    pub cwd_unreachable: bool,
    /// Highest RSS.
    pub peak_rss_bytes: Option<u64>,
    /// By how much that peak may be wrong.
    pub peak_rss_bound_bytes: Option<u64>,
    /// RSS that it began with.
    pub start_rss_bytes: Option<u64>,
    /// Anonymous pages that it has from its creator.
    pub inherited_anon_bytes: Option<u64>,
    /// Write faults on pages that were there.
    pub write_faults: Option<u64>,
    /// RSS just before the image ended.
    pub end_rss_bytes: Option<u64>,
    /// Highest VMS.
    pub peak_vms_bytes: Option<u64>,
    /// Process whose address space it uses.
    pub shared_mm_with: Option<Id>,
}

impl Process {
    /// Pid and start.
    pub fn id(&self) -> Id {
        Id {
            pid: self.pid,
            start_ns: Some(self.start_ns),
        }
    }

    /// Exit code, if it ended with one.
    pub fn code(&self) -> Option<u32> {
        self.exit.as_ref().and_then(|exit| exit.code)
    }

    /// Deadly signal, if one ended it.
    pub fn signal(&self) -> Option<u32> {
        self.exit.as_ref().and_then(|exit| exit.signal)
    }

    /// Its last image.
    ///
    /// # Errors
    /// It has none.
    pub fn image(&self) -> anyhow::Result<&Image> {
        self.images
            .last()
            .with_context(|| format!("process {} has no image", self.pid))
    }

    /// Images that it became by exec.
    pub fn execs(&self) -> impl Iterator<Item = &Image> {
        self.images.iter().filter(|image| image.how == "exec")
    }
}

impl Report {
    /// Whether the kernel skipped runs that may each have been an event, and nothing else is missing.
    pub fn has_skipped_runs(&self) -> bool {
        let is_skip = |note: &String| note.contains("each may be an event that is missing");
        !self.trust.complete && self.trust.lost_events == 0 && self.trust.notes.iter().any(is_skip)
    }

    /// Reads the text of `rtrace report --json`.
    ///
    /// # Errors
    /// It isn't JSON of the agreed form.
    pub fn parse(json: &str) -> anyhow::Result<Self> {
        serde_json::from_str(&lone_surrogates::replace(json))
            .context("the report doesn't keep to the contract")
    }

    /// The recorded command's process.
    ///
    /// # Errors
    /// It isn't among the processes.
    pub fn root(&self) -> anyhow::Result<&Process> {
        let root = self
            .processes
            .iter()
            .find(|process| process.id() == self.root);
        root.context("the root isn't among the processes")
    }

    /// All but the root, in the report's order.
    pub fn others(&self) -> Vec<&Process> {
        self.processes
            .iter()
            .filter(|process| process.id() != self.root)
            .collect()
    }

    /// The only process besides the root.
    ///
    /// # Errors
    /// There is none or more than one.
    pub fn only_child(&self) -> anyhow::Result<&Process> {
        match self.others().as_slice() {
            [child] => Ok(child),
            others => anyhow::bail!("{} processes besides the root, not 1", others.len()),
        }
    }

    /// The only process with this pid.
    ///
    /// # Errors
    /// There is none or more than one.
    pub fn by_pid(&self, pid: u32) -> anyhow::Result<&Process> {
        let found: Vec<_> = self
            .processes
            .iter()
            .filter(|process| process.pid == pid)
            .collect();
        match found.as_slice() {
            [process] => Ok(process),
            _ => anyhow::bail!("{} processes with pid {pid}, not 1", found.len()),
        }
    }

    /// How many processes ended with which exit code.
    pub fn codes(&self) -> BTreeMap<Option<u32>, usize> {
        let mut codes = BTreeMap::new();
        for process in self.others() {
            *codes.entry(process.code()).or_default() += 1;
        }
        codes
    }
}
