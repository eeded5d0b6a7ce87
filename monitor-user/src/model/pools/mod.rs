//! Pools of workers: who asked for them, how they were started, what became of them.
//!
//! They are recognised by structure alone: command lines of Python's own libraries, which thread of the owner made
//! which worker, and which threads it made right after that. `multiprocessing.Pool` makes all its workers and then three
//! threads; `ProcessPoolExecutor` makes one thread, which makes another. Names, numbers and lengths of time that a
//! program chooses play no part.
//!
//! What kernel events can't tell: which of two processes asked a fork server that both can reach (the one that started
//! it is taken), the number of workers that a pool may have at most, and the order of its tasks.

mod crew;
mod facts;
mod handlers;
mod idle;
mod owner;
mod parts;
mod signs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::{model::Tree, units::ProcessKey};

/// All pools of a tree, and what part each process has in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// Pools by the start of their first worker.
    pub pools: Vec<Pool>,
    /// Processes that have a part.
    pub roles: BTreeMap<ProcessKey, Role>,
}

/// A set of workers of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Process that asked for the workers. Of those that a fork server made: the process that started the server.
    pub owner: ProcessKey,
    /// The fork server that made the workers, if one did.
    pub server: Option<ProcessKey>,
    /// How a worker came to be; `None` if its program was executed in some way of its own.
    pub start_method: Option<StartMethod>,
    /// Which kind of pool; `None` if that can't be told.
    pub kind: Option<PoolKind>,
    /// All workers there ever were, in the order in which they were made.
    pub workers: Vec<ProcessKey>,
    /// Most alive at once; `None` if an end isn't known.
    pub workers_max: Option<u64>,
    /// When the first workers were made; `None` if that can't be told.
    pub start: Option<PoolStart>,
    /// Workers that ended with 0 and were followed by another one; `None` if an end isn't known.
    pub recycled: Option<u64>,
    /// Workers that died of a signal or ended with another code and were followed by another one; `None` if an end
    /// isn't known.
    pub replaced: Option<u64>,
    /// The workers that `recycled` counts.
    pub recycled_workers: Vec<ProcessKey>,
    /// The workers that `replaced` counts.
    pub replaced_workers: Vec<ProcessKey>,
    /// Workers in the order in which they first ran; `None` if that isn't known of each.
    pub first_run_order: Option<Vec<ProcessKey>>,
    /// Workers that never gave a result back, in the order in which they were made; `None` if that can't be told.
    pub idle: Option<Vec<ProcessKey>>,
    /// RSS of `idle` at the tree's highest sum of RSS, bytes: what they would have saved by not being there, at most.
    pub idle_bytes_at_peak: Option<u64>,
}

impl Pool {
    /// Workers that gave a result back; `None` if that can't be told.
    pub fn used(&self) -> Option<usize> {
        Some(self.workers.len() - self.idle.as_ref()?.len())
    }
}

/// How the workers of a pool are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartMethod {
    /// As a copy of the owner, without exec.
    Fork,
    /// As a new interpreter.
    Spawn,
    /// As a copy of a fork server.
    Forkserver,
    /// As a new interpreter, by loky.
    Loky,
}

impl StartMethod {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Spawn => "spawn",
            Self::Forkserver => "forkserver",
            Self::Loky => "loky",
        }
    }
}

/// Kinds of pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// `multiprocessing.Pool`.
    Pool,
    /// `concurrent.futures.ProcessPoolExecutor`.
    ProcessPoolExecutor,
    /// loky's executor, which joblib uses.
    Loky,
}

impl PoolKind {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pool => "Pool",
            Self::ProcessPoolExecutor => "ProcessPoolExecutor",
            Self::Loky => "loky",
        }
    }
}

/// When the first workers of a pool are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolStart {
    /// All of them before the first task is handed out.
    Eager,
    /// One by one, as tasks come.
    OnDemand,
}

impl PoolStart {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::OnDemand => "on_demand",
        }
    }
}

/// What part a process has in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It works in a pool.
    Worker,
    /// It removes what others leave behind: multiprocessing's resource tracker, before 3.8 semaphore tracker.
    ResourceTracker,
    /// It makes workers as copies of itself.
    Forkserver,
    /// It is the server process of a `multiprocessing.Manager`.
    Manager,
}

impl Role {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::ResourceTracker => "resource_tracker",
            Self::Forkserver => "forkserver",
            Self::Manager => "manager",
        }
    }
}

impl Pools {
    /// Recognises the pools of a tree.
    pub fn of(tree: &Tree) -> Self {
        let parts = parts::Parts::of(tree);
        let mut pools = Vec::new();
        for (owner, made) in &parts.by_owner {
            let groups = owner::groups(tree, *owner, made);
            pools.extend(groups.iter().map(|group| facts::pool(tree, *owner, group)));
        }
        for (owner, members) in crew::executed(tree, &parts) {
            pools.push(facts::pool(tree, owner, &owner::Group::crew(None, members)));
        }
        pools.sort_by_key(|pool| {
            let first = pool.workers.first();
            (first.map(|key| (key.start_ns, key.pid)), pool.owner.pid)
        });
        let mut roles = parts.roles;
        for worker in pools.iter().flat_map(|pool| &pool.workers) {
            roles.insert(*worker, Role::Worker);
        }
        Self { pools, roles }
    }

    /// What part a process has; `None` for none.
    pub fn role(&self, key: ProcessKey) -> Option<Role> {
        self.roles.get(&key).copied()
    }
}
