//! Who had the memory at the highest moment of each span of a timeline: a second fold over the same events.
//!
//! Which moments those are is known after the first fold only. Noting shares of all address spaces whenever a sum
//! may have been the highest would cost their number at each event; this way they are noted once for each span.

use crate::{
    event::Event,
    model::{Share, Summary, Timeline, order::Sorter},
};

/// What a sum is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Resident memory.
    Rss,
    /// Mapped memory.
    Vms,
}

impl Quantity {
    /// What an address space has of it, bytes.
    pub fn of(self, share: &Share) -> u64 {
        match self {
            Self::Rss => share.memory.rss(),
            Self::Vms => share.memory.vms,
        }
    }
}

/// The highest moment of a span.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Place of the span in [`Timeline::points`].
    pub span: usize,
    /// Time of the event that led to it, ns since boot; it may be before the span, since a sum holds until it changes.
    pub time_ns: u64,
    /// Every address space then, by number.
    pub shares: &'a [Share],
}

/// Takes the events of a trace once more and tells of each span's highest moment.
#[derive(Clone, Debug)]
pub struct Moments {
    sorter: Sorter,
    summary: Summary,
    /// Places of spans and after how many events they were highest, the last one first.
    due: Vec<(usize, u64)>,
    events: u64,
}

impl Moments {
    /// Of a timeline that the same events gave.
    pub fn new(timeline: &Timeline, quantity: Quantity) -> Self {
        let points = timeline.points().map(|(_, bucket)| match quantity {
            Quantity::Rss => bucket.max_rss_events,
            Quantity::Vms => bucket.max_vms_events,
        });
        let mut due: Vec<_> = points.enumerate().collect();
        due.sort_by_key(|(span, events)| std::cmp::Reverse((*events, *span)));
        Self {
            sorter: Sorter::default(),
            summary: Summary::new(),
            due,
            events: 0,
        }
    }

    /// Takes an event, in the order in which the first fold got it. `see` gets the moments that are reached, in order
    /// of time.
    pub fn push(&mut self, event: &Event, see: &mut impl FnMut(Moment<'_>)) {
        if let Some(event) = self.sorter.push(event.clone()) {
            self.apply(&event, see);
        }
    }

    /// After the last event.
    pub fn finish(mut self, see: &mut impl FnMut(Moment<'_>)) {
        while let Some(event) = self.sorter.pop() {
            self.apply(&event, see);
        }
    }

    fn apply(&mut self, event: &Event, see: &mut impl FnMut(Moment<'_>)) {
        self.events += 1;
        self.summary.push(event);
        if self.due.last().is_none_or(|(_, at)| *at > self.events) {
            return;
        }
        let shares = self.summary.shares();
        while let Some((span, _)) = self.due.pop_if(|(_, at)| *at <= self.events) {
            see(Moment {
                span,
                time_ns: event.time_ns,
                shares: &shares,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::testkit::Story;

    fn moments(story: &Story, quantity: Quantity) -> BTreeMap<usize, u64> {
        let tree = story.tree();
        let mut sums = BTreeMap::new();
        let mut see = |moment: Moment<'_>| {
            let sum = moment.shares.iter().map(|share| quantity.of(share)).sum();
            assert_eq!(sums.insert(moment.span, sum), None);
        };
        let mut moments = Moments::new(&tree.timeline, quantity);
        for event in story.events() {
            moments.push(event, &mut see);
        }
        moments.finish(&mut see);
        sums
    }

    #[test]
    fn shares_add_up_to_the_highest_sum_of_each_span() {
        let mut story = Story::new();
        story.root(1, &["main"]).memory(1, 100);
        for n in 0..3000 {
            let child = 10 + n;
            story.fork(1, child).memory(child, u64::from(n % 97));
            story.after(u64::from(n % 5)).exec(child, &["short"]);
            story.memory(child, u64::from(n % 13)).exit(child, 0);
            story.reaped(child);
        }
        // One that comes late.
        story.exit(1, 0);
        for quantity in [Quantity::Rss, Quantity::Vms] {
            let tree = story.tree();
            let expected: Vec<u64> = tree
                .timeline
                .points()
                .map(|(_, bucket)| match quantity {
                    Quantity::Rss => bucket.max_rss,
                    Quantity::Vms => bucket.max_vms,
                })
                .collect();
            assert!(expected.len() > 500);
            let seen = moments(&story, quantity);
            assert_eq!(
                seen.keys().copied().collect::<Vec<_>>(),
                (0..expected.len()).collect::<Vec<_>>()
            );
            assert_eq!(seen.into_values().collect::<Vec<_>>(), expected);
        }
    }
}
