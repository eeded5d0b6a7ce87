//! How far the report can be trusted.

use super::{Style, TextOptions, findings};
use crate::{
    report::{
        ImageReport, Report,
        escape::{escape, wrap},
        verification, words,
    },
    units::Bytes,
};

fn images(report: &Report) -> impl Iterator<Item = &ImageReport> {
    report.processes.iter().flat_map(|p| &p.images)
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
    for line in findings::unassessed(report) {
        say(&line, false);
    }
    say(&bounds(report), false);
    if let Some(found) = &trust.verification {
        let highest = images(report).filter_map(|i| i.peak_rss_bytes).max();
        let mut sentences = verification::result(found, report.recording.start_ns);
        let (cpus, page_size) = (report.recording.cpus, report.recording.page_size);
        let charge = report.tree.charge.as_ref();
        sentences.extend(charge.and_then(|c| verification::group(c, cpus, page_size)));
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
