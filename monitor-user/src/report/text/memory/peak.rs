//! Who had the memory when its sum was highest.

use std::collections::BTreeMap;

use super::{Name, PROGRAMS, SIZE, TIMES, image_at, row, tagged_row};
use crate::{
    report::{Id, Report, RoleReport, ShareReport, escape::escape, forest::Forest, words},
    units::Bytes,
};

/// What is said of a process that goes on with its creator's program, and has no part in a pool.
const COPY: &str = "fork";

/// What some address spaces had then.
#[derive(Clone, Copy, Default)]
struct Had {
    processes: u64,
    anon: u64,
    file: u64,
    shmem: u64,
}

impl Had {
    fn rss(self) -> u64 {
        self.anon
            .saturating_add(self.file)
            .saturating_add(self.shmem)
    }

    fn figures(self) -> Vec<(String, usize)> {
        let times = (format!("{} x", words::grouped(self.processes)), TIMES);
        let sizes = [self.rss(), self.anon, self.file, self.shmem];
        let sizes = sizes.map(|bytes| (Bytes(bytes).to_string(), SIZE));
        [times].into_iter().chain(sizes).collect()
    }
}

/// By program, and by role if there are pools; nothing if only one process had any.
pub(super) fn lines(report: &Report, forest: &Forest, columns: usize) -> Vec<String> {
    let shares = report.tree.peak_rss_sum_shares.as_deref();
    let Some(shares) = shares.filter(|shares| shares.len() > 1) else {
        return Vec::new();
    };
    let at = report.tree.peak_rss_sum_ns.unwrap_or(0);
    let places: BTreeMap<Id, usize> = (0..)
        .zip(&report.processes)
        .map(|(n, process)| (process.id(), n))
        .collect();
    let mut all: BTreeMap<Name, Had> = BTreeMap::new();
    for share in shares {
        let place = share.process.and_then(|id| places.get(&id).copied());
        let name = place.map_or_else(
            || Name {
                program: escape(&share.program.0),
                tag: None,
            },
            |n| name(report, forest, n, at, share),
        );
        let had = all.entry(name).or_default();
        had.processes += 1;
        had.anon = had.anon.saturating_add(share.anon_bytes);
        had.file = had.file.saturating_add(share.file_bytes);
        had.shmem = had.shmem.saturating_add(share.shmem_bytes);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, had)| std::cmp::Reverse(had.rss()));
    let mut titles = vec![("at once".to_owned(), TIMES)];
    titles.extend(["RSS", "anon", "file", "shmem"].map(|word| (word.to_owned(), SIZE)));
    let mut out = vec![row(2, "at the highest sum of RSS", &titles, columns)];
    let left_out = all.len().saturating_sub(PROGRAMS);
    for (name, had) in all.into_iter().take(PROGRAMS) {
        out.push(tagged_row(&name, &had.figures(), columns));
    }
    if left_out > 0 {
        let more = words::count(left_out as u64, "more program", "more programs");
        out.push(format!("    and {more}"));
    }
    out.extend(by_role(report, columns));
    out
}

/// A process's program at a moment, and its part in a pool, or else whether it was a copy that fork made.
fn name(report: &Report, forest: &Forest, n: usize, at: u64, share: &ShareReport) -> Name {
    let process = &report.processes[n];
    let role = process.role.map(words::role);
    match image_at(process, at) {
        Some(image) if image.how == "exec" => Name {
            program: forest.program(n, image),
            tag: role,
        },
        // What it executed later isn't what it was.
        Some(_) => Name {
            program: escape(&share.program.0),
            tag: role.or(Some(COPY)),
        },
        None => Name {
            program: escape(&share.program.0),
            tag: role,
        },
    }
}

/// The same by role: several programs may work in pools, and one may have workers and other copies.
fn by_role(report: &Report, columns: usize) -> Vec<String> {
    let roles = report
        .tree
        .peak_rss_sum_roles
        .as_deref()
        .unwrap_or_default();
    if !roles.iter().any(|role| role.role == "worker") {
        return Vec::new();
    }
    let line = |role: &RoleReport| {
        let had = Had {
            processes: role.processes,
            anon: role.anon_bytes,
            file: role.file_bytes,
            shmem: role.shmem_bytes,
        };
        row(4, words::role(role.role), &had.figures(), columns)
    };
    let mut out = vec!["  the same by role".to_owned()];
    out.extend(roles.iter().map(line));
    out
}
