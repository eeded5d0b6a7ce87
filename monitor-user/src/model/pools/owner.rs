//! Puts the possible workers of one owner into pools.

use super::{
    PoolKind, PoolStart, StartMethod, crew,
    handlers::{Handlers, begin},
    parts::Made,
};
use crate::model::Tree;

/// A worker that was made this much later than the others, and by [`PAUSES`] times the next longest pause, isn't of their
/// pool: a pool makes its first workers without doing anything else.
const PAUSE_NS: u64 = 250_000_000;
const PAUSES: u64 = 20;

/// Workers that belong together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// In order of time.
    pub(super) members: Vec<Made>,
    /// Way in which they were made.
    pub(super) method: Option<StartMethod>,
    /// Threads of the owner; `None` if none were recognised.
    pub(super) handlers: Option<Handlers>,
    /// How many there were before those threads.
    first: usize,
    /// More came later, from a thread that is none of the pool's.
    grew: bool,
}

impl Group {
    /// Workers without threads that tell of a pool.
    pub(super) fn crew(method: Option<StartMethod>, members: Vec<Made>) -> Self {
        Self {
            members,
            method,
            handlers: None,
            first: 0,
            grew: false,
        }
    }

    /// Kind of pool.
    pub(super) fn kind(&self) -> Option<PoolKind> {
        match self.method {
            Some(StartMethod::Loky) => Some(PoolKind::Loky),
            _ => self.handlers.map(|h| h.kind),
        }
    }

    /// When the first workers were made.
    pub(super) fn start(&self) -> Option<PoolStart> {
        match self.handlers?.kind {
            PoolKind::Pool => Some(PoolStart::Eager),
            _ if self.first > 1 => Some(PoolStart::Eager),
            _ if self.grew => Some(PoolStart::OnDemand),
            // One worker: nobody can tell whether more would have come.
            _ => None,
        }
    }

    /// Whether more workers come to it as tasks come.
    fn grows(&self) -> bool {
        self.handlers.is_some_and(|h| h.kind != PoolKind::Pool) && self.first == 1
    }
}

/// Pools of the owner at a place of the tree.
pub(super) fn groups(tree: &Tree, owner: usize, made: &[Made]) -> Vec<Group> {
    let mut left: Vec<Made> = made.to_vec();
    let mut groups = anchored(tree, owner, &mut left);
    let rest = left
        .into_iter()
        .filter(|made| !join(&mut groups, *made))
        .collect();
    groups.extend(crew::left_over(tree, owner, rest));
    for group in &mut groups {
        group.members.sort_by_key(|made| (made.ns, made.at));
    }
    groups
}

/// Pools that threads of the owner tell of; takes their first workers out of `left`.
fn anchored(tree: &Tree, owner: usize, left: &mut Vec<Made>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let Some(threads) = &tree.processes[owner].threads else {
        return groups;
    };
    let all = left.clone();
    for (at, thread) in threads.iter().enumerate() {
        let by = thread.creator_tid;
        let earlier = threads[..at].iter().filter(|t| t.creator_tid == by);
        let from = earlier.map(|t| t.start_ns).max().unwrap_or(0);
        let batch = batch(tree, left, by, from..thread.start_ns);
        let Some(last) = batch.last().copied() else {
            continue;
        };
        let made_between = |tid, from, to| {
            all.iter()
                .any(|m| m.tid == Some(tid) && m.ns > from && m.ns < to)
        };
        let Some(handlers) = begin(threads, at, made_between) else {
            continue;
        };
        let is_other_growing = |g: &Group| {
            g.method == Some(last.method)
                && g.grows()
                && g.handlers.is_some_and(|h| h.at(last.ns))
                && handlers.kind != PoolKind::Pool
        };
        // Then the workers before the last one came to that pool.
        let members = if groups.iter().any(is_other_growing) {
            vec![last]
        } else {
            batch
        };
        left.retain(|made| members.iter().all(|m| m.at != made.at));
        groups.push(Group {
            first: members.len(),
            members,
            method: Some(last.method),
            handlers: Some(handlers),
            grew: false,
        });
    }
    groups
}

/// What a thread made last within a span of time, all in one way.
fn batch(tree: &Tree, left: &[Made], by: u32, span: std::ops::Range<u64>) -> Vec<Made> {
    let is_by = |made: &&Made| made.tid.is_none_or(|tid| tid == by) && span.contains(&made.ns);
    let mut batch: Vec<Made> = left.iter().filter(is_by).copied().collect();
    let Some(last) = batch.last().copied() else {
        return batch;
    };
    let other = batch.iter().rposition(|made| made.method != last.method);
    batch.drain(..other.map_or(0, |at| at + 1));
    // Who was gone before the last came isn't of the same pool.
    batch.retain(|made| {
        let end = tree.processes[made.at].end_ns();
        end.is_none_or(|end| end >= last.ns)
    });
    let pauses: Vec<u64> = batch.windows(2).map(|two| two[1].ns - two[0].ns).collect();
    let longest = pauses.iter().enumerate().max_by_key(|(_, ns)| **ns);
    if let Some((at, longest)) = longest.map(|(at, ns)| (at, *ns))
        && let Some(next) = pauses
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != at)
            .map(|(_, ns)| *ns)
            .max()
        && longest > PAUSE_NS
        && longest > next.saturating_mul(PAUSES)
    {
        batch.drain(..=at);
    }
    batch
}

/// Gives a later worker to the pool that it came to, if there is one.
fn join(groups: &mut [Group], made: Made) -> bool {
    let is_there =
        |g: &Group| g.method == Some(made.method) && g.handlers.is_some_and(|h| h.at(made.ns));
    let by_pool =
        |g: &Group| made.tid.is_some() && g.handlers.is_some_and(|h| Some(h.first.tid) == made.tid);
    let by_others = |g: &Group| g.grows() || made.tid.is_none();
    let of_pool = groups.iter().rposition(|g| is_there(g) && by_pool(g));
    let at = of_pool.or_else(|| groups.iter().rposition(|g| is_there(g) && by_others(g)));
    let Some(at) = at else {
        return false;
    };
    groups[at].grew |= of_pool.is_none() && groups[at].grows();
    groups[at].members.push(made);
    true
}
