//! Threads by which a pool's owner hands out work.

use super::PoolKind;
use crate::model::ThreadLife;

/// The threads of one pool in its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handlers {
    /// The first of them: it makes new workers where old ones ended.
    pub(super) first: ThreadLife,
    /// What they belong to.
    pub(super) kind: PoolKind,
}

impl Handlers {
    /// Whether the first thread was there at a moment.
    pub(super) fn at(&self, ns: u64) -> bool {
        self.first.start_ns <= ns && self.first.end_ns.is_none_or(|end| ns <= end)
    }
}

/// What thread `at` of `threads` begins, if the thread that made it had made workers before it.
///
/// `made_between(tid, from, to)` tells whether a thread made another process in between.
///
/// * `ProcessPoolExecutor`: one thread, `_ExecutorManagerThread`, which makes the feeder of the queue of calls when it
///   puts the first of them there.
/// * `multiprocessing.Pool`: three, `_handle_workers`, `_handle_tasks`, `_handle_results`, one after the other.
pub(super) fn begin(
    threads: &[ThreadLife],
    at: usize,
    made_between: impl Fn(u32, u64, u64) -> bool,
) -> Option<Handlers> {
    let first = threads[at];
    let by_first = |t: &ThreadLife| {
        t.creator_tid == first.tid && first.end_ns.is_none_or(|end| t.start_ns <= end)
    };
    if threads[at + 1..].iter().any(by_first) {
        return Some(Handlers {
            first,
            kind: PoolKind::ProcessPoolExecutor,
        });
    }
    let by_same = |t: &&ThreadLife| t.creator_tid == first.creator_tid;
    let third = threads[at + 1..].iter().filter(by_same).nth(1)?;
    let is_split = made_between(first.creator_tid, first.start_ns, third.start_ns);
    (!is_split).then_some(Handlers {
        first,
        kind: PoolKind::Pool,
    })
}
