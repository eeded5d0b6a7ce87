//! Who has memory at a moment: processes by the name of their program, and by their part in a pool.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use crate::report::{
    Id, ImageReport, ProcessReport, Report, RoleReport,
    escape::{escape, shorten},
    forest::Forest,
    words,
};

/// What is said of a process that goes on with its creator's program, and has no part in a pool.
const COPY: &str = "fork";
/// What is said of an address space that no process has got yet, or whose program isn't known.
const NOBODY: &str = "(program not known)";

/// A program's name with what tells its processes from others of that name, as `python3 pool.py (worker)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    /// Escaped.
    pub(super) program: String,
    pub(super) tag: Option<&'static str>,
}

impl Name {
    /// In at most so many columns. A name that is too long loses its end, never its tag.
    pub(super) fn within(&self, columns: usize) -> String {
        let tag = self.tag.map_or_else(String::new, |tag| format!(" ({tag})"));
        let room = columns.saturating_sub(tag.len());
        format!("{}{tag}", shorten(&self.program, room))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.within(usize::MAX))
    }
}

/// Names the holders of memory in a report.
pub(super) struct Holders<'a> {
    report: &'a Report,
    forest: &'a Forest,
    places: HashMap<Id, usize>,
}

impl<'a> Holders<'a> {
    pub(super) fn new(report: &'a Report, forest: &'a Forest) -> Self {
        let places = (0..).zip(&report.processes);
        Self {
            report,
            forest,
            places: places.map(|(n, process)| (process.id(), n)).collect(),
        }
    }

    /// Place of a process in the report, and of the image that it was at `at` in its list. `program`: what the sums
    /// call it then.
    pub(super) fn place(&self, process: Id, at: u64, program: &[u8]) -> Option<(usize, usize)> {
        let n = *self.places.get(&process)?;
        let process = &self.report.processes[n];
        let image = image_at(process, at)?;
        let is_other = || {
            let named = process.images[image].program();
            named.is_some_and(|name| name.0 != program)
        };
        // At the very moment of an exec the sums may still be those of before.
        if process.images[image].start_ns == Some(at) && image > 0 && is_other() {
            return Some((n, image - 1));
        }
        Some((n, image))
    }

    /// A process's program at a moment, and its part in a pool, or else whether it was a copy that fork made.
    /// `program`: what the sums call it, which counts where the image doesn't tell.
    pub(super) fn name(&self, process: Option<Id>, at: u64, program: &[u8]) -> Name {
        let fallback = || match escape(program) {
            name if name.is_empty() => NOBODY.to_owned(),
            name => name,
        };
        let Some((n, image)) = process.and_then(|id| self.place(id, at, program)) else {
            return Name {
                program: fallback(),
                tag: None,
            };
        };
        let process = &self.report.processes[n];
        let image = &process.images[image];
        let role = process.role.map(words::role);
        if image.how == "exec" {
            return Name {
                program: self.forest.program(n, image),
                tag: role,
            };
        }
        // What it executed later isn't what it was.
        Name {
            program: fallback(),
            tag: role.or(Some(COPY)),
        }
    }
}

/// Place of the image that a process was at some time: the last that had begun.
pub(super) fn image_at(process: &ProcessReport, at: u64) -> Option<usize> {
    let has_begun = |image: &ImageReport| image.start_ns.is_some_and(|start| start <= at);
    let begun = process.images.iter().rposition(has_begun);
    begun.or_else(|| (!process.images.is_empty()).then_some(0))
}

/// What some address spaces had together, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Had {
    pub(super) processes: u64,
    pub(super) anon: u64,
    pub(super) file: u64,
    pub(super) shmem: u64,
}

impl Had {
    pub(super) fn rss(self) -> u64 {
        self.anon
            .saturating_add(self.file)
            .saturating_add(self.shmem)
    }

    pub(super) fn of_role(role: &RoleReport) -> Self {
        Self {
            processes: role.processes,
            anon: role.anon_bytes,
            file: role.file_bytes,
            shmem: role.shmem_bytes,
        }
    }
}

/// Who had what at the highest sum of RSS, by program, the one with most first; nothing if only one process had any.
pub(super) fn at_peak(report: &Report, forest: &Forest) -> Vec<(Name, Had)> {
    let shares = report.tree.peak_rss_sum_shares.as_deref();
    let Some(shares) = shares.filter(|shares| shares.len() > 1) else {
        return Vec::new();
    };
    let at = report.tree.peak_rss_sum_ns.unwrap_or(0);
    let holders = Holders::new(report, forest);
    let mut all: BTreeMap<Name, Had> = BTreeMap::new();
    for share in shares {
        let had = all
            .entry(holders.name(share.process, at, &share.program.0))
            .or_default();
        had.processes += 1;
        had.anon = had.anon.saturating_add(share.anon_bytes);
        had.file = had.file.saturating_add(share.file_bytes);
        had.shmem = had.shmem.saturating_add(share.shmem_bytes);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    // The map has sorted by name, so equals stay in that order.
    all.sort_by_key(|(_, had)| std::cmp::Reverse(had.rss()));
    all
}

/// The same by part in a pool: several programs may work in pools, and one may have workers and other copies. Nothing
/// without workers.
pub(super) fn at_peak_by_role(report: &Report) -> Vec<(&'static str, Had)> {
    let roles = report
        .tree
        .peak_rss_sum_roles
        .as_deref()
        .unwrap_or_default();
    if !roles.iter().any(|role| role.role == "worker") {
        return Vec::new();
    }
    let roles = roles.iter();
    roles
        .map(|role| (words::role(role.role), Had::of_role(role)))
        .collect()
}
