//! Threads of a process, one by one: who made them, from when to when they were there.

/// Threads kept of a process. One with more than that has them counted, but not told one by one.
pub(super) const KEPT: usize = 4096;

/// A thread besides the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLife {
    /// Its number; numbers are used again after an end.
    pub tid: u32,
    /// Thread of the same process that made it.
    pub creator_tid: u32,
    /// When it was made, ns since boot.
    pub start_ns: u64,
    /// When it ended, ns since boot; `None`: with the process, or not known.
    pub end_ns: Option<u64>,
}

/// Threads while the fold runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    list: Vec<ThreadLife>,
    overflow: bool,
}

impl Threads {
    pub(super) fn made(&mut self, time_ns: u64, tid: u32, creator_tid: u32) {
        if self.list.len() == KEPT {
            self.overflow = true;
            return;
        }
        self.list.push(ThreadLife {
            tid,
            creator_tid,
            start_ns: time_ns,
            end_ns: None,
        });
    }

    pub(super) fn ended(&mut self, time_ns: u64, tid: u32) {
        let alive = |t: &&mut ThreadLife| t.tid == tid && t.end_ns.is_none();
        if let Some(thread) = self.list.iter_mut().rev().find(alive) {
            thread.end_ns = Some(time_ns);
        }
    }

    /// All of them, in order of time; `None` if there were too many.
    pub(super) fn all(&self) -> Option<Vec<ThreadLife>> {
        (!self.overflow).then(|| self.list.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testkit::{MS, START, Story};

    #[test]
    fn threads_have_lives_of_their_own() {
        let mut story = Story::new();
        story.root(10, &["/bin/x"]).after(1).thread(10, 11).after(1);
        story.thread_by(10, 11, 12).after(1).thread_exit(10, 12);
        // The number is used again.
        story.after(1).thread(10, 12).after(1).exit(10, 0);
        let tree = story.tree();
        let life = |tid, creator_tid, from, to: Option<u64>| ThreadLife {
            tid,
            creator_tid,
            start_ns: START + from * MS,
            end_ns: to.map(|to| START + to * MS),
        };
        let expected = vec![
            life(11, 10, 1, None),
            life(12, 11, 2, Some(3)),
            life(12, 10, 4, None),
        ];
        assert_eq!(tree.processes[0].threads, Some(expected));
    }

    #[test]
    fn more_threads_than_are_kept_are_not_told_one_by_one() {
        let mut threads = Threads::default();
        let kept = u32::try_from(KEPT).unwrap();
        for tid in 0..kept {
            threads.made(1, tid, 0);
        }
        assert_eq!(threads.all().map(|all| all.len()), Some(KEPT));
        threads.made(1, kept, 0);
        assert_eq!(threads.all(), None);
    }
}
