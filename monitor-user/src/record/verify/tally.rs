//! What all points came to.

use super::{
    point::{Point, Quantity, Value},
    settle::{Settled, Skip},
};
use crate::event::{Compared, Difference, Skipped, Verification};

/// Adds points up.
///
/// Whether `/proc/PID/status` is approximate may be found out late, so what is beyond its bound is kept for both
/// cases.
#[derive(Debug, Default)]
pub(super) struct Tally {
    points: u64,
    compared: [Compared; Quantity::ALL.len()],
    skipped: Skipped,
    largest: Option<(Point, Value)>,
    /// If `status` is exact.
    strict: Beyond,
    /// If it is approximate.
    loose: Beyond,
    is_approximate: bool,
}

#[derive(Debug, Default)]
struct Beyond {
    count: u64,
    shown: Vec<Difference>,
}

impl Beyond {
    fn add(&mut self, difference: Difference) {
        self.count += 1;
        let key = |d: &Difference| (d.pid, d.start_ns, d.quantity.clone());
        let known = self.shown.iter_mut().find(|d| key(d) == key(&difference));
        match known {
            Some(known) if known.bytes() >= difference.bytes() => {}
            Some(known) => *known = difference,
            None => self.shown.push(difference),
        }
        // Stable: of equals, the first stays in front.
        self.shown.sort_by_key(|d| std::cmp::Reverse(d.bytes()));
        self.shown.truncate(Verification::MOST_SHOWN);
    }
}

impl Tally {
    /// Whether `/proc/PID/status` is approximate, by all that is known so far.
    pub(super) fn new(is_approximate: bool) -> Self {
        Self {
            is_approximate,
            ..Self::default()
        }
    }

    pub(super) fn is_approximate(&self) -> bool {
        self.is_approximate
    }

    pub(super) fn skip(&mut self, why: Skip) {
        let count = match why {
            Skip::Busy => &mut self.skipped.busy,
            Skip::Gone => &mut self.skipped.gone,
            Skip::Refused => &mut self.skipped.refused,
        };
        *count += 1;
    }

    pub(super) fn add_settled(&mut self, settled: &Settled) {
        self.skipped.unsettled += u64::from(settled.is_unsettled);
        if let Some(point) = &settled.point {
            self.add(point);
        }
    }

    pub(super) fn add(&mut self, point: &Point) {
        if point.values.is_empty() {
            return;
        }
        self.points += 1;
        self.is_approximate |= shows_that_status_is_approximate(point);
        for value in &point.values {
            let sum = &mut self.compared[value.quantity as usize];
            sum.values += 1;
            sum.largest_bytes = sum.largest_bytes.max(value.difference());
            let most = self
                .largest
                .as_ref()
                .map_or(0, |(_, most)| most.difference());
            if value.difference() > most {
                self.largest = Some((point.clone(), *value));
            }
            if value.is_beyond(false) {
                self.strict.add(point.difference(value, false));
            }
            if value.is_beyond(true) {
                self.loose.add(point.difference(value, true));
            }
        }
        self.note_bounds(point);
    }

    fn note_bounds(&mut self, point: &Point) {
        for value in &point.values {
            let sum = &mut self.compared[value.quantity as usize];
            sum.bound_bytes = sum.bound_bytes.max(value.limit(self.is_approximate));
        }
    }

    /// As it is written down.
    pub(super) fn verification(&self) -> Verification {
        let beyond = if self.is_approximate {
            &self.loose
        } else {
            &self.strict
        };
        let largest = self.largest.as_ref();
        let quantities = Quantity::ALL.iter().zip(self.compared);
        Verification {
            points: self.points,
            quantities: quantities
                .map(|(quantity, sum)| (quantity.name().to_owned(), sum))
                .collect(),
            skipped: self.skipped,
            largest: largest.map(|(point, value)| point.difference(value, self.is_approximate)),
            beyond: beyond.count,
            shown: beyond.shown.clone(),
            status_is_approximate: self.is_approximate,
            max_rss_bytes: None,
        }
    }
}

/// Whether it is `status` that is off: what is recorded is in all what `smaps_rollup` says, which is exact, and
/// `status` isn't.
fn shows_that_status_is_approximate(point: &Point) -> bool {
    const KINDS: [Quantity; 3] = [Quantity::Anon, Quantity::File, Quantity::Shmem];
    let Some(rss) = point.value(Quantity::Rss) else {
        return false;
    };
    let kinds: Vec<&Value> = KINDS.iter().filter_map(|kind| point.value(*kind)).collect();
    let by_status: u64 = kinds.iter().map(|kind| kind.proc).sum();
    kinds.len() == KINDS.len()
        && kinds.iter().any(|kind| kind.is_beyond(false))
        && !rss.is_beyond(false)
        && by_status != rss.proc
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// Recorded and said by `/proc`, in pages: anon, file, shmem, and RSS.
    fn point(pid: u32, recorded: [u64; 4], proc: [u64; 4]) -> Point {
        let quantities = [
            Quantity::Anon,
            Quantity::File,
            Quantity::Shmem,
            Quantity::Rss,
        ];
        let value = |n: usize| Value {
            quantity: quantities[n],
            recorded: recorded[n] * PAGE,
            proc: proc[n] * PAGE,
            bound: 0,
            proc_bound: if n < 3 { 64 * PAGE } else { 0 },
        };
        Point {
            pid,
            start_ns: 1,
            time_ns: 2,
            values: (0..4).map(value).collect(),
        }
    }

    #[test]
    fn what_is_the_same_is_counted_and_nothing_else_is_said() {
        let mut tally = Tally::new(false);
        for _ in 0..3 {
            tally.add(&point(7, [5, 3, 0, 8], [5, 3, 0, 8]));
        }
        let found = tally.verification();
        assert_eq!((found.points, found.values(), found.beyond), (3, 12, 0));
        assert_eq!((found.largest, found.shown), (None, Vec::new()));
        assert!(!found.status_is_approximate);
    }

    #[test]
    fn a_difference_is_told_with_process_quantity_and_both_values() {
        let mut tally = Tally::new(false);
        tally.add(&point(7, [5, 3, 0, 8], [5, 3, 0, 8]));
        tally.add(&point(8, [5, 3, 0, 8], [7, 3, 0, 10]));
        tally.add(&point(8, [5, 3, 0, 8], [6, 3, 0, 9]));
        let found = tally.verification();
        assert_eq!(found.beyond, 4);
        let expected = |quantity: &str, recorded, proc| Difference {
            pid: 8,
            start_ns: 1,
            time_ns: 2,
            quantity: quantity.to_owned(),
            recorded_bytes: recorded * PAGE,
            proc_bytes: proc * PAGE,
            bound_bytes: 0,
        };
        assert_eq!(
            found.shown,
            [expected("anon", 5, 7), expected("rss", 8, 10)]
        );
        assert_eq!(found.largest, Some(expected("anon", 5, 7)));
        assert_eq!(found.quantities["anon"].largest_bytes, 2 * PAGE);
        assert!(!found.status_is_approximate);
    }

    #[test]
    fn a_kind_taken_for_another_is_a_difference() {
        let mut tally = Tally::new(false);
        tally.add(&point(7, [6, 2, 0, 8], [5, 3, 0, 8]));
        assert_eq!(tally.verification().beyond, 2);
    }

    #[test]
    fn where_smaps_rollup_shows_that_status_is_off_its_bound_counts_for_all_points() {
        let mut tally = Tally::new(false);
        let off = point(7, [5, 3, 0, 8], [2, 3, 0, 8]);
        tally.add(&point(6, [5, 3, 0, 8], [5, 4, 0, 8]));
        tally.add(&off);
        let found = tally.verification();
        assert!(found.status_is_approximate);
        assert_eq!((found.beyond, found.shown.len()), (0, 0));
        assert_eq!(found.largest.unwrap().bound_bytes, 64 * PAGE);
        // It isn't off by more than its bound, nor may what is recorded be off in all.
        tally.add(&point(9, [5, 103, 0, 108], [5, 3, 0, 108]));
        tally.add(&point(9, [5, 3, 0, 8], [5, 3, 0, 9]));
        let found = tally.verification();
        assert_eq!(found.beyond, 2);
        let shown: Vec<&str> = found.shown.iter().map(|d| d.quantity.as_str()).collect();
        assert_eq!(shown, ["file", "rss"]);
    }

    #[test]
    fn only_the_largest_are_shown_and_all_are_counted() {
        let mut tally = Tally::new(false);
        for n in 1..=20 {
            tally.add(&point(n, [0; 4], [n.into(), 0, 0, n.into()]));
        }
        let found = tally.verification();
        assert_eq!(found.beyond, 40);
        assert_eq!(found.shown.len(), Verification::MOST_SHOWN);
        assert_eq!(found.shown[0].pid, 20);
    }
}
