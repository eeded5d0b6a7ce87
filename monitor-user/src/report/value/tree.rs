//! The tree as a whole.

use serde::Serialize;

use super::{
    Id,
    share::{RoleReport, ShareReport, roles, shares},
};
use crate::{
    event::{Charge, ChargeScope, Recording},
    model::{
        Growth, Part, Peak, Polled, Step, Summary, Tree,
        bounds::{most_unique, sum_peak, unique_at_peak},
        pools::Pools,
    },
    report::{
        ByteText, ChargeReport, StallReport,
        request::{Known, RequestReport, request},
        watch,
    },
    units::ProcessKey,
};

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
    /// The same added up by what part the process had, the one with most first.
    pub peak_rss_sum_roles: Option<Vec<RoleReport>>,
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

pub(super) fn tree_report(
    tree: &Tree,
    pools: &Pools,
    recording: &Recording,
    id: &impl Fn(ProcessKey) -> Id,
) -> TreeReport {
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
        peak_rss_sum_roles: peak.as_ref().map(|peak| roles(tree, pools, peak)),
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
pub(in crate::report) fn asked(
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
