//! Sum of RSS and VMS over time in a bounded number of points.

/// Buckets kept; when they are full, neighbours are merged and each covers twice the time.
const BUCKETS: usize = 1024;
/// Width of a bucket at first, ns.
const FIRST_WIDTH_NS: u64 = 1_000_000;

/// Lowest and highest sums within a span of time, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest sum of RSS.
    pub min_rss: u64,
    /// Highest sum of RSS.
    pub max_rss: u64,
    /// Lowest sum of VMS.
    pub min_vms: u64,
    /// Highest sum of VMS.
    pub max_vms: u64,
    /// Events that had come when RSS was highest for the first time, in the order of the fold.
    pub(super) max_rss_events: u64,
    /// The same for VMS.
    pub(super) max_vms_events: u64,
}

impl Bucket {
    fn of(events: u64, rss: u64, vms: u64) -> Self {
        Self {
            min_rss: rss,
            max_rss: rss,
            min_vms: vms,
            max_vms: vms,
            max_rss_events: events,
            max_vms_events: events,
        }
    }

    /// With one that comes later.
    fn join(self, later: Self) -> Self {
        let rss_is_higher = later.max_rss > self.max_rss;
        let vms_is_higher = later.max_vms > self.max_vms;
        let (rss, vms) = (
            if rss_is_higher { later } else { self },
            if vms_is_higher { later } else { self },
        );
        Self {
            min_rss: self.min_rss.min(later.min_rss),
            max_rss: rss.max_rss,
            min_vms: self.min_vms.min(later.min_vms),
            max_vms: vms.max_vms,
            max_rss_events: rss.max_rss_events,
            max_vms_events: vms.max_vms_events,
        }
    }
}

/// Sums over a tree in time. Every peak is kept, whatever the number of events.
#[derive(Clone, Debug)]
pub struct Timeline {
    start_ns: Option<u64>,
    width_ns: u64,
    buckets: Vec<Bucket>,
    now: Bucket,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            start_ns: None,
            width_ns: FIRST_WIDTH_NS,
            buckets: Vec::new(),
            now: Bucket::of(0, 0, 0),
        }
    }
}

impl Timeline {
    /// Takes the sums in bytes as they are from `time_ns` on, after so many `events`. Times may go back a little.
    pub(super) fn push(&mut self, time_ns: u64, events: u64, rss: u64, vms: u64) {
        let start = *self.start_ns.get_or_insert(time_ns);
        let at = self.index(time_ns.saturating_sub(start));
        // A sum holds until the next change: buckets in between have it too, and so has the start
        // of the bucket of the change.
        while self.buckets.len() <= at {
            let first = self.buckets.is_empty();
            self.buckets.push(if first {
                Bucket::of(events, rss, vms)
            } else {
                self.now
            });
        }
        let value = Bucket::of(events, rss, vms);
        self.buckets[at] = self.buckets[at].join(value);
        self.now = value;
    }

    /// Spans in order: start in ns since boot, and what was lowest and highest until the next.
    pub fn points(&self) -> impl Iterator<Item = (u64, Bucket)> + '_ {
        let start = self.start_ns.unwrap_or(0);
        (0_u64..).zip(&self.buckets).map(move |(n, bucket)| {
            (
                start.saturating_add(n.saturating_mul(self.width_ns)),
                *bucket,
            )
        })
    }

    /// Length of each span, ns.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    fn index(&mut self, since_start: u64) -> usize {
        loop {
            let at = usize::try_from(since_start / self.width_ns).unwrap_or(usize::MAX);
            if at < BUCKETS {
                return at;
            }
            self.width_ns = self.width_ns.saturating_mul(2);
            self.buckets = self
                .buckets
                .chunks(2)
                .map(|pair| pair.iter().skip(1).fold(pair[0], |a, b| a.join(*b)))
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_every_peak() {
        let mut line = Timeline::default();
        for n in 0..1_000_000_u64 {
            let rss = if n == 654_321 { 1 << 40 } else { n % 7 };
            line.push(5_000_000 + n * 1_000_000, n, rss, 10);
        }
        let points: Vec<_> = line.points().collect();
        assert!(points.len() <= BUCKETS, "{}", points.len());
        assert!(points.len() > BUCKETS / 2);
        let (at, high) = *points.iter().max_by_key(|(_, b)| b.max_rss).unwrap();
        assert_eq!(high.max_rss, 1 << 40);
        assert_eq!(high.max_rss_events, 654_321);
        let peak_at = 5_000_000 + 654_321 * 1_000_000;
        assert!((at..at + line.width_ns()).contains(&peak_at));
    }

    #[test]
    fn a_sum_holds_until_the_next_change() {
        let mut line = Timeline::default();
        line.push(0, 1, 5, 50);
        line.push(3_000_000, 2, 2, 20);
        let rss: Vec<_> = line.points().map(|(_, b)| (b.min_rss, b.max_rss)).collect();
        assert_eq!(rss, [(5, 5), (5, 5), (5, 5), (2, 5)]);
        let highs = line.points().map(|(_, b)| b.max_rss_events);
        assert_eq!(highs.collect::<Vec<_>>(), [1; 4]);
    }

    #[test]
    fn a_time_of_the_far_future_is_no_problem() {
        let mut line = Timeline::default();
        line.push(0, 1, 1, 1);
        line.push(u64::MAX, 2, 2, 2);
        line.push(7, 3, 9, 9);
        assert!(line.points().count() <= BUCKETS);
        assert_eq!(line.points().map(|(_, b)| b.max_rss).max(), Some(9));
    }
}
