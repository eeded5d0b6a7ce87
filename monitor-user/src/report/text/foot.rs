//! Totals, and how far the report can be trusted.

use std::collections::BTreeMap;

use super::{Style, TextOptions, forest::Forest};
use crate::{
    report::{
        ImageReport, Report,
        escape::{escape, left, right, shorten, wrap},
        verification, words,
    },
    units::Bytes,
};

/// Programs listed by memory.
const PROGRAMS: usize = 5;

/// Highest sums, and the programs with most memory.
pub(super) fn totals(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let columns = options.columns();
    let tree = &report.tree;
    let mut out = vec![options.paint(Style::Heading, "MEMORY")];
    let mut fact = |name: &str, value: String| {
        out.extend(wrap(&format!("  {}{value}", left(name, 24)), columns, 26));
    };
    fact("highest sum of RSS", sum(tree.peak_rss_sum_bytes));
    fact("highest sum of VMS", sum(tree.peak_vms_sum_bytes));
    let swap = images(report).filter_map(|i| i.peak_swap_bytes).max();
    if let Some(swap) = swap.filter(|s| *s > 0) {
        fact("most swap of a process", Bytes(swap).to_string());
    }
    let top = programs(report, forest);
    if !top.is_empty() {
        out.push("  programs by highest RSS of one process".to_owned());
    }
    let room = columns - 4 - 10 - 14;
    for (name, (processes, peak)) in top {
        out.push(format!(
            "    {}{}{}",
            left(&shorten(&name, room), room),
            right(&Bytes(peak).to_string(), 10),
            right(&format!("{} x", words::grouped(processes)), 14),
        ));
    }
    let caveat = "  Pages that processes share count in each of them: sums may be above what was really in use.";
    out.extend(wrap(caveat, columns, 2));
    out
}

fn sum(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not known".to_owned(), |b| Bytes(b).to_string())
}

fn images(report: &Report) -> impl Iterator<Item = &ImageReport> {
    report.processes.iter().flat_map(|p| &p.images)
}

/// Programs by the highest RSS that one process had with them, and how often they ran.
fn programs(report: &Report, forest: &Forest) -> Vec<(String, (u64, u64))> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (n, process) in report.processes.iter().enumerate() {
        let last = process.images.len().saturating_sub(1);
        for (at, image) in process.images.iter().enumerate() {
            // A copy that is replaced at once is no run of its creator's program.
            let is_run = image.how == "exec" || at == last;
            let own = image
                .peak_rss_bytes
                .filter(|_| is_run && image.shared_mm_with.is_none());
            if let Some(peak) = own {
                let entry = all.entry(forest.program(n, image)).or_default();
                entry.0 += 1;
                entry.1 = entry.1.max(peak);
            }
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    // The map has sorted by name, so equals stay in that order.
    all.sort_by_key(|(_, (_, peak))| std::cmp::Reverse(*peak));
    all.truncate(PROGRAMS);
    all
}

/// What was lost, and how exact the numbers are.
pub(super) fn trust(report: &Report, options: TextOptions) -> Vec<String> {
    let columns = options.columns();
    let trust = &report.trust;
    let mut out = vec![options.paint(Style::Heading, "TRUST")];
    let mut say = |text: &str, bad: bool| {
        for line in wrap(&format!("  {text}"), columns, 4) {
            out.push(if bad {
                options.paint(Style::Bad, &line)
            } else {
                line
            });
        }
    };
    let events = words::count(trust.events, "event", "events");
    if trust.complete {
        say(&format!("Complete: {events}, none lost."), false);
    } else {
        let lost = match trust.lost_events {
            0 => String::new(),
            n => format!(", and {} known to be missing", words::count(n, "is", "are")),
        };
        say(&format!("NOT complete: {events}{lost}."), true);
    }
    for note in &trust.notes {
        say(&format!("- {note}"), false);
    }
    say(&bounds(report), false);
    if let Some(found) = &trust.verification {
        let highest = images(report).filter_map(|i| i.peak_rss_bytes).max();
        let mut sentences = verification::result(found, report.recording.start_ns);
        sentences.extend(verification::details(found, highest));
        for sentence in sentences {
            say(&sentence.text, sentence.is_bad);
        }
    }
    say(&origin(report), false);
    out
}

fn origin(report: &Report) -> String {
    let recording = &report.recording;
    let facts = [
        (" on ", &recording.host),
        (", kernel ", &recording.kernel),
        (", by rtrace ", &recording.rtrace_version),
    ];
    let known = facts.iter().filter(|(_, fact)| !fact.is_empty());
    let known = known.map(|(word, fact)| [(*word).to_owned(), escape(fact.as_bytes())].concat());
    let text = known.collect::<Vec<_>>().concat();
    if text.is_empty() {
        "Where it was recorded is not known.".to_owned()
    } else {
        format!("Recorded{text}.")
    }
}

fn bounds(report: &Report) -> String {
    let peaks = images(report).filter_map(|i| i.peak_rss_bound_bytes);
    match (peaks.max(), report.tree.peak_rss_sum_bound_bytes) {
        (Some(0), Some(0)) => "Peaks of RSS are exact.".to_owned(),
        (Some(image), Some(0)) => format!(
            "Peaks of RSS are exact for the sum, and right to {} for a process.",
            Bytes(image)
        ),
        (Some(image), Some(sum)) => format!(
            "Peaks of RSS are right to {} for a process and to {} for the sum.",
            Bytes(image),
            Bytes(sum)
        ),
        _ => "No memory was recorded.".to_owned(),
    }
}
