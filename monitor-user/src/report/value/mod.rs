//! The report as one value. Field names are the keys of the JSON report.
//!
//! `None` is "not known". Times are ns since boot, sizes are bytes. Keys that rtrace can't tell
//! anything about yet are absent.

mod image;
mod process;
mod recording;
mod share;
mod tree;

pub use image::ImageReport;
pub use process::{ExitReport, MarkReport, OomReport, ParentReport, ProcessReport, TitleReport};
pub use recording::RecordingReport;
pub use share::{RoleReport, ShareReport};
pub(super) use tree::asked;
pub use tree::{PolledReport, StepReport, TopReport, TreeReport};

use serde::Serialize;

use self::{
    process::{exit, process},
    recording::facts,
    tree::tree_report,
};
use crate::{
    event::{Recording, Verification},
    findings::{Selection, assess},
    model::{
        Process, Tree,
        pools::{Pools, Role},
    },
    report::{FindingReport, PoolReport, findings::findings, pools},
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
            tree: tree_report(tree, &pools, recording, &id),
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
