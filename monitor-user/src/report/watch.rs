//! Signals, failed calls and waits.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    event::{RefusedBy, Sender, SenderKind},
    model::{Blocked, Process, Stall, Wait},
    report::{ByteText, value::Id},
    units::{ProcessKey, errno_name},
};

/// Who sent a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SenderReport {
    /// `user`, a process, or `kernel`.
    pub kind: &'static str,
    /// The process; 0 for the kernel.
    pub pid: u32,
    /// When it was created; `None` for the kernel and for a process that isn't in the report.
    pub start_ns: Option<u64>,
    /// Name of the thread that sent it; empty for the kernel.
    pub comm: ByteText,
}

/// A call of exec that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExecFailureReport {
    /// When.
    pub ns: u64,
    /// Name of the error.
    pub errno: String,
    /// Path that was to be executed; empty if it couldn't be read.
    pub filename: ByteText,
}

/// Calls of fork, vfork or clone that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForkRefusalReport {
    /// Name of the error.
    pub errno: String,
    /// What was at its limit: `user_limit`, `pid_numbers` or `cgroup`; or `ended_namespace`. `None`: not known.
    pub by: Option<&'static str>,
    /// That limit, processes and threads together.
    pub limit: Option<u64>,
    /// Name of the control group whose limit it is.
    pub cgroup: Option<String>,
    /// How many calls.
    pub calls: u64,
}

/// What a process did nothing but wait in until it was killed, or until the recording ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockedReport {
    /// `futex`, `read`, `wait`, `sleep` or `other`.
    pub kind: &'static str,
    /// The system call.
    pub syscall: String,
    /// How long nothing of it had run.
    pub ns: u64,
}

/// A long wait of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitReport {
    /// The thread.
    pub tid: u32,
    /// From then.
    pub since_ns: u64,
    /// Until then.
    pub until_ns: u64,
    /// `sleeping`, `uninterruptible`, `stopped` or `traced`.
    pub state: &'static str,
    /// System call that it waited in; `None`: in none, or not known.
    pub syscall: Option<String>,
    /// It waited on when the recording ended.
    pub still: bool,
}

/// A move to another control group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoveReport {
    /// When.
    pub ns: u64,
    /// Number of the group's hierarchy, 0 for version 2.
    pub hierarchy: Option<u32>,
    /// The group's path in its hierarchy.
    pub cgroup: ByteText,
}

/// A time in which nothing of the tree ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StallReport {
    /// From then.
    pub since_ns: u64,
    /// Until then.
    pub until_ns: u64,
}

/// Who sent the signal that ended a process.
pub(super) fn sender(sender: &Sender, id: &impl Fn(ProcessKey) -> Id) -> SenderReport {
    let known = sender.process.map(id);
    SenderReport {
        kind: sender.kind.name(),
        pid: known.map_or(0, |known| known.pid),
        start_ns: known.and_then(|known| known.start_ns),
        comm: ByteText(sender.comm.clone()),
    }
}

pub(super) fn exec_failures(process: &Process) -> Option<Vec<ExecFailureReport>> {
    let failures = process.exec_failures.as_ref()?;
    let report = failures.iter().map(|failure| ExecFailureReport {
        ns: failure.time_ns,
        errno: errno_name(failure.errno),
        filename: ByteText(failure.filename.clone()),
    });
    Some(report.collect())
}

pub(super) fn fork_failures(process: &Process) -> Option<BTreeMap<String, u64>> {
    let failures = process.fork_failures.as_ref()?;
    let mut named = BTreeMap::new();
    for (failed, calls) in failures {
        *named.entry(errno_name(failed.errno)).or_default() += calls;
    }
    Some(named)
}

pub(super) fn fork_refusals(process: &Process) -> Option<Vec<ForkRefusalReport>> {
    let failures = process.fork_failures.as_ref()?;
    let report = failures.iter().map(|(failed, calls)| ForkRefusalReport {
        errno: errno_name(failed.errno),
        by: failed.refused_by.map(RefusedBy::name),
        limit: failed.limit,
        cgroup: failed.cgroup.clone(),
        calls: *calls,
    });
    Some(report.collect())
}

pub(super) fn blocked(blocked: &Blocked) -> BlockedReport {
    BlockedReport {
        kind: blocked.kind(),
        syscall: blocked.call.clone(),
        ns: blocked.ns,
    }
}

pub(super) fn wait(wait: &Wait) -> WaitReport {
    WaitReport {
        tid: wait.tid,
        since_ns: wait.since_ns,
        until_ns: wait.until_ns,
        state: wait.state.name(),
        syscall: wait.call.clone(),
        still: wait.still,
    }
}

pub(super) fn moves(process: &Process) -> Vec<MoveReport> {
    let report = |(ns, moved): &(u64, crate::event::Moved)| MoveReport {
        ns: *ns,
        hierarchy: moved.hierarchy,
        cgroup: ByteText(moved.path.clone()),
    };
    process.moves.iter().map(report).collect()
}

pub(super) fn stall(stall: &Stall) -> StallReport {
    StallReport {
        since_ns: stall.since_ns,
        until_ns: stall.until_ns,
    }
}

impl SenderReport {
    /// As a part of a sentence: "the kernel", "process 12 (sh)".
    pub(super) fn words(&self) -> String {
        if self.kind == SenderKind::Kernel.name() {
            return "the kernel".to_owned();
        }
        let name = crate::report::escape::escape(&self.comm.0);
        format!("process {} ({name})", self.pid)
    }
}
