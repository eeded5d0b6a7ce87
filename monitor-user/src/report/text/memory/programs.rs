//! Programs by the memory that one process had with them.

use std::collections::BTreeMap;

use super::{PROGRAMS, SIZE, TIMES, row, tagged_row};
use crate::{
    report::{Report, forest::Forest, holders::Name, words},
    units::Bytes,
};

/// Programs by the highest RSS that one process had with them, how often they ran, and how much they grew.
pub(super) fn lines(report: &Report, forest: &Forest, columns: usize) -> Vec<String> {
    let top = programs(report, forest);
    if top.is_empty() {
        return Vec::new();
    }
    let titles = [("runs", TIMES), ("peak", SIZE), ("growth", SIZE)];
    let titles = titles.map(|(word, width)| (word.to_owned(), width));
    let mut out = vec![row(2, "highest RSS of one process", &titles, columns)];
    for (name, run) in top {
        let growth = run
            .growth
            .map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string());
        let figures = [
            (format!("{} x", words::grouped(run.processes)), TIMES),
            (Bytes(run.peak).to_string(), SIZE),
            (growth, SIZE),
        ];
        out.push(tagged_row(&name, &figures, columns));
    }
    out
}

/// The runs of a program.
#[derive(Clone, Copy, Default)]
struct Runs {
    processes: u64,
    /// Highest RSS of one of them.
    peak: u64,
    /// Most that one of them had at its peak beyond what it began with.
    growth: Option<u64>,
}

fn programs(report: &Report, forest: &Forest) -> Vec<(Name, Runs)> {
    let mut all: BTreeMap<Name, Runs> = BTreeMap::new();
    for (n, process) in report.processes.iter().enumerate() {
        let last = process.images.len().saturating_sub(1);
        for (at, image) in process.images.iter().enumerate() {
            // A copy that is replaced at once is no run of its creator's program.
            let is_run = image.how == "exec" || at == last;
            let own = image
                .peak_rss_bytes
                .filter(|_| is_run && image.shared_mm_with.is_none());
            if let Some(peak) = own {
                let name = Name {
                    program: forest.program(n, image),
                    tag: process.role.map(words::role),
                };
                let runs = all.entry(name).or_default();
                runs.processes += 1;
                runs.peak = runs.peak.max(peak);
                let growth = image
                    .start_rss_bytes
                    .map(|start| peak.saturating_sub(start));
                runs.growth = runs.growth.max(growth);
            }
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    // The map has sorted by name, so equals stay in that order.
    all.sort_by_key(|(_, runs)| std::cmp::Reverse(runs.peak));
    all.truncate(PROGRAMS);
    all
}
