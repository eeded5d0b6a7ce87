//! What went wrong, the most severe first.

use super::{Style, TextOptions};
use crate::{
    findings::Severity,
    report::{
        FindingReport, Report,
        escape::{escape, width, wrap},
        words,
    },
};

/// Pieces of information that are told unless all are asked for.
const NOTES: usize = 6;
/// Findings of one kind that are told one by one.
const ALIKE: usize = 3;
/// Columns by which what belongs to a finding stands in.
const INDENT: usize = 4;

/// A line for each finding with what and why, and one with what to do; nothing where all is well.
pub(super) fn lines(report: &Report, options: TextOptions) -> Vec<String> {
    let shown = |f: &&FindingReport| f.assessed && (options.all || !f.told_elsewhere);
    let found: Vec<&FindingReport> = report.findings.iter().filter(shown).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let mut out = vec![heading(&found, options)];
    let (notes, grave): (Vec<&FindingReport>, Vec<&FindingReport>) =
        found.iter().partition(|f| f.severity == Severity::Info);
    for alike in
        grave.chunk_by(|a, b| (a.id, &a.advice, a.severity) == (b.id, &b.advice, b.severity))
    {
        out.extend(several(alike, options));
    }
    let most = if options.all { notes.len() } else { NOTES };
    for finding in notes.iter().take(most) {
        out.extend(told(finding, "note", Style::Plain, options));
    }
    if let Some(more) = notes.len().checked_sub(most).filter(|n| *n > 0) {
        let more = words::count(more as u64, "more note", "more notes");
        out.push(options.paint(Style::Faint, &format!("  and {more}; --all shows them")));
    }
    out
}

/// Findings of one kind that are as bad and have the same remedy.
fn several(alike: &[&FindingReport], options: TextOptions) -> Vec<String> {
    let most = if options.all { alike.len() } else { ALIKE };
    let mut out = Vec::new();
    for finding in alike.iter().take(most) {
        let word = finding.severity.name().to_uppercase();
        let style = if finding.severity == Severity::Error {
            Style::Bad
        } else {
            Style::Heading
        };
        out.extend(told(finding, &word, style, options));
    }
    if let Some(more) = alike.len().checked_sub(most).filter(|n| *n > 0) {
        let more = words::grouped(more as u64);
        out.push(options.paint(
            Style::Faint,
            &format!("    and {more} more of {}; --all shows them", alike[0].id),
        ));
    }
    out.extend(paragraph(&format!("-> {}", alike[0].advice), options));
    out
}

fn heading(found: &[&FindingReport], options: TextOptions) -> String {
    let of = |severity| found.iter().filter(|f| f.severity == severity).count() as u64;
    let counts = [
        (of(Severity::Error), "error", "errors"),
        (of(Severity::Warning), "warning", "warnings"),
        (of(Severity::Info), "note", "notes"),
    ];
    let counts = counts.iter().filter(|(n, ..)| *n > 0);
    let counts: Vec<_> = counts
        .map(|(n, one, many)| words::count(*n, one, many))
        .collect();
    let counts = counts.join(", ");
    let hint = "; rtrace explain ID tells more";
    let hint = if width(&counts) + hint.len() + 10 > options.columns() {
        ""
    } else {
        hint
    };
    format!(
        "{}  {counts}{hint}",
        options.paint(Style::Heading, "FINDINGS")
    )
}

/// "WARNING fork.multithreaded: what happened".
fn told(finding: &FindingReport, word: &str, style: Style, options: TextOptions) -> Vec<String> {
    let doubt = finding
        .doubt
        .as_ref()
        .map(|doubt| format!(" (doubtful: {doubt})"));
    let text = escape(format!("{}{}", finding.text, doubt.unwrap_or_default()).as_bytes());
    let text = format!("  {word} {}: {text}", finding.id);
    let lines = wrap(&text, options.columns(), INDENT);
    let first = format!("  {word}");
    let painted = |line: String| match line.strip_prefix(&first) {
        Some(rest) => format!("  {}{rest}", options.paint(style, word)),
        None => line,
    };
    lines
        .into_iter()
        .enumerate()
        .map(|(n, line)| if n == 0 { painted(line) } else { line })
        .collect()
}

fn paragraph(text: &str, options: TextOptions) -> Vec<String> {
    let indented = format!("{:INDENT$}{}", "", escape(text.as_bytes()));
    wrap(&indented, options.columns(), INDENT + 3)
}
