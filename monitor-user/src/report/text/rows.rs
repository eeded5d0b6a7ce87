//! The process tree, one line for a process or for many that are alike.

use super::{Style, TextOptions};
use crate::{
    report::{
        ProcessReport, Report,
        escape::{left, right, shorten, width},
        forest::Forest,
        outline::{Branch, Limits, Outline, What},
        words,
    },
    units::{Bytes, Nanos},
};

/// What is shown unless all is asked for.
const LIMITS: Limits = Limits {
    fold: 3,
    kinds: 20,
    rows: 200,
};
/// Columns that a name has at least, whatever the depth.
const NAME: usize = 20;

const PID: usize = 8;
const LIFE: usize = 10;
const PEAK: usize = 9;
const END: usize = 10;

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
    let limits = if options.all { Limits::NONE } else { LIMITS };
    let outline = Outline::new(forest, limits);
    let row = |(what, branch): &(What, Option<Branch>)| {
        row(report, forest, what, branch.as_ref(), options)
    };
    out.extend(outline.rows.iter().map(row));
    if outline.hidden > 0 {
        out.push(rest_text(outline.hidden));
    }
    out
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
        What::Rest(members) => return format!("{faint}{}", rest_text(forest.count(members))),
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
        let life = process
            .lifetime_ns()
            .map_or_else(|| "-".to_owned(), |ns| Nanos(ns).to_string());
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

/// Shortest and longest life of many, in the columns of pid and lifetime.
fn lifetimes(report: &Report, members: &[usize]) -> String {
    let known = || {
        members
            .iter()
            .filter_map(|m| report.processes[*m].lifetime_ns())
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
