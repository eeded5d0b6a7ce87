//! Pools of workers.

use serde::Serialize;

use crate::{
    model::{
        Tree,
        pools::{Pool, PoolKind, PoolStart, Pools, StartMethod},
    },
    report::Id,
    units::ProcessKey,
};

/// A set of workers of one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolReport {
    /// Process that asked for the workers.
    pub owner: Id,
    /// Fork server that made them; `None` if none did.
    pub server: Option<Id>,
    /// `fork`, `spawn`, `forkserver` or `loky`; `None` if the owner executed a program of its own.
    pub start_method: Option<&'static str>,
    /// `Pool`, `ProcessPoolExecutor`, `loky` or `unknown`.
    pub kind: &'static str,
    /// All workers there ever were, in the order in which they were made.
    pub workers: Vec<Id>,
    /// Most alive at once; `None` if an end isn't known.
    pub workers_max: Option<u64>,
    /// How many there ever were.
    pub workers_total: u64,
    /// `eager`, `on_demand` or `unknown`.
    pub start: &'static str,
    /// Ended with 0 and were followed by another one; `None` if an end isn't known.
    pub recycled: Option<u64>,
    /// Died or ended with another code and were followed by another one; `None` if an end isn't known.
    pub replaced: Option<u64>,
    /// The workers in the order in which they were made.
    pub created_order: Vec<Id>,
    /// The workers in the order in which they first ran; `None` if that isn't known of each.
    pub first_run_order: Option<Vec<Id>>,
    /// Workers that never gave a result back; `None` if that can't be told.
    pub idle: Option<Vec<Id>>,
    /// RSS of those at the tree's highest sum of RSS.
    pub idle_bytes_at_peak: Option<u64>,
}

/// All pools of a tree.
pub(super) fn reports(tree: &Tree, pools: &Pools) -> Vec<PoolReport> {
    pools.pools.iter().map(|pool| report(tree, pool)).collect()
}

fn report(tree: &Tree, pool: &Pool) -> PoolReport {
    let id = |key: &ProcessKey| Id {
        pid: key.pid,
        start_ns: tree.position(*key).map(|_| key.start_ns),
    };
    let ids = |keys: &[ProcessKey]| keys.iter().map(id).collect::<Vec<Id>>();
    PoolReport {
        owner: id(&pool.owner),
        server: pool.server.as_ref().map(id),
        start_method: pool.start_method.map(StartMethod::name),
        kind: pool.kind.map_or("unknown", PoolKind::name),
        workers: ids(&pool.workers),
        workers_max: pool.workers_max,
        workers_total: pool.workers.len() as u64,
        start: pool.start.map_or("unknown", PoolStart::name),
        recycled: pool.recycled,
        replaced: pool.replaced,
        created_order: ids(&pool.workers),
        first_run_order: pool.first_run_order.as_deref().map(ids),
        idle: pool.idle.as_deref().map(ids),
        idle_bytes_at_peak: pool.idle_bytes_at_peak,
    }
}
