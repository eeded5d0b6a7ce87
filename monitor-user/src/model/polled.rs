//! What a tool that looks from time to time would have seen.
//!
//! When such a tool looks is chance, so both figures are averages over when its first look is: of the processes an
//! exact one (a process that lives for a tenth of a period is met by one look in ten), of the highest sum of RSS one over
//! some evenly spread first looks.

use crate::model::{Ending, tree::Process};

/// Periods, ns: what batch systems, monitors and profilers of memory do.
const PERIODS_NS: [u64; 3] = [10_000_000_000, 1_000_000_000, 200_000_000];
/// First looks that are tried for each period.
const PHASES: u64 = 8;

/// What a tool with this period would have seen, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Time from one look to the next, ns.
    pub period_ns: u64,
    /// Processes that it would have met, rounded. `None` if of some it isn't known how long they lived.
    pub processes: Option<u64>,
    /// Highest sum of RSS that it would have seen, bytes.
    pub peak_rss: u64,
}

/// One tool with one first look.
#[derive(Clone, Copy, Debug)]
struct Look {
    period_ns: u64,
    next_ns: u64,
    peak: u64,
}

/// Tools of all periods, while the fold runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Pollers {
    looks: Vec<Look>,
    now: u64,
}

impl Pollers {
    /// Takes the sum of RSS in bytes as it is from `time_ns` on. Times may go back a little.
    pub(super) fn push(&mut self, time_ns: u64, rss: u64) {
        if self.looks.is_empty() {
            self.looks = first_looks(time_ns);
        }
        self.until(time_ns);
        self.now = rss;
    }

    /// Lets all look that are due before `time_ns`.
    fn until(&mut self, time_ns: u64) {
        for look in &mut self.looks {
            if look.next_ns < time_ns {
                look.peak = look.peak.max(self.now);
                let periods = (time_ns - look.next_ns).div_ceil(look.period_ns);
                look.next_ns = look
                    .next_ns
                    .saturating_add(periods.saturating_mul(look.period_ns));
            }
        }
    }

    /// What they have seen by `end_ns`.
    pub(super) fn polled(mut self, processes: &[Process], end_ns: u64) -> Vec<Polled> {
        self.until(end_ns);
        let polled = |looks: &[Look]| {
            let period_ns = looks[0].period_ns;
            let sum: u128 = looks.iter().map(|look| u128::from(look.peak)).sum();
            let average = sum / looks.len() as u128;
            Polled {
                period_ns,
                processes: met(processes, period_ns, end_ns),
                peak_rss: u64::try_from(average).unwrap_or(u64::MAX),
            }
        };
        self.looks
            .chunk_by(|a, b| a.period_ns == b.period_ns)
            .map(polled)
            .collect()
    }
}

/// Looks in the middle of equal parts of each period.
fn first_looks(start_ns: u64) -> Vec<Look> {
    let looks = |period_ns: u64| {
        (0..PHASES).map(move |n| Look {
            period_ns,
            next_ns: start_ns.saturating_add(period_ns * (2 * n + 1) / (2 * PHASES)),
            peak: 0,
        })
    };
    PERIODS_NS.into_iter().flat_map(looks).collect()
}

/// How many processes one look in each period meets on average.
fn met(processes: &[Process], period_ns: u64, end_ns: u64) -> Option<u64> {
    let mut sum: u128 = 0;
    for process in processes {
        let until = match process.ending {
            Ending::Ended { at } => at?,
            Ending::Alive => end_ns,
            Ending::Unknown => return None,
        };
        let life = until.saturating_sub(process.key.start_ns);
        sum += u128::from(life.min(period_ns));
    }
    let half = u128::from(period_ns / 2);
    u64::try_from((sum + half) / u128::from(period_ns)).ok()
}

#[cfg(test)]
mod tests {
    use crate::model::testkit::{MIB, Story};

    /// A command of 4 s with 100 processes of 20 ms in its middle and a peak of 500 MiB for 100 ms.
    fn spike() -> Story {
        let mut story = Story::new();
        story.root(10, &["sh"]).memory(10, 9).after(1_000);
        for pid in 100..200 {
            story
                .fork(10, pid)
                .exec(pid, &["true"])
                .after(20)
                .exit(pid, 0)
                .reaped(pid);
        }
        story
            .memory(10, 499)
            .after(100)
            .memory(10, 9)
            .after(900)
            .exit(10, 0);
        story
    }

    #[test]
    fn short_processes_and_peaks_are_missed() {
        let tree = spike().tree();
        let seen: Vec<_> = tree
            .polled
            .iter()
            .map(|p| (p.period_ns / 1_000_000, p.processes))
            .collect();
        // The command itself lives for 4 s of 10 s, the others for 2 s of it all together: 0.6 processes.
        assert_eq!(seen, [(10_000, Some(1)), (1_000, Some(3)), (200, Some(11))]);
        let peaks: Vec<_> = tree.polled.iter().map(|p| p.peak_rss / MIB).collect();
        // Of 8 first looks within 10 s four come before the end.
        assert!(peaks[0] < 10, "{peaks:?}");
        assert!(peaks[1] > 10 && peaks[1] < 120, "{peaks:?}");
        // A look every 0.2 s meets a peak of 0.1 s in half of the cases.
        assert!(peaks[2] > 200 && peaks[2] < 320, "{peaks:?}");
    }

    #[test]
    fn what_stays_is_seen_by_all() {
        let mut story = Story::new();
        story
            .root(10, &["server"])
            .memory(10, 99)
            .after(60_000)
            .exit(10, 0);
        for polled in story.tree().polled {
            assert_eq!((polled.processes, polled.peak_rss), (Some(1), 100 * MIB));
        }
    }

    #[test]
    fn an_end_that_was_lost_leaves_processes_open() {
        let mut story = spike();
        story.lost("exit");
        assert!(story.tree().polled.iter().all(|p| p.processes.is_none()));
    }
}
