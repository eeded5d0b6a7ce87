//! Puts events that come slightly out of order into order.

use std::collections::VecDeque;

use crate::event::Event;

/// Events held back. A recorder sorts what it drains, so disorder is local; this bounds memory.
const WINDOW: usize = 4096;

/// A sliding window that gives events sorted by time; events of one time stay in the order of
/// their CPU, and those of one CPU in the order in which they came.
///
/// Insertion goes from the back: input that is in order costs one comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorter {
    held: VecDeque<Event>,
}

impl Sorter {
    /// Takes an event; gives the oldest back once the window is full.
    pub(super) fn push(&mut self, event: Event) -> Option<Event> {
        let key = |e: &Event| (e.time_ns, e.cpu);
        let mut at = self.held.len();
        while at > 0 && key(&self.held[at - 1]) > key(&event) {
            at -= 1;
        }
        self.held.insert(at, event);
        if self.held.len() > WINDOW {
            self.held.pop_front()
        } else {
            None
        }
    }

    /// Gives what is still held, one at a time.
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.held.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Loss, What};

    fn event(time_ns: u64, cpu: u16) -> Event {
        Event {
            time_ns,
            cpu,
            subject: None,
            what: What::Loss(Loss::default()),
        }
    }

    #[test]
    fn sorts_by_time_then_cpu() {
        let mut sorter = Sorter::default();
        for (time, cpu) in [(5, 0), (3, 1), (3, 0), (4, 0), (9, 0), (1, 2)] {
            assert_eq!(sorter.push(event(time, cpu)), None);
        }
        let out: Vec<_> = std::iter::from_fn(|| sorter.pop())
            .map(|e| (e.time_ns, e.cpu))
            .collect();
        assert_eq!(out, [(1, 2), (3, 0), (3, 1), (4, 0), (5, 0), (9, 0)]);
    }

    #[test]
    fn window_is_bounded() {
        let mut sorter = Sorter::default();
        let given = (0..10_000).filter_map(|n| sorter.push(event(n, 0))).count();
        assert_eq!(given, 10_000 - WINDOW);
        assert_eq!(sorter.held.len(), WINDOW);
    }
}
