//! Workers that never did anything.
//!
//! A worker gives each result back through a pipe, so what it has written tells whether it ever gave one. The kernel
//! counts that when the worker is reaped. A worker that wrote less than the smallest result has given none; one that was
//! killed within its first task has given none either, so only those that ended by themselves or on the pool's request
//! are judged.

use super::{PoolKind, owner::Group};
use crate::{
    model::{Process, Tree},
    units::ProcessKey,
};

/// The smallest result of `Pool` is a pickle of `(job, i, (True, None))` behind 4 bytes of length: 29 bytes in CPython 3.8
/// to 3.13. Without a result a worker writes nothing, whatever the start method.
const POOL_BYTES: u64 = 16;
/// At its end a worker of `ProcessPoolExecutor` writes its pid, at most 21 bytes, and the smallest `_ResultItem` is more
/// than twice this, since it names its class (107 bytes in CPython 3.8).
const EXECUTOR_BYTES: u64 = 32;
/// A worker of loky makes a semaphore (its 32 bytes are written to a file in memory) and at its end writes its pid, 19
/// bytes; its smallest `_ResultItem` is more than 100 bytes, since it names its class (120 in joblib 1.6, loky 3.5).
const LOKY_BYTES: u64 = 90;

const SIGTERM: u32 = 15;

/// Workers that never gave a result back; `None` if that can't be told of each.
pub(super) fn workers(tree: &Tree, group: &Group) -> Option<Vec<ProcessKey>> {
    let least = match group.kind()? {
        PoolKind::Pool => POOL_BYTES,
        PoolKind::ProcessPoolExecutor => EXECUTOR_BYTES,
        PoolKind::Loky => LOKY_BYTES,
    };
    let mut idle = Vec::new();
    for made in &group.members {
        let process = &tree.processes[made.at];
        if process.usage.written_chars? <= least && ended_by_plan(process)? {
            idle.push(process.key);
        }
    }
    Some(idle)
}

/// It ended with 0, or by the signal with which a pool ends its workers.
fn ended_by_plan(process: &Process) -> Option<bool> {
    let exit = crate::event::Exit {
        status: process.status?,
        ..crate::event::Exit::default()
    };
    Some(exit.code() == Some(0) || exit.signal() == Some(SIGTERM))
}
