//! How far the report can be trusted.

use super::{Sentence, bad, good, verification};
use crate::{
    report::{ImageReport, Report, escape::escape, words},
    units::Bytes,
};

fn images(report: &Report) -> impl Iterator<Item = &ImageReport> {
    report.processes.iter().flat_map(|p| &p.images)
}

/// What was lost, and how exact the numbers are.
pub(in crate::report) fn trust(report: &Report) -> Vec<Sentence> {
    let trust = &report.trust;
    let events = words::count(trust.events, "event", "events");
    let mut out = Vec::new();
    if trust.complete {
        out.push(good(format!("Complete: {events}, none lost.")));
    } else {
        let lost = match trust.lost_events {
            0 => String::new(),
            n => format!(", and {} known to be missing", words::count(n, "is", "are")),
        };
        out.push(bad(format!("NOT complete: {events}{lost}.")));
    }
    out.extend(trust.notes.iter().map(|note| good(format!("- {note}"))));
    out.extend(unassessed(report).into_iter().map(good));
    out.push(good(bounds(report)));
    if let Some(found) = &trust.verification {
        let highest = images(report).filter_map(|i| i.peak_rss_bytes).max();
        out.extend(verification::result(found, report.recording.start_ns));
        let (cpus, page_size) = (report.recording.cpus, report.recording.page_size);
        let charge = report.tree.charge.as_ref();
        out.extend(charge.and_then(|c| verification::group(c, cpus, page_size)));
        out.extend(verification::details(found, highest));
    }
    out.push(good(origin(report)));
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

/// Which kinds of findings could not be judged, and why: a line for each reason.
fn unassessed(report: &Report) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in report.findings.iter().filter(|f| !f.assessed) {
        match reasons.iter_mut().find(|(why, _)| *why == finding.text) {
            Some((_, ids)) => ids.push(finding.id),
            None => reasons.push((&finding.text, vec![finding.id])),
        }
    }
    let line =
        |(why, ids): &(&str, Vec<&str>)| format!("Not assessed, since {why}: {}.", ids.join(", "));
    reasons.iter().map(line).collect()
}
