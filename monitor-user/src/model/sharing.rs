//! How much memory is really in use where processes share pages since a fork.
//!
//! RSS counts a page once for each process that has it. Which pages those are no event says; but a forked
//! process begins with its creator's pages, and its own are at most those that came since and those that were
//! copied when they were written to ([`Churn`]). From that follow bounds:
//!
//! * Above: each address space has its own pages, and pages that it has from its creator count there. A page
//!   that the creator has lost since (given back, or copied and so replaced) lives on in whom it was handed
//!   down to: as many as were lost since the fork, and as many as those can still hold.
//! * Below: the largest address space is there in full, and of each other one what it has more than it began
//!   with, unless it is one that the largest comes from.
//!
//! Pages of files and shared memory may be the same in all or different in each: the highest counts below,
//! the sum above.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry};

use crate::event::{Churn, Memory, Mm};

/// Memory really in use, bytes, and what its bounds rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// At least this.
    pub low: u64,
    /// At most this.
    pub high: u64,
    /// Address spaces then.
    pub spaces: u64,
    /// RSS that they have beyond what each began with, bytes: rows are due by shares of it.
    pub grown: u64,
    /// The largest of those.
    pub largest: u64,
}

/// Who was forked from whom, and what each has.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharing {
    nodes: HashMap<Mm, Node>,
    /// Sum over the living of own pages, pages of files and shared memory.
    own: u64,
    /// Sum over all of pages that only those hold that came from them.
    orphans: u64,
    alive: u64,
    /// Sum of RSS beyond what each began with.
    grown: u64,
}

/// An address space; kept after its end while others live that were forked from it.
#[derive(Clone, Debug, Default)]
struct Node {
    creator: Option<Mm>,
    /// Those forked from it that are kept, by what it had lost before.
    children: BTreeSet<(u64, Mm)>,
    is_over: bool,
    /// Anonymous memory that it began with.
    inherited: u64,
    now: Memory,
    churn: Churn,
    /// It was there before the recording began, with so much anonymous memory, any of which others may have too.
    uncertain: Option<u64>,
    /// Whether `churn` tells of copies; else all of it may be its own.
    is_followed: bool,
    /// What its creator had lost when it was forked.
    lost_before: u64,
    /// What all those that come from it may still have of what they began with.
    held: u64,
    /// As they stand in the sums.
    own: u64,
    orphans: u64,
    grown: u64,
}

impl Node {
    /// Anonymous memory that may be its own, at most.
    fn own_anon(&self) -> u64 {
        match self.churn.write_faults {
            Some(faults) if self.is_followed => {
                let copied = faults.saturating_mul(COPY);
                let most = self.churn.grown.saturating_add(copied);
                self.now.anon.min(most)
            }
            _ => self.now.anon,
        }
    }

    /// What it may still have of what it began with, at most.
    fn still_inherited(&self) -> u64 {
        if self.is_over || !self.is_followed || self.churn.write_faults.is_none() {
            // All of it counts as its own.
            return 0;
        }
        self.inherited.min(self.now.anon)
    }

    /// Anonymous memory that is no longer there, or is another copy now; it only grows.
    fn lost(&self) -> u64 {
        let came = self.inherited.saturating_add(self.churn.grown);
        let left = if self.is_over { 0 } else { self.now.anon };
        let copied = self.churn.write_faults.unwrap_or(0).saturating_mul(COPY);
        came.saturating_sub(left).saturating_add(copied)
    }

    /// What only those hold that come from it, at most.
    fn orphaned(&self) -> u64 {
        let Some((before, _)) = self.children.first() else {
            return 0;
        };
        self.held.min(self.lost().saturating_sub(*before))
    }
}

/// The first of a family. Those that were there before the recording began may all be of one: no address space has
/// its number.
fn family(mm: Mm, node: &Node) -> Mm {
    if node.uncertain.is_some() { 0 } else { mm }
}

/// A copy on write is one page, also of a huge one (`mm/huge_memory.c`, `do_huge_pmd_wp_page`, since 5.8).
const COPY: u64 = 4096;

impl Sharing {
    /// Enters what fork has made. `creator`: whose copy it is.
    pub(super) fn fork(&mut self, mm: Mm, creator: Mm, now: Memory) {
        self.close(mm);
        let lost_before = match self.nodes.get_mut(&creator) {
            Some(node) => {
                let lost = node.lost();
                node.children.insert((lost, mm));
                lost
            }
            None => 0,
        };
        let is_known = self.nodes.contains_key(&creator);
        self.nodes.insert(
            mm,
            Node {
                creator: is_known.then_some(creator),
                inherited: if is_known { now.anon } else { 0 },
                is_followed: is_known,
                lost_before,
                churn: Churn {
                    grown: 0,
                    write_faults: Some(0),
                },
                ..Node::default()
            },
        );
        self.alive += 1;
        self.change(mm, |node| node.now = now);
    }

    /// Takes the state of an address space; one that isn't known begins with nothing of others'.
    pub(super) fn set(&mut self, mm: Mm, now: Memory, churn: Option<Churn>) {
        self.enter(mm);
        self.change(mm, |node| {
            node.now = now;
            match churn {
                Some(churn) => node.churn = churn,
                // An older recorder: nothing is known of copies.
                None => node.is_followed = false,
            }
        });
    }

    /// An exec gives a fresh address space.
    pub(super) fn exec(&mut self, mm: Mm, now: Memory) {
        self.enter(mm);
        self.change(mm, |node| node.now = now);
    }

    /// One that was there before the recording began. Which of its pages others have too that were there as well
    /// isn't known: all may be its own, and all may be theirs.
    pub(super) fn found(&mut self, mm: Mm, now: Memory) {
        self.enter(mm);
        self.change(mm, |node| {
            node.now = now;
            node.uncertain = Some(now.anon);
        });
    }

    fn enter(&mut self, mm: Mm) {
        if let Entry::Vacant(place) = self.nodes.entry(mm) {
            place.insert(Node::default());
            self.alive += 1;
        }
    }

    /// An address space has ended.
    pub(super) fn close(&mut self, mm: Mm) {
        if self.nodes.get(&mm).is_none_or(|node| node.is_over) {
            return;
        }
        self.alive -= 1;
        self.change(mm, |node| {
            node.is_over = true;
        });
        self.prune(mm);
    }

    /// The upper bound now.
    pub(super) fn high(&self) -> u64 {
        self.own.saturating_add(self.orphans)
    }

    /// Both bounds now.
    pub(super) fn in_use(&self) -> InUse {
        let living = || self.nodes.values().filter(|node| !node.is_over);
        let file = living().map(|node| node.now.file).max().unwrap_or(0);
        let shmem = living().map(|node| node.now.shmem).max().unwrap_or(0);
        let anon = self.low_anon();
        InUse {
            low: anon.saturating_add(file).saturating_add(shmem),
            high: self.high(),
            spaces: self.alive,
            grown: self.grown,
            largest: living().map(|node| node.grown).max().unwrap_or(0),
        }
    }

    /// The sums alone, without the lower bound, which takes a look at all.
    pub(super) fn sums(&self) -> InUse {
        InUse {
            high: self.high(),
            spaces: self.alive,
            grown: self.grown,
            ..InUse::default()
        }
    }

    fn low_anon(&self) -> u64 {
        let certain = |node: &Node| {
            if node.is_over {
                0
            } else {
                let shared = node.inherited.max(node.uncertain.unwrap_or(0));
                node.now.anon.saturating_sub(shared)
            }
        };
        // By the first of each family: what is certain of all, and the most that one member adds.
        let mut families: BTreeMap<Mm, (u64, u64)> = BTreeMap::new();
        let nodes: BTreeMap<_, _> = self.nodes.iter().collect();
        for (mm, node) in &nodes {
            let (mut root, mut line) = (family(**mm, node), certain(node));
            let mut at = node.creator;
            while let Some((above, creator)) = at.and_then(|mm| Some((mm, self.nodes.get(&mm)?))) {
                line = line.saturating_add(certain(creator));
                root = family(above, creator);
                at = creator.creator;
            }
            let (sum, most) = families.entry(root).or_default();
            *sum = sum.saturating_add(certain(node));
            if !node.is_over {
                // Its own line's certain pages may be among its own.
                *most = (*most).max(node.now.anon.saturating_sub(line));
            }
        }
        families
            .values()
            .map(|(sum, most)| sum.saturating_add(*most))
            .sum()
    }

    /// Changes an address space and all sums that depend on it.
    fn change(&mut self, mm: Mm, change: impl FnOnce(&mut Node)) {
        let Some(node) = self.nodes.get_mut(&mm) else {
            return;
        };
        let held_before = node.still_inherited();
        change(node);
        let held_now = node.still_inherited();
        let (own, grown) = if node.is_over {
            (0, 0)
        } else {
            let rest = node.now.file.saturating_add(node.now.shmem);
            (
                node.own_anon().saturating_add(rest),
                node.now.rss().saturating_sub(node.inherited),
            )
        };
        self.own = self.own - node.own + own;
        self.grown = self.grown - node.grown + grown;
        (node.own, node.grown) = (own, grown);
        self.weigh(mm);
        if held_before != held_now {
            let mut at = self.nodes.get(&mm).and_then(|node| node.creator);
            while let Some(above) = at {
                let Some(node) = self.nodes.get_mut(&above) else {
                    break;
                };
                node.held = (node.held + held_now).saturating_sub(held_before);
                at = node.creator;
                self.weigh(above);
            }
        }
    }

    /// Counts again what only others hold that come from it.
    fn weigh(&mut self, mm: Mm) {
        if let Some(node) = self.nodes.get_mut(&mm) {
            let orphans = node.orphaned();
            self.orphans = self.orphans - node.orphans + orphans;
            node.orphans = orphans;
        }
    }

    /// Forgets what is over and has nobody left, and so on up.
    fn prune(&mut self, mm: Mm) {
        let mut at = Some(mm);
        while let Some(mm) = at {
            let is_gone = |node: &Node| node.is_over && node.children.is_empty();
            if !self.nodes.get(&mm).is_some_and(is_gone) {
                return;
            }
            let Some(gone) = self.nodes.remove(&mm) else {
                return;
            };
            self.orphans -= gone.orphans;
            if let Some(creator) = gone.creator {
                if let Some(node) = self.nodes.get_mut(&creator) {
                    node.children.remove(&(gone.lost_before, mm));
                }
                self.weigh(creator);
            }
            at = gone.creator;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn those_that_were_there_may_share_all_that_they_had() {
        let memory = |pages: u64| Memory {
            anon: pages * PAGE,
            ..Memory::default()
        };
        let churn = |grown: u64| {
            Some(Churn {
                grown: grown * PAGE,
                write_faults: Some(0),
            })
        };
        let pages = |sharing: &Sharing| {
            let in_use = sharing.in_use();
            (in_use.low / PAGE, in_use.high / PAGE)
        };
        let mut sharing = Sharing::default();
        sharing.found(1, memory(100));
        sharing.found(2, memory(60));
        assert_eq!(pages(&sharing), (100, 160));
        // What comes afterwards is its own.
        sharing.set(2, memory(80), churn(20));
        assert_eq!(pages(&sharing), (120, 180));
        // A fork's copy has its creator's pages, and another program's memory nobody's.
        sharing.fork(3, 1, memory(100));
        assert_eq!(pages(&sharing), (120, 180));
        sharing.exec(4, memory(5));
        assert_eq!(pages(&sharing), (125, 185));
    }

    /// Address spaces as sets of pages, each page a number of its own.
    #[derive(Default)]
    struct World {
        pages: BTreeMap<Mm, BTreeSet<u64>>,
        churn: BTreeMap<Mm, Churn>,
        next_page: u64,
        next_mm: Mm,
        random: u64,
        sharing: Sharing,
    }

    impl World {
        fn below(&mut self, n: u64) -> u64 {
            // xorshift64.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.random % n
        }

        fn any(&mut self) -> Option<Mm> {
            let n = self.pages.len() as u64;
            let at = usize::try_from(self.below(n.max(1))).unwrap();
            self.pages.keys().nth(at).copied()
        }

        fn memory(&self, mm: Mm) -> Memory {
            Memory {
                anon: self.pages[&mm].len() as u64 * PAGE,
                ..Memory::default()
            }
        }

        fn show(&mut self, mm: Mm) {
            self.sharing.set(mm, self.memory(mm), Some(self.churn[&mm]));
        }

        fn enter(&mut self, pages: BTreeSet<u64>) -> Mm {
            self.next_mm += 1;
            let mm = self.next_mm;
            self.pages.insert(mm, pages);
            let churn = Churn {
                grown: 0,
                write_faults: Some(0),
            };
            self.churn.insert(mm, churn);
            mm
        }

        fn exec(&mut self) {
            let mm = self.enter(BTreeSet::new());
            self.sharing.exec(mm, self.memory(mm));
        }

        fn fork(&mut self, mm: Mm) -> Mm {
            let child = self.enter(self.pages[&mm].clone());
            self.sharing.fork(child, mm, self.memory(child));
            child
        }

        fn end(&mut self, mm: Mm) {
            self.pages.remove(&mm);
            self.sharing.close(mm);
        }

        fn grow(&mut self, mm: Mm, pages: u64) {
            for _ in 0..pages {
                self.next_page += 1;
                self.pages.get_mut(&mm).unwrap().insert(self.next_page);
            }
            self.churn.get_mut(&mm).unwrap().grown += pages * PAGE;
            self.show(mm);
        }

        fn shrink(&mut self, mm: Mm, pages: u64) {
            for _ in 0..pages {
                let n = self.pages[&mm].len() as u64;
                let at = usize::try_from(self.below(n.max(1))).unwrap();
                let set = self.pages.get_mut(&mm).unwrap();
                if let Some(page) = set.iter().nth(at).copied() {
                    set.remove(&page);
                }
            }
            self.show(mm);
        }

        /// Writes to pages: one that others have too is copied, as the kernel does.
        fn write(&mut self, mm: Mm, pages: u64) {
            for _ in 0..pages {
                let n = self.pages[&mm].len() as u64;
                let at = usize::try_from(self.below(n.max(1))).unwrap();
                let Some(page) = self.pages[&mm].iter().nth(at).copied() else {
                    continue;
                };
                let has_it = |set: &&BTreeSet<u64>| set.contains(&page);
                let is_shared = self.pages.values().filter(has_it).count() > 1;
                if is_shared {
                    self.next_page += 1;
                    let set = self.pages.get_mut(&mm).unwrap();
                    set.remove(&page);
                    set.insert(self.next_page);
                }
                // A sole owner's page may be write-protected still.
                if is_shared || self.below(8) == 0 {
                    let churn = self.churn.get_mut(&mm).unwrap();
                    churn.write_faults = churn.write_faults.map(|n| n + 1);
                }
            }
            self.show(mm);
        }

        fn in_use(&self) -> u64 {
            let all: BTreeSet<u64> = self.pages.values().flatten().copied().collect();
            all.len() as u64 * PAGE
        }

        fn check(&self, what: &str) {
            let (truth, bounds) = (self.in_use(), self.sharing.in_use());
            assert!(
                bounds.low <= truth && truth <= bounds.high,
                "{what}: {} <= {truth} <= {}",
                bounds.low,
                bounds.high
            );
            assert_eq!(bounds.spaces, self.pages.len() as u64);
        }
    }

    #[test]
    fn the_truth_lies_between_the_bounds_whatever_happens() {
        for seed in 1..=60_u64 {
            let mut world = World {
                random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                ..World::default()
            };
            world.exec();
            for step in 0..300 {
                let Some(mm) = world.any() else { break };
                let pages = world.below(40);
                let what = world.below(10);
                match what {
                    0..=2 => world.grow(mm, pages),
                    3 => world.shrink(mm, pages),
                    4..=6 => world.write(mm, pages),
                    7 if world.pages.len() < 12 => {
                        world.fork(mm);
                    }
                    8 if world.pages.len() > 1 => world.end(mm),
                    9 if world.pages.len() < 12 => world.exec(),
                    _ => {}
                }
                world.check(&format!("seed {seed}, step {step}, act {what}"));
            }
            for mm in world.pages.keys().copied().collect::<Vec<_>>() {
                world.end(mm);
                world.check("the ends");
            }
            assert!(world.sharing.nodes.is_empty());
            assert_eq!((world.sharing.own, world.sharing.orphans), (0, 0));
        }
    }

    #[test]
    fn idle_forks_of_a_large_process_add_nothing() {
        let mut world = World {
            random: 1,
            ..World::default()
        };
        world.exec();
        world.grow(1, 1000);
        let children: Vec<Mm> = (0..8).map(|_| world.fork(1)).collect();
        let bounds = world.sharing.in_use();
        assert_eq!((bounds.low, bounds.high), (1000 * PAGE, 1000 * PAGE));
        // One writes to a tenth, one grows.
        world.write(children[0], 100);
        world.grow(children[1], 50);
        let bounds = world.sharing.in_use();
        assert!(
            bounds.high <= 1160 * PAGE && bounds.low >= 1050 * PAGE,
            "{bounds:?}"
        );
        // The creator's end changes nothing: its pages live on.
        world.end(1);
        world.check("without the creator");
        assert!(world.sharing.in_use().low >= 1000 * PAGE);
    }

    #[test]
    fn without_copies_being_seen_the_sum_is_the_bound() {
        let anon = |pages: u64| Memory {
            anon: pages * PAGE,
            ..Memory::default()
        };
        let unseen = Churn {
            grown: 0,
            write_faults: None,
        };
        for churn in [None, Some(unseen)] {
            let mut sharing = Sharing::default();
            sharing.exec(1, anon(100));
            sharing.fork(2, 1, anon(100));
            sharing.set(2, anon(100), churn);
            let bounds = sharing.in_use();
            assert_eq!((bounds.low, bounds.high), (100 * PAGE, 200 * PAGE));
        }
    }
}
