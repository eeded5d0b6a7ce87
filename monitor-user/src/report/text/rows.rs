//! The process tree, one line for a process or for many that are alike.

use super::{Style, TextOptions, forest::Forest};
use crate::{
    report::{
        ProcessReport, Report,
        escape::{left, right, shorten, width},
        words,
    },
    units::{Bytes, Nanos},
};

/// So many alike siblings are shown in one line.
const FOLD: usize = 3;
/// Different kinds of children shown of one process; the rest is summed up.
const KINDS: usize = 20;
/// Rows of the whole tree; the rest is summed up.
const ROWS: usize = 200;
/// Columns that a name has at least, whatever the depth.
const NAME: usize = 20;

const PID: usize = 8;
const LIFE: usize = 10;
const PEAK: usize = 9;
const END: usize = 10;

/// Something that is still to be shown.
struct Pending {
    what: What,
    /// Lines of the tree in front of it; `None`: it is at the top.
    branch: Option<Branch>,
}

enum What {
    /// One process, or many that are alike.
    Alike(Vec<usize>),
    /// Processes that are left out.
    Rest(Vec<usize>),
}

#[derive(Clone)]
struct Branch {
    depth: usize,
    /// What stands below the creator.
    stem: String,
    is_last: bool,
}

impl Branch {
    fn below(parent: Option<&Self>, is_last: bool) -> Self {
        let stem = parent.map_or_else(String::new, |p| {
            format!("{}{}", p.stem, if p.is_last { "   " } else { "│  " })
        });
        Self {
            depth: parent.map_or(0, |p| p.depth) + 1,
            stem,
            is_last,
        }
    }

    /// In `room` columns. What is too deep for them says its depth instead.
    fn text(&self, room: usize) -> String {
        let end = if self.is_last { "└─ " } else { "├─ " };
        if width(&self.stem) + 3 <= room {
            format!("{}{end}", self.stem)
        } else {
            format!("… {} deep ", self.depth)
        }
    }
}

/// The tree.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let mut out = vec![options.paint(
        Style::Heading,
        &columns(options, "PROCESSES", "pid", "lifetime", "peak RSS", "end"),
    )];
    if report.processes.is_empty() {
        out.push("(none)".to_owned());
        return out;
    }
    let rows_max = if options.all { usize::MAX } else { ROWS };
    let tops = entries(forest, &forest.tops, options);
    let mut pending: Vec<Pending> = tops
        .into_iter()
        .rev()
        .map(|what| Pending { what, branch: None })
        .collect();
    let mut shown = 0;
    while let Some(Pending { what, branch }) = pending.pop() {
        if out.len() > rows_max {
            let hidden = report.processes.len() - shown;
            out.push(rest_text(hidden));
            break;
        }
        out.push(row(report, forest, &what, branch.as_ref(), options));
        let members = match &what {
            What::Alike(members) => members,
            What::Rest(members) => {
                shown += count(forest, members);
                continue;
            }
        };
        shown += members.len();
        let mut children: Vec<usize> = members
            .iter()
            .flat_map(|m| forest.children[*m].iter().copied())
            .collect();
        children.sort_unstable();
        let below = entries(forest, &children, options);
        let last = below.len().saturating_sub(1);
        for (n, what) in below.into_iter().enumerate().rev() {
            let branch = Some(Branch::below(branch.as_ref(), n == last));
            pending.push(Pending { what, branch });
        }
    }
    out
}

/// What is shown of siblings.
fn entries(forest: &Forest, siblings: &[usize], options: TextOptions) -> Vec<What> {
    if options.all {
        return siblings.iter().map(|n| What::Alike(vec![*n])).collect();
    }
    let mut entries: Vec<Vec<usize>> = Vec::new();
    for kind in forest.alike(siblings) {
        if kind.len() < FOLD {
            entries.extend(kind.into_iter().map(|n| vec![n]));
        } else {
            entries.push(kind);
        }
    }
    entries.sort_by_key(|kind| kind.first().copied());
    let rest = entries.split_off(entries.len().min(KINDS));
    let rest: Vec<usize> = rest.into_iter().flatten().collect();
    let mut out: Vec<What> = entries.into_iter().map(What::Alike).collect();
    if !rest.is_empty() {
        out.push(What::Rest(rest));
    }
    out
}

/// Number of processes with all that they made.
fn count(forest: &Forest, processes: &[usize]) -> usize {
    let mut pending = processes.to_vec();
    let mut n = 0;
    while let Some(process) = pending.pop() {
        n += 1;
        pending.extend(&forest.children[process]);
    }
    n
}

fn rest_text(hidden: usize) -> String {
    let processes = words::count(hidden as u64, "more process", "more processes");
    format!("… {processes}; --all shows them")
}

fn row(
    report: &Report,
    forest: &Forest,
    what: &What,
    branch: Option<&Branch>,
    options: TextOptions,
) -> String {
    let room = name_columns(options);
    let stem = branch.map_or_else(String::new, |b| b.text(room - NAME.min(room / 2)));
    let faint = options.paint(Style::Faint, &stem);
    let members = match what {
        What::Rest(members) => return format!("{faint}{}", rest_text(count(forest, members))),
        What::Alike(members) => members,
    };
    let Some(first) = members.first().copied() else {
        return faint;
    };
    let process = &report.processes[first];
    let peak = peak(report, members);
    let label = &forest.labels[first];
    let mark = if process.creator_from.is_some() {
        "? "
    } else {
        ""
    };
    let room = room.saturating_sub(width(&stem));
    let (name, life) = if members.len() == 1 {
        let name = left(&shorten(&format!("{mark}{label}"), room), room);
        let life = lifetime(process).map_or_else(|| "-".to_owned(), |ns| Nanos(ns).to_string());
        let life = format!(
            " {} {}",
            right(&process.pid.to_string(), PID),
            right(&life, LIFE)
        );
        (name, life)
    } else {
        let times = words::grouped(members.len() as u64);
        let name = left(&shorten(&format!("{times} x {mark}{label}"), room), room);
        (
            name,
            format!(" {}", right(&lifetimes(report, members), PID + LIFE + 1)),
        )
    };
    let end = options.paint(Style::Bad, &forest.ends[first]);
    format!("{faint}{name}{life} {}  {end}", right(&peak, PEAK))
}

/// Highest RSS of some processes with the program that is shown.
fn peak(report: &Report, members: &[usize]) -> String {
    let processes = || members.iter().map(|m| &report.processes[*m]);
    let shares = |p: &ProcessReport| p.images.last().is_some_and(|i| i.shared_mm_with.is_some());
    match processes()
        .filter_map(ProcessReport::program_peak_rss_bytes)
        .max()
    {
        Some(peak) => Bytes(peak).to_string(),
        None if processes().any(shares) => "shared".to_owned(),
        None => "-".to_owned(),
    }
}

/// Columns for tree and name.
fn name_columns(options: TextOptions) -> usize {
    options.columns() - (PID + LIFE + PEAK + END + 5)
}

fn columns(
    options: TextOptions,
    name: &str,
    pid: &str,
    life: &str,
    peak: &str,
    end: &str,
) -> String {
    format!(
        "{} {} {} {}  {end}",
        left(name, name_columns(options)),
        right(pid, PID),
        right(life, LIFE),
        right(peak, PEAK),
    )
}

fn lifetime(process: &ProcessReport) -> Option<u64> {
    Some(process.end_ns?.saturating_sub(process.start_ns))
}

/// Shortest and longest life of many, in the columns of pid and lifetime.
fn lifetimes(report: &Report, members: &[usize]) -> String {
    let known = || {
        members
            .iter()
            .filter_map(|m| lifetime(&report.processes[*m]))
    };
    let (Some(low), Some(high)) = (known().min(), known().max()) else {
        return "-".to_owned();
    };
    let both = words::span(low, high);
    if width(&both) <= PID + LIFE + 1 {
        both
    } else {
        format!("to {}", Nanos(high))
    }
}
