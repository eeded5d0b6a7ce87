//! Where memory went: sums, who had it when it was most, and how mappings grew.

use std::collections::BTreeMap;

use super::{Style, TextOptions, forest::Forest, head};
use crate::{
    report::{
        Id, ImageReport, ProcessReport, Report, ShareReport, StepReport,
        escape::{escape, left, right, shorten, wrap},
        words,
    },
    units::{Bytes, Nanos},
};

/// Programs listed by memory.
const PROGRAMS: usize = 5;
/// Columns of a size and of a number of processes.
const SIZE: usize = 10;
const TIMES: usize = 9;
/// What is said of a process that goes on with its creator's program.
const COPY: &str = " (fork)";

/// Highest sums, the programs that had most then, and those of which one process had most.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let columns = options.columns();
    let mut out = vec![options.paint(Style::Heading, "MEMORY")];
    for (name, value) in sums(report) {
        out.extend(wrap(&format!("  {}{value}", left(name, 24)), columns, 26));
    }
    out.extend(at_peak(report, forest, columns));
    out.extend(largest(report, forest, columns));
    out.extend(steps(report, forest, options));
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

/// A program's name and figures behind it, in columns that end at the margin.
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

/// What the programs had when the sum of RSS was highest.
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
}

/// Who had the memory when its sum was highest; nothing if only one program had any.
fn at_peak(report: &Report, forest: &Forest, columns: usize) -> Vec<String> {
    let Some(shares) = &report.tree.peak_rss_sum_shares else {
        return Vec::new();
    };
    let at = report.tree.peak_rss_sum_ns.unwrap_or(0);
    let places: BTreeMap<Id, usize> = (0..)
        .zip(&report.processes)
        .map(|(n, process)| (process.id(), n))
        .collect();
    let mut all: BTreeMap<(String, bool), Had> = BTreeMap::new();
    for share in shares {
        let place = share.process.and_then(|id| places.get(&id).copied());
        let role = place.map_or_else(
            || (escape(&share.program.0), false),
            |n| role(report, forest, n, at, share),
        );
        let had = all.entry(role).or_default();
        had.processes += 1;
        had.anon = had.anon.saturating_add(share.anon_bytes);
        had.file = had.file.saturating_add(share.file_bytes);
        had.shmem = had.shmem.saturating_add(share.shmem_bytes);
    }
    if shares.len() < 2 {
        return Vec::new();
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, had)| std::cmp::Reverse(had.rss()));
    let mut titles = vec![("at once".to_owned(), TIMES)];
    titles.extend(["RSS", "anon", "file", "shmem"].map(|word| (word.to_owned(), SIZE)));
    let mut out = vec![row(2, "at the highest sum of RSS", &titles, columns)];
    let left_out = all.len().saturating_sub(PROGRAMS);
    for ((name, is_copy), had) in all.into_iter().take(PROGRAMS) {
        let mut figures = vec![(format!("{} x", words::grouped(had.processes)), TIMES)];
        let sizes = [had.rss(), had.anon, had.file, had.shmem];
        figures.extend(sizes.map(|bytes| (Bytes(bytes).to_string(), SIZE)));
        let room = columns.saturating_sub(4 + TIMES + 4 * SIZE + COPY.len());
        let name = if is_copy {
            format!("{}{COPY}", shorten(&name, room))
        } else {
            name
        };
        out.push(row(4, &name, &figures, columns));
    }
    if left_out > 0 {
        let more = words::count(left_out as u64, "more program", "more programs");
        out.push(format!("    and {more}"));
    }
    out
}

/// A process's program at a moment, and whether it was a copy that fork made.
fn role(
    report: &Report,
    forest: &Forest,
    n: usize,
    at: u64,
    share: &ShareReport,
) -> (String, bool) {
    match image_at(&report.processes[n], at) {
        Some(image) if image.how == "exec" => (forest.program(n, image), false),
        // What it executed later isn't what it was.
        Some(_) => (escape(&share.program.0), true),
        None => (escape(&share.program.0), false),
    }
}

fn image_at(process: &ProcessReport, at: u64) -> Option<&ImageReport> {
    let has_begun = |image: &&ImageReport| image.start_ns.is_some_and(|start| start <= at);
    let begun = process.images.iter().rev().find(has_begun);
    begun.or(process.images.first())
}

/// Programs by the highest RSS that one process had with them, how often they ran, and how much they grew.
fn largest(report: &Report, forest: &Forest, columns: usize) -> Vec<String> {
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
        out.push(row(4, &name, &figures, columns));
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

fn programs(report: &Report, forest: &Forest) -> Vec<(String, Runs)> {
    let mut all: BTreeMap<String, Runs> = BTreeMap::new();
    for (n, process) in report.processes.iter().enumerate() {
        let last = process.images.len().saturating_sub(1);
        for (at, image) in process.images.iter().enumerate() {
            // A copy that is replaced at once is no run of its creator's program.
            let is_run = image.how == "exec" || at == last;
            let own = image
                .peak_rss_bytes
                .filter(|_| is_run && image.shared_mm_with.is_none());
            if let Some(peak) = own {
                let runs = all.entry(forest.program(n, image)).or_default();
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

/// Steps told without being asked for all: the largest, of which many tell the same.
const STEPS: usize = 3;
/// Smaller steps than this part of the highest sum of VMS explain nothing.
const SMALL: u64 = 20;

/// The largest steps in which mapped memory grew.
fn steps(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let whole = report.tree.peak_vms_sum_bytes.unwrap_or(0);
    let matters = |step: &&StepReport| options.all || step.bytes >= whole / SMALL;
    let most = if options.all { usize::MAX } else { STEPS };
    // Forks of one process by the same size are one line.
    let mut lines: Vec<(&StepReport, u64)> = Vec::new();
    for step in report.tree.vms_steps.iter().filter(matters) {
        let is_same = |(other, _): &&mut (&StepReport, u64)| {
            !options.all
                && other.how == "forked"
                && step.how == "forked"
                && other.bytes == step.bytes
        };
        match lines.iter_mut().find(is_same) {
            Some((_, times)) => *times += 1,
            None => lines.push((step, 1)),
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let columns = options.columns();
    let mut out = vec!["  largest steps of mapped memory (VMS)".to_owned()];
    for (step, times) in lines.into_iter().take(most) {
        let size = format!("+{}", Bytes(step.bytes));
        let since = Nanos(step.ns.saturating_sub(head::origin(report)));
        let text = format!(
            "    {}{}",
            left(&size, SIZE + 2),
            told(report, forest, step, times)
        );
        out.extend(wrap(
            &format!("{text}, {since} after the start"),
            columns,
            4 + SIZE + 2,
        ));
    }
    out
}

fn told(report: &Report, forest: &Forest, step: &StepReport, times: u64) -> String {
    let place = |id: Option<Id>| report.processes.iter().position(|p| Some(p.id()) == id);
    let name = |n: usize| {
        let image = image_at(&report.processes[n], step.ns);
        let name = image.map(|image| forest.program(n, image));
        shorten(&name.unwrap_or_default(), 30)
    };
    let Some(n) = place(step.process) else {
        return "a process that is not known".to_owned();
    };
    let process = &report.processes[n];
    let thread = step.tid.filter(|tid| *tid != process.pid);
    let thread = thread.map_or_else(String::new, |tid| format!(", thread {tid}"));
    let who = || format!("{} (pid {}{thread})", name(n), process.pid);
    match step.how {
        "forked" => {
            let from = place(process.creator).map_or_else(
                || "a process that is not known".to_owned(),
                |n| format!("{} (pid {})", name(n), report.processes[n].pid),
            );
            let times = if times > 1 {
                format!(", {} times", words::grouped(times))
            } else {
                String::new()
            };
            format!("copied by a fork of {from}{times}")
        }
        "executed" => format!("executed: {}", who()),
        _ => {
            let what = match step.part {
                Some("data") => "private data",
                Some("stack") => "stack",
                Some("exec") => "code",
                Some(_) => "shared, read-only or reserved",
                None => "memory",
            };
            format!("mapped {what}: {}", who())
        }
    }
}
