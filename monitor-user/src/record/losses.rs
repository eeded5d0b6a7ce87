//! What the kernel side couldn't hand over.

use std::collections::BTreeMap;

use monitor_ebpf::abi::Kind;

use super::load::Loaded;
use crate::event::Loss;

/// Names of the kernel side's tables, in the order of its `FULL` counters.
const TABLES: [&str; 2] = ["processes", "address_spaces"];

/// Reads the loss counters and tells what was added since the last look.
#[derive(Default)]
pub(super) struct Losses {
    seen: BTreeMap<String, u64>,
}

impl Losses {
    /// All so far, by kind of record.
    pub(super) fn total(&self) -> BTreeMap<String, u64> {
        self.seen.clone()
    }

    /// Looks again; what has been lost since, if anything.
    pub(super) fn look(&mut self, loaded: &Loaded) -> Option<Loss> {
        self.update(&loaded.counters("LOST"))
    }

    fn update(&mut self, counters: &[u64]) -> Option<Loss> {
        let mut lost = BTreeMap::new();
        for (name, count) in Kind::NAMES.iter().zip(counters) {
            let seen = self.seen.get(*name).copied().unwrap_or(0);
            if *count > seen {
                lost.insert((*name).to_owned(), count - seen);
                self.seen.insert((*name).to_owned(), *count);
            }
        }
        (!lost.is_empty()).then_some(Loss { lost })
    }
}

/// Entries that found no room in a table, by table.
pub(super) fn full_tables(loaded: &Loaded) -> BTreeMap<String, u64> {
    let counters = loaded.counters("FULL");
    TABLES
        .iter()
        .zip(counters)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| ((*name).to_owned(), count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_told_once() {
        let mut counters = [0; Kind::COUNT as usize];
        let mut losses = Losses::default();
        assert_eq!(losses.update(&counters), None);
        counters[Kind::MEMORY as usize] = 3;
        let first = losses.update(&counters).unwrap();
        assert_eq!(first.lost, BTreeMap::from([("memory".to_owned(), 3)]));
        assert_eq!(losses.update(&counters), None);
        counters[Kind::MEMORY as usize] = 5;
        counters[Kind::FORK as usize] = 1;
        let second = losses.update(&counters).unwrap();
        assert_eq!(
            second.lost,
            BTreeMap::from([("fork".to_owned(), 1), ("memory".to_owned(), 2)])
        );
        assert_eq!(
            losses.total(),
            BTreeMap::from([("fork".to_owned(), 1), ("memory".to_owned(), 5)])
        );
    }
}
