//! What became of the workers of a pool.

use std::collections::VecDeque;

use super::{Pool, idle, owner::Group, parts::Made};
use crate::{
    event::Exit,
    model::{Ending, Tree},
    units::ProcessKey,
};

/// The pool that a group is.
pub(super) fn pool(tree: &Tree, owner: usize, group: &Group) -> Pool {
    let key = |made: &Made| tree.processes[made.at].key;
    let followed = followed(tree, &group.members);
    let idle = idle::workers(tree, group);
    Pool {
        owner: tree.processes[owner].key,
        server: group.members.iter().find_map(|made| made.server),
        start_method: group.method,
        kind: group.kind(),
        workers: group.members.iter().map(key).collect(),
        workers_max: most_alive(tree, &group.members),
        start: group.start(),
        recycled: followed.as_ref().map(|f| f.recycled.len() as u64),
        replaced: followed.as_ref().map(|f| f.replaced.len() as u64),
        recycled_workers: followed
            .as_ref()
            .map_or_else(Vec::new, |f| f.recycled.clone()),
        replaced_workers: followed
            .as_ref()
            .map_or_else(Vec::new, |f| f.replaced.clone()),
        first_run_order: first_runs(tree, &group.members),
        idle_bytes_at_peak: idle.as_ref().and_then(|idle| bytes_at_peak(tree, idle)),
        idle,
    }
}

/// When a worker was gone, ns since boot: never, if it was alive at the end. `None` if that isn't known.
fn gone(tree: &Tree, made: &Made) -> Option<u64> {
    match tree.processes[made.at].ending {
        Ending::Ended { at } => at,
        Ending::Alive => Some(u64::MAX),
        Ending::Unknown => None,
    }
}

/// Most of them alive at once; `None` if an end isn't known.
pub(super) fn most_alive(tree: &Tree, members: &[Made]) -> Option<u64> {
    let mut ends: Vec<u64> = members
        .iter()
        .map(|made| gone(tree, made))
        .collect::<Option<_>>()?;
    ends.sort_unstable();
    let mut starts: Vec<u64> = members.iter().map(|made| made.ns).collect();
    starts.sort_unstable();
    let (mut ended, mut most) = (0, 0);
    for (started, start) in starts.iter().enumerate() {
        while ends.get(ended).is_some_and(|end| end <= start) {
            ended += 1;
        }
        // A worker may have been told of after it had ended.
        most = most.max((started + 1).saturating_sub(ended));
    }
    Some(most as u64)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Followed {
    recycled: Vec<ProcessKey>,
    replaced: Vec<ProcessKey>,
}

/// Ends that a start came after: each start follows one end, the oldest that none has followed.
fn followed(tree: &Tree, members: &[Made]) -> Option<Followed> {
    let mut ends: Vec<(u64, ProcessKey, Option<u32>)> = members
        .iter()
        .map(|made| {
            let process = &tree.processes[made.at];
            Some((gone(tree, made)?, process.key, process.status))
        })
        .collect::<Option<_>>()?;
    ends.sort_unstable();
    let mut ends = VecDeque::from(ends);
    let mut followed = Followed::default();
    for made in members {
        if let Some((_, key, status)) = ends.pop_front_if(|(end, ..)| *end <= made.ns) {
            let exit = Exit {
                status: status?,
                ..Exit::default()
            };
            if exit.code() == Some(0) {
                followed.recycled.push(key);
            } else {
                followed.replaced.push(key);
            }
        }
    }
    Some(followed)
}

fn first_runs(tree: &Tree, members: &[Made]) -> Option<Vec<ProcessKey>> {
    let run = |made: &Made| {
        let process = &tree.processes[made.at];
        Some((process.first_run_ns?, process.key))
    };
    let mut runs: Vec<_> = members.iter().map(run).collect::<Option<_>>()?;
    runs.sort_by_key(|(ns, key)| (*ns, key.start_ns, key.pid));
    Some(runs.into_iter().map(|(_, key)| key).collect())
}

fn bytes_at_peak(tree: &Tree, idle: &[ProcessKey]) -> Option<u64> {
    let peak = tree.summary.peak()?;
    let is_idle = |process: Option<ProcessKey>| process.is_some_and(|key| idle.contains(&key));
    let shares = peak.shares.iter().filter(|s| is_idle(s.process));
    Some(shares.map(|s| s.memory.rss()).sum())
}
