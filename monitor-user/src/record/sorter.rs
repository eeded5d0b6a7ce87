//! Puts events in order of time.
//!
//! A record takes its time before it takes its place in the ring buffer, and CPUs overtake each
//! other between the two. So events are held until nothing older can come any more.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use crate::event::Event;

/// How long events are held, ns. A program runs for microseconds; what makes it late is a virtual
/// CPU that the host takes away between two instructions.
const HOLD_NS: u64 = 100_000_000;

/// Holds events and hands them out in order.
#[derive(Default)]
pub(super) struct Sorter {
    held: BinaryHeap<Reverse<Held>>,
    sequence: u64,
    released_ns: u64,
    newest_ns: u64,
    late: u64,
}

impl Sorter {
    /// Takes an event.
    pub(super) fn push(&mut self, event: Event) {
        if event.time_ns < self.released_ns {
            self.late += 1;
        }
        self.newest_ns = self.newest_ns.max(event.time_ns);
        self.sequence += 1;
        self.held.push(Reverse(Held {
            sequence: self.sequence,
            event,
        }));
    }

    /// Time of the newest event that has come.
    pub(super) fn newest_ns(&self) -> u64 {
        self.newest_ns
    }

    /// Hands out what happened before `now_ns` less the hold: the buffer was emptied at `now_ns`.
    pub(super) fn release(&mut self, now_ns: u64, into: &mut Vec<Event>) {
        self.release_until(now_ns.saturating_sub(HOLD_NS), into);
    }

    /// Hands out all that is left: nothing comes any more.
    pub(super) fn finish(&mut self, into: &mut Vec<Event>) {
        self.release_until(u64::MAX, into);
    }

    /// Events that came after later ones had been handed out.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    fn release_until(&mut self, limit_ns: u64, into: &mut Vec<Event>) {
        while let Some(first) = self.held.peek_mut() {
            if first.0.event.time_ns > limit_ns {
                break;
            }
            let Reverse(Held { event, .. }) = PeekMut::pop(first);
            self.released_ns = self.released_ns.max(event.time_ns);
            into.push(event);
        }
    }
}

/// Order by time, then by arrival: events of one CPU stay in their order.
struct Held {
    sequence: u64,
    event: Event,
}

impl Held {
    fn key(&self) -> (u64, u64) {
        (self.event.time_ns, self.sequence)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Reaped, What};

    fn at(time_ns: u64, cpu: u16) -> Event {
        Event {
            time_ns,
            cpu,
            subject: None,
            what: What::Reaped(Reaped::default()),
        }
    }

    fn times(events: &[Event]) -> Vec<u64> {
        events.iter().map(|event| event.time_ns).collect()
    }

    #[test]
    fn what_may_still_be_overtaken_is_held() {
        let (mut sorter, mut out) = (Sorter::default(), Vec::new());
        for time in [HOLD_NS + 30, 20, HOLD_NS + 10, 40] {
            sorter.push(at(time, 0));
        }
        sorter.release(HOLD_NS + 35, &mut out);
        assert_eq!(times(&out), [20]);
        sorter.finish(&mut out);
        assert_eq!(times(&out), [20, 40, HOLD_NS + 10, HOLD_NS + 30]);
        assert_eq!(sorter.late(), 0);
    }

    #[test]
    fn the_newest_is_known_whatever_the_order() {
        let mut sorter = Sorter::default();
        assert_eq!(sorter.newest_ns(), 0);
        for time in [30, 90, 50] {
            sorter.push(at(time, 0));
        }
        assert_eq!(sorter.newest_ns(), 90);
    }

    #[test]
    fn events_of_one_instant_keep_their_order() {
        let (mut sorter, mut out) = (Sorter::default(), Vec::new());
        for cpu in 0..10 {
            sorter.push(at(5, cpu));
        }
        sorter.finish(&mut out);
        assert_eq!(
            out.iter().map(|event| event.cpu).collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_comes_too_late_is_kept_and_counted() {
        let (mut sorter, mut out) = (Sorter::default(), Vec::new());
        sorter.push(at(50, 0));
        sorter.release(HOLD_NS + 60, &mut out);
        sorter.push(at(40, 1));
        sorter.finish(&mut out);
        assert_eq!((times(&out), sorter.late()), (vec![50, 40], 1));
    }
}
