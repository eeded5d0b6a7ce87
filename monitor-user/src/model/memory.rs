//! Address spaces while the fold runs.

use std::collections::HashMap;

use crate::{
    event::{Churn, Memory, Mm, MmEnd, Parts},
    model::Floors,
};

/// Highest values of an address space over some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    /// State at the highest RSS.
    pub(super) peak: Memory,
    /// That moment.
    pub(super) peak_ns: u64,
    /// The highest RSS at any event may have been higher by this, bytes.
    pub(super) peak_bound: u64,
    /// Highest VMS, bytes.
    pub(super) peak_vms: u64,
    /// Highest swap, bytes.
    pub(super) peak_swap: u64,
    /// Whether any state was seen.
    pub(super) seen: bool,
}

impl Track {
    /// Takes a state.
    pub(super) fn note(&mut self, time_ns: u64, now: Memory) {
        if !self.seen || now.rss() > self.peak.rss() {
            self.peak = now;
            self.peak_ns = time_ns;
        }
        self.peak_vms = self.peak_vms.max(now.vms);
        self.peak_swap = self.peak_swap.max(now.swap);
        self.seen = true;
    }

    /// Takes what the kernel side kept. Its peak wins unless a row tells of a higher one, which
    /// can happen only if rows and end come from different counters.
    pub(super) fn note_end(&mut self, end: &MmEnd) {
        let most = end.peak.rss().saturating_add(end.peak_bound);
        if !self.seen || end.peak.rss() >= self.peak.rss() {
            self.peak = end.peak;
            self.peak_ns = end.peak_ns;
        }
        self.peak_bound = most.saturating_sub(self.peak.rss());
        self.peak_vms = self.peak_vms.max(end.peak_vms).max(end.peak.vms);
        self.peak_swap = self.peak_swap.max(end.peak_swap).max(end.peak.swap);
        self.seen = true;
    }
}

/// Place of a process in the fold's list, and of an image in that process's list.
pub(super) type ImageAt = (usize, usize);

/// An address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    /// Its number.
    pub(super) mm: Mm,
    /// First event.
    pub(super) first_ns: u64,
    /// State now and since when.
    pub(super) now: Memory,
    pub(super) now_ns: u64,
    /// What it consists of, as of the last row that told.
    pub(super) parts: Option<Parts>,
    /// What fork or exec began with.
    pub(super) start: Option<Memory>,
    /// What has happened to its anonymous pages, as of the last row that told.
    pub(super) churn: Option<Churn>,
    /// Highest values from rows.
    pub(super) rows: Track,
    /// Least anonymous memory over time.
    pub(super) floors: Floors,
    /// The image that it was made for.
    pub(super) owner: Option<ImageAt>,
    /// Images of other processes that use it now (vfork, `CLONE_VM`).
    pub(super) guests: Vec<ImageAt>,
    /// Process that ran in it while no fork or exec had named it.
    pub(super) seen_by: Option<usize>,
    /// Processes that ran in it although no fork row says that they share it.
    pub(super) borrowers: Vec<usize>,
    /// Its end.
    pub(super) end: Option<MmEnd>,
}

impl Space {
    /// Takes a state; `false` if the address space had ended already.
    pub(super) fn note(&mut self, time_ns: u64, now: Memory) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.rows.note(time_ns, now);
        self.floors.push(time_ns, now.anon);
        // A late row can hold a peak, but it isn't the state now.
        if time_ns >= self.now_ns {
            self.now = now;
            self.now_ns = time_ns;
        }
        true
    }
}

/// All address spaces, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Spaces {
    list: Vec<Space>,
    by_mm: HashMap<Mm, usize>,
}

impl Spaces {
    /// The address space, made if it is new.
    pub(super) fn at(&mut self, mm: Mm, time_ns: u64) -> &mut Space {
        let at = *self.by_mm.entry(mm).or_insert_with(|| {
            self.list.push(Space {
                mm,
                first_ns: time_ns,
                ..Space::default()
            });
            self.list.len() - 1
        });
        &mut self.list[at]
    }

    /// The address space, if any event named it.
    pub(super) fn get(&self, mm: Mm) -> Option<&Space> {
        self.by_mm.get(&mm).map(|at| &self.list[*at])
    }

    /// All, in the order in which they were seen first.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Space> {
        self.list.iter()
    }

    /// All, to change.
    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Space> {
        self.list.iter_mut()
    }
}
