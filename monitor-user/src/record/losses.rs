//! What the kernel side couldn't hand over.

use std::collections::BTreeMap;

use monitor_ebpf::abi::Kind;

use super::load::Loaded;
use crate::event::Loss;

/// Names of the kernel side's tables, in the order of its `FULL` counters.
const TABLES: [&str; 3] = ["processes", "address_spaces", "threads"];

/// Reads the loss counters and tells what was added since the last look.
#[derive(Default)]
pub(super) struct Losses {
    seen: BTreeMap<String, u64>,
    by_cpu: BTreeMap<u32, u64>,
}

impl Losses {
    /// All so far, by kind of record.
    pub(super) fn total(&self) -> BTreeMap<String, u64> {
        self.seen.clone()
    }

    /// All so far, by the CPU that it happened on.
    pub(super) fn by_cpu(&self) -> BTreeMap<u32, u64> {
        self.by_cpu.clone()
    }

    /// Looks again; what has been lost since, if anything.
    pub(super) fn look(&mut self, loaded: &Loaded) -> Option<Loss> {
        self.update(&loaded.counters("LOST"))
    }

    fn update(&mut self, counters: &[Vec<u64>]) -> Option<Loss> {
        let mut lost = BTreeMap::new();
        for (name, counts) in Kind::NAMES.iter().zip(counters) {
            let count: u64 = counts.iter().sum();
            let seen = self.seen.get(*name).copied().unwrap_or(0);
            if count > seen {
                lost.insert((*name).to_owned(), count - seen);
                self.seen.insert((*name).to_owned(), count);
            }
        }
        if !lost.is_empty() {
            self.by_cpu = by_cpu(counters);
        }
        (!lost.is_empty()).then_some(Loss { lost })
    }
}

/// Sums of counters by CPU, where there are any.
fn by_cpu(counters: &[Vec<u64>]) -> BTreeMap<u32, u64> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for counts in counters {
        for (cpu, count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
            *sums.entry(cpu).or_default() += count;
        }
    }
    sums
}

/// Entries that found no room in a table, by table.
pub(super) fn full_tables(loaded: &Loaded) -> BTreeMap<String, u64> {
    let counters = loaded.counters("FULL");
    TABLES
        .iter()
        .zip(counters)
        .map(|(name, counts)| ((*name).to_owned(), counts.iter().sum()))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_told_once() {
        let mut counters = vec![vec![0; 2]; Kind::COUNT as usize];
        let mut losses = Losses::default();
        assert_eq!(losses.update(&counters), None);
        counters[Kind::MEMORY as usize] = vec![1, 2];
        let first = losses.update(&counters).unwrap();
        assert_eq!(first.lost, BTreeMap::from([("memory".to_owned(), 3)]));
        assert_eq!(losses.update(&counters), None);
        counters[Kind::MEMORY as usize] = vec![1, 4];
        counters[Kind::FORK as usize] = vec![1, 0];
        let second = losses.update(&counters).unwrap();
        assert_eq!(
            second.lost,
            BTreeMap::from([("fork".to_owned(), 1), ("memory".to_owned(), 2)])
        );
        assert_eq!(
            losses.total(),
            BTreeMap::from([("fork".to_owned(), 1), ("memory".to_owned(), 5)])
        );
        assert_eq!(losses.by_cpu(), BTreeMap::from([(0, 2), (1, 4)]));
    }
}
