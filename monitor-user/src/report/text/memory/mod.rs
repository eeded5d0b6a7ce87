//! Where memory went: sums, who had it when it was most, and how mappings grew.

mod peak;
mod programs;
mod steps;

use super::{Style, TextOptions};
use crate::{
    report::{
        ImageReport, Report,
        escape::{left, right, shorten, wrap},
        forest::Forest,
        holders::Name,
    },
    units::Bytes,
};

/// Programs listed by memory.
const PROGRAMS: usize = 5;
/// Columns of a size and of a number of processes.
const SIZE: usize = 10;
const TIMES: usize = 9;

/// Highest sums, the programs that had most then, and those of which one process had most.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let columns = options.columns();
    let mut out = vec![options.paint(Style::Heading, "MEMORY")];
    for (name, value) in sums(report) {
        out.extend(wrap(&format!("  {}{value}", left(name, 24)), columns, 26));
    }
    out.extend(peak::lines(report, forest, columns));
    out.extend(programs::lines(report, forest, columns));
    out.extend(steps::lines(report, forest, options));
    if report.tree.peak_unique_high_bytes.is_none() && report.tree.peak_rss_sum_bytes.is_some() {
        let caveat = "  Pages that processes share count in each of them: sums may be above what was really in use.";
        out.extend(wrap(caveat, columns, 2));
    }
    out
}

fn sums(report: &Report) -> Vec<(&'static str, String)> {
    let tree = &report.tree;
    let sum = |bytes: Option<u64>| {
        bytes.map_or_else(|| "not known".to_owned(), |bytes| Bytes(bytes).to_string())
    };
    let mut facts = vec![("highest sum of RSS", sum(tree.peak_rss_sum_bytes))];
    let unique = tree.peak_unique_low_bytes.zip(tree.peak_unique_high_bytes);
    if let Some((low, high)) = unique {
        let range = format!(
            "{} to {}, shared pages counted once",
            Bytes(low),
            Bytes(high)
        );
        facts.push(("really in use then", range));
    }
    facts.push(("highest sum of VMS", sum(tree.peak_vms_sum_bytes)));
    let swap = images(report).filter_map(|i| i.peak_swap_bytes).max();
    if let Some(swap) = swap.filter(|s| *s > 0) {
        facts.push(("most swap of a process", Bytes(swap).to_string()));
    }
    facts
}

fn images(report: &Report) -> impl Iterator<Item = &ImageReport> {
    report.processes.iter().flat_map(|p| &p.images)
}

/// Name and figures behind it, in columns that end at the margin. A name that is too long loses its end, never its tag.
fn tagged_row(name: &Name, figures: &[(String, usize)], columns: usize) -> String {
    let width: usize = figures.iter().map(|(_, width)| width).sum();
    let name = name.within(columns.saturating_sub(4 + width));
    row(4, &name, figures, columns)
}

/// A name and figures behind it, in columns that end at the margin.
fn row(indent: usize, name: &str, figures: &[(String, usize)], columns: usize) -> String {
    let width: usize = figures.iter().map(|(_, width)| width).sum();
    let room = columns.saturating_sub(indent + width);
    let figures = figures.iter().map(|(figure, width)| right(figure, *width));
    let figures: Vec<String> = figures.collect();
    format!(
        "{}{}{}",
        " ".repeat(indent),
        left(&shorten(name, room), room),
        figures.concat()
    )
}
