//! Whether a difference is one, or only an event on its way.
//!
//! The kernel changes a counter first and shows that to the hook then; a thread that lost its CPU in between looks
//! quiet. So a difference counts if it is still there, to the same side, at further looks.

use std::time::Duration;

use super::point::{Point, Value};

/// Before each further look. The last ones are for a host on which a thread waits long for a CPU.
pub(super) const DELAYS: [Duration; 5] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(40),
    Duration::from_millis(150),
    Duration::from_millis(400),
];

/// Quiet looks after which a difference counts, if all threads sleep: none of them is in the midst of something.
const ASLEEP: u32 = 3;
/// And if they don't.
const AWAKE: u32 = 4;

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    Busy,
    Gone,
    Refused,
}

/// A point, once its differences are settled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// Without differences that didn't last; `None`: nothing can be said.
    pub(super) point: Option<Point>,
    /// Something didn't last.
    pub(super) is_unsettled: bool,
}

/// Looks again as long as it isn't clear whether a difference is one.
///
/// `again` waits for the time given, looks, and tells whether all threads were asleep.
pub(super) fn settle(
    first: Point,
    is_approximate: bool,
    mut again: impl FnMut(Duration) -> Result<(Point, bool), Skip>,
) -> Settled {
    let mut suspects: Vec<Value> = first.beyond(is_approximate).copied().collect();
    if suspects.is_empty() {
        return Settled {
            point: Some(first),
            is_unsettled: false,
        };
    }
    let (mut looks, had) = (1, suspects.len());
    let mut last = first;
    for delay in DELAYS {
        let (point, is_asleep) = match again(delay) {
            Ok(seen) => seen,
            Err(Skip::Busy) => continue,
            Err(Skip::Gone | Skip::Refused) => break,
        };
        looks += 1;
        suspects = lasting(&suspects, &point, is_approximate);
        last = point;
        if suspects.is_empty() || is_asleep && looks >= ASLEEP {
            return Settled {
                is_unsettled: suspects.len() < had,
                point: Some(with_only(last, &suspects, is_approximate)),
            };
        }
    }
    if looks < AWAKE {
        return Settled {
            point: None,
            is_unsettled: true,
        };
    }
    Settled {
        is_unsettled: suspects.len() < had,
        point: Some(with_only(last, &suspects, is_approximate)),
    }
}

/// Those that are still there, each as it was when it was smallest.
fn lasting(suspects: &[Value], point: &Point, is_approximate: bool) -> Vec<Value> {
    let still = |suspect: &Value| {
        let now = point.value(suspect.quantity)?;
        let is_still = now.is_beyond(is_approximate) && now.is_like(suspect);
        let smaller = if now.difference() < suspect.difference() {
            now
        } else {
            suspect
        };
        is_still.then_some(*smaller)
    };
    suspects.iter().filter_map(still).collect()
}

/// A point with these differences and no others.
fn with_only(mut point: Point, suspects: &[Value], is_approximate: bool) -> Point {
    point
        .values
        .retain(|value| !value.is_beyond(is_approximate));
    point.values.extend(suspects);
    point
}

#[cfg(test)]
mod tests {
    use super::{super::point::Quantity, *};

    fn value(quantity: Quantity, recorded: u64, proc: u64) -> Value {
        Value {
            quantity,
            recorded,
            proc,
            bound: 0,
            proc_bound: 100,
        }
    }

    fn point(values: &[(Quantity, u64, u64)]) -> Point {
        Point {
            pid: 7,
            start_ns: 1,
            time_ns: 2,
            values: values.iter().map(|(q, r, p)| value(*q, *r, *p)).collect(),
        }
    }

    /// Settles a row of looks; how many it took beside the first.
    fn run(first: Point, looks: Vec<Result<(Point, bool), Skip>>) -> (Settled, usize) {
        let mut looks = looks.into_iter();
        let mut taken = 0;
        let settled = settle(first, false, |_| {
            taken += 1;
            looks.next().unwrap_or(Err(Skip::Busy))
        });
        (settled, taken)
    }

    #[test]
    fn what_is_the_same_needs_one_look() {
        let same = point(&[(Quantity::Anon, 4096, 4096)]);
        let (settled, taken) = run(same.clone(), Vec::new());
        assert_eq!((settled.point, taken), (Some(same), 0));
        assert!(!settled.is_unsettled);
    }

    #[test]
    fn a_difference_that_lasts_while_all_sleep_counts_after_three_looks() {
        let off = point(&[(Quantity::Anon, 0, 4096), (Quantity::Vms, 9, 9)]);
        let looks = vec![Ok((off.clone(), true)); 5];
        let (settled, taken) = run(off, looks);
        assert_eq!(taken, 2);
        assert!(!settled.is_unsettled);
        let point = settled.point.unwrap();
        assert_eq!(point.beyond(false).count(), 1);
        assert_eq!(point.values.len(), 2);
    }

    #[test]
    fn one_of_a_process_that_never_sleeps_counts_after_all_looks() {
        let off = |by| point(&[(Quantity::Anon, 0, by)]);
        let looks = [9, 7, 12, 8, 20].map(|by| Ok((off(by), false)));
        let (settled, taken) = run(off(10), looks.into());
        assert_eq!(taken, 5);
        // At its smallest.
        assert_eq!(settled.point, Some(off(7)));
    }

    #[test]
    fn an_event_on_its_way_is_no_difference() {
        let off = point(&[(Quantity::Anon, 0, 4096)]);
        let same = point(&[(Quantity::Anon, 4096, 4096)]);
        let (settled, _) = run(off.clone(), vec![Err(Skip::Busy), Ok((same.clone(), true))]);
        assert!(settled.is_unsettled);
        assert_eq!(settled.point, Some(same));
        // To the other side is another one.
        let other = point(&[(Quantity::Anon, 4096, 0)]);
        let (settled, _) = run(off.clone(), vec![Ok((other, true))]);
        assert!(settled.is_unsettled);
        assert_eq!(settled.point.unwrap().values, []);
        // Too few looks to tell.
        let (settled, _) = run(off.clone(), vec![Ok((off, false)), Err(Skip::Gone)]);
        assert!(settled.is_unsettled);
        assert_eq!(settled.point, None);
    }
}
