//! Who may be a worker of whom.

use std::collections::BTreeMap;

use super::{
    Role, StartMethod,
    signs::{Sign, sign},
};
use crate::{
    model::{CreatedBy, CreatorFrom, How, Process, Tree},
    units::ProcessKey,
};

/// A process that somebody may have made as a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// Place in the tree.
    pub(super) at: usize,
    /// When, ns since boot.
    pub(super) ns: u64,
    /// Thread of the owner that made it; `None` if a fork server did.
    pub(super) tid: Option<u32>,
    /// In which way.
    pub(super) method: StartMethod,
    /// The fork server.
    pub(super) server: Option<ProcessKey>,
}

/// All processes by their parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Possible workers of each owner, place in the tree, in order of time.
    pub(super) by_owner: BTreeMap<usize, Vec<Made>>,
    /// Parts that are certain already.
    pub(super) roles: BTreeMap<ProcessKey, Role>,
}

impl Parts {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut parts = Self::default();
        let signs: Vec<Option<Sign>> = tree.processes.iter().map(sign).collect();
        for (process, sign) in tree.processes.iter().zip(&signs) {
            let role = match sign {
                Some(Sign::Forkserver) => Role::Forkserver,
                Some(Sign::Tracker) => Role::ResourceTracker,
                Some(Sign::Spawned | Sign::Loky) | None => continue,
            };
            parts.roles.insert(process.key, role);
        }
        let busy: Vec<Option<u64>> = first_children(tree);
        for (at, process) in tree.processes.iter().enumerate() {
            let Some((owner, made)) = made(tree, &signs, at) else {
                continue;
            };
            if is_manager(process, busy[at]) {
                parts.roles.insert(process.key, Role::Manager);
            } else {
                parts.by_owner.entry(owner).or_default().push(made);
            }
        }
        parts
    }
}

/// When each process made its first child.
fn first_children(tree: &Tree) -> Vec<Option<u64>> {
    let mut first = vec![None; tree.processes.len()];
    for process in &tree.processes {
        let creator = process.created.creator.and_then(|key| tree.position(key));
        if let Some(at) = creator {
            first[at].get_or_insert(process.key.start_ns);
        }
    }
    first
}

/// Whose worker a process may be.
fn made(tree: &Tree, signs: &[Option<Sign>], at: usize) -> Option<(usize, Made)> {
    let process = &tree.processes[at];
    let created = &process.created;
    if created.creator_from != CreatorFrom::Fork {
        return None;
    }
    let creator = tree.position(created.creator?)?;
    let of = |method| Made {
        at,
        ns: process.key.start_ns,
        tid: created.creator_tid,
        method,
        server: None,
    };
    match signs[at] {
        Some(Sign::Spawned) => return Some((creator, of(StartMethod::Spawn))),
        Some(Sign::Loky) => return Some((creator, of(StartMethod::Loky))),
        Some(Sign::Forkserver | Sign::Tracker) => return None,
        None => {}
    }
    let is_copy = created.by == Some(CreatedBy::Fork)
        && process.images.iter().all(|i| i.how == How::Inherited);
    if !is_copy {
        return None;
    }
    if signs[creator] != Some(Sign::Forkserver) {
        return Some((creator, of(StartMethod::Fork)));
    }
    let server = &tree.processes[creator];
    let owner = tree.position(server.created.creator?)?;
    let made = Made {
        tid: None,
        server: Some(server.key),
        ..of(StartMethod::Forkserver)
    };
    Some((owner, made))
}

/// Whether a process is the server of a `multiprocessing.Manager`: its first thread makes one other and then waits; that
/// one takes connections until the end and makes a thread for each (`managers.Server.serve_forever` and `accepter`).
///
/// An executor in a worker looks alike but for the workers, which it has before its threads.
fn is_manager(process: &Process, first_child_ns: Option<u64>) -> bool {
    let Some(threads) = &process.threads else {
        return false;
    };
    let Some(accepter) = threads.first().filter(|t| t.creator_tid == process.key.pid) else {
        return false;
    };
    let until = process.end_ns();
    let is_there =
        accepter.end_ns.is_none() || until.is_some_and(|end| ends_with(accepter.end_ns, end));
    let handlers = &threads[1..];
    let is_only_maker = handlers.iter().all(|t| t.creator_tid == accepter.tid);
    let is_before_children = first_child_ns.is_none_or(|ns| ns > accepter.start_ns);
    is_there && !handlers.is_empty() && is_only_maker && is_before_children
}

/// Threads that a process leaves behind are ended by its last call, within this time.
const EXIT_NS: u64 = 100_000_000;

fn ends_with(thread_ns: Option<u64>, process_ns: u64) -> bool {
    thread_ns.is_some_and(|ns| ns.saturating_add(EXIT_NS) >= process_ns)
}
