//! The JSON report as typed values: the part of the contract that these tests read.
//!
//! `None` means that the report says "not known".

mod process;

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

use crate::lone_surrogates;

pub use process::{
    Blocked, ExecFailure, Exit, ForkRefusal, Image, Mark, Move, Oom, Parent, Process, Sender,
    Title, Usage, Wait,
};

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
