//! When anything of the tree ran, and when all of it waited.
//!
//! Only waits of some length are told of, so "ran" means here: ran, wanted to, or waited for less than that.

use std::collections::{BTreeMap, HashMap};

use crate::{
    event::{Event, What},
    units::ProcessKey,
};

/// Moments of nothing that are shorter than this don't count, ns.
const STALL_NS: u64 = 1_000_000_000;
/// Most stalls that are kept: the longest.
const STALLS: usize = 100;

/// A time in which no thread of the tree ran although some were alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From then, ns since boot.
    pub since_ns: u64,
    /// Until then.
    pub until_ns: u64,
}

impl Stall {
    /// Its length, ns.
    pub fn ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }
}

/// Collects when threads ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    /// Since when each live thread is active; `None`: it waits on.
    threads: HashMap<(ProcessKey, u32), Option<u64>>,
    /// Times in which something ran: start to end. Those with less than [`STALL_NS`] between them are one.
    ran: BTreeMap<u64, u64>,
}

impl Activity {
    pub(super) fn push(&mut self, event: &Event) {
        let Some(subject) = event.subject else {
            return;
        };
        let (process, tid) = (subject.process, subject.tid);
        let now = event.time_ns;
        match &event.what {
            What::Fork(_) | What::Thread(_) => {
                self.threads.insert((process, tid), Some(now));
            }
            What::Exec(exec) => {
                let since = self.threads.remove(&(process, exec.old_tid)).flatten();
                let since = since.unwrap_or(now);
                self.threads.insert((process, process.pid), Some(since));
            }
            What::Sleep(sleep) => {
                if let Some(since) = self.threads.get(&(process, tid)).copied().flatten() {
                    self.active(since, sleep.since_ns);
                }
                let again = (!sleep.still).then_some(now);
                self.threads.insert((process, tid), again);
            }
            What::ThreadExit(_) | What::Exit(_) => {
                if let Some(Some(since)) = self.threads.remove(&(process, tid)) {
                    self.active(since, now);
                }
            }
            _ => {}
        }
    }

    /// Something ran from one time to another.
    fn active(&mut self, since: u64, until: u64) {
        let (mut since, mut until) = (since, until.max(since));
        let near = since.saturating_sub(STALL_NS);
        // Whatever begins before this ends and ends after this begins, give or take a moment.
        loop {
            let before = self
                .ran
                .range(..=until.saturating_add(STALL_NS))
                .next_back();
            let Some((&from, &to)) = before.filter(|(_, to)| **to >= near.min(since)) else {
                break;
            };
            if to.saturating_add(STALL_NS) < since {
                break;
            }
            self.ran.remove(&from);
            since = since.min(from);
            until = until.max(to);
        }
        self.ran.insert(since, until);
    }

    /// The longest stalls up to `end_ns`, in order of time.
    pub(super) fn stalls(mut self, end_ns: u64) -> Vec<Stall> {
        let threads = std::mem::take(&mut self.threads);
        let is_anybody_left = !threads.is_empty();
        let mut since: Vec<u64> = threads.into_values().flatten().collect();
        since.sort_unstable();
        for since in since {
            self.active(since, end_ns);
        }
        let mut stalls = Vec::new();
        let mut last = None;
        for (&from, &to) in &self.ran {
            if let Some(since_ns) = last {
                stalls.push(Stall {
                    since_ns,
                    until_ns: from,
                });
            }
            last = Some(to);
        }
        if let Some(since_ns) = last.filter(|last| is_anybody_left && *last < end_ns) {
            stalls.push(Stall {
                since_ns,
                until_ns: end_ns,
            });
        }
        stalls.retain(|stall| stall.ns() > STALL_NS);
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.ns()));
        stalls.truncate(STALLS);
        stalls.sort_by_key(|stall| stall.since_ns);
        stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn ran(times: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut activity = Activity::default();
        for (since, until) in times {
            activity.active(*since, *until);
        }
        activity.ran.into_iter().collect()
    }

    #[test]
    fn times_that_overlap_or_nearly_touch_become_one_in_any_order() {
        let times = [
            (0, S),
            (10 * S, 11 * S),
            (3 * S, 4 * S),
            (4 * S + 1, 5 * S),
            (S, 2 * S),
        ];
        // Between 2 and 3 s lies just what doesn't count.
        let expected = [(0, 5 * S), (10 * S, 11 * S)];
        let mut order = times.to_vec();
        for turn in 0..times.len() {
            order.rotate_left(1);
            assert_eq!(ran(&order), expected, "{turn}");
            order.reverse();
            assert_eq!(ran(&order), expected, "{turn}, backwards");
        }
        // One that is told late may fill all.
        let mut whole = times.to_vec();
        whole.push((S / 2, 20 * S));
        assert_eq!(ran(&whole), [(0, 20 * S)]);
        let inside = [(0, 9 * S), (2 * S, 3 * S)];
        assert_eq!(ran(&inside), [(0, 9 * S)]);
    }
}
