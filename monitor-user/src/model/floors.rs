//! The least anonymous memory of an address space in each part of its life, in a bounded number of parts.
//!
//! What a task takes and gives back again doesn't raise it; what is kept from task to task does.

/// Parts kept; when they are full, neighbours are merged and each covers twice the time.
const PARTS: usize = 16;
/// Width of a part at first, ns.
const FIRST_WIDTH_NS: u64 = 1_000_000;

/// Least anonymous memory by equal parts of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floors {
    /// First state, ns since boot.
    start_ns: Option<u64>,
    /// How often the width was doubled.
    doublings: u32,
    used: usize,
    lows: [u64; PARTS],
    now: u64,
}

impl Floors {
    /// Takes what there is from `time_ns` on, bytes. Times may go back a little.
    pub(super) fn push(&mut self, time_ns: u64, anon: u64) {
        let is_first = self.start_ns.is_none();
        let since = time_ns.saturating_sub(*self.start_ns.get_or_insert(time_ns));
        if is_first {
            self.now = anon;
        }
        while since / self.width_ns() >= PARTS as u64 {
            self.merge();
        }
        let at = usize::try_from(since / self.width_ns()).unwrap_or(0);
        // What was there before holds until now.
        while self.used <= at {
            self.lows[self.used] = self.now;
            self.used += 1;
        }
        self.lows[at] = self.lows[at].min(anon);
        self.now = anon;
    }

    /// The least of each part in order, bytes. The first part has the start in it, the last one perhaps the end, where
    /// memory is given back.
    pub fn lows(&self) -> &[u64] {
        &self.lows[..self.used]
    }

    /// Length of a part, ns.
    pub fn width_ns(&self) -> u64 {
        FIRST_WIDTH_NS
            .checked_shl(self.doublings)
            .unwrap_or(u64::MAX)
    }

    fn merge(&mut self) {
        let merged = self.used.div_ceil(2);
        for n in 0..merged {
            let second = self.lows[2 * n..self.used].get(1).copied();
            self.lows[n] = self.lows[2 * n].min(second.unwrap_or(u64::MAX));
        }
        self.used = merged;
        self.doublings = (self.doublings + 1).min(u64::BITS - 21);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_is_no_floor() {
        let mut floors = Floors::default();
        for n in 0..1_000_u64 {
            floors.push(5 + n * 10_000_000, 100 + n);
            floors.push(5 + n * 10_000_000 + 5_000_000, 90_000);
        }
        assert!((8..=16).contains(&floors.lows().len()), "{floors:?}");
        assert!(floors.lows().is_sorted());
        assert_eq!(floors.lows()[0], 100);
        assert!(floors.lows().iter().all(|low| *low < 1_100));
    }

    #[test]
    fn a_state_holds_until_the_next() {
        let mut floors = Floors::default();
        floors.push(0, 7);
        floors.push(3_500_000, 9);
        floors.push(4_500_000, 8);
        assert_eq!(floors.lows(), [7, 7, 7, 7, 8]);
        assert_eq!(floors.width_ns(), 1_000_000);
    }

    #[test]
    fn the_far_future_is_no_problem() {
        let mut floors = Floors::default();
        floors.push(1, 7);
        floors.push(u64::MAX, 9);
        floors.push(3, 5);
        assert!(floors.lows().len() <= 16);
        assert_eq!(floors.lows()[0], 5);
    }
}
