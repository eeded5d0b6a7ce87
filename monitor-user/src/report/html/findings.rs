//! What went wrong, each with what it means.

use maud::{Markup, html};

use super::processes::Rows;
use crate::{
    findings::{find, sections, sentence},
    report::{FindingReport, Id, Report, escape::escape, forest::Forest, words},
};

/// Processes that a finding names.
const NAMED: usize = 4;
/// Findings of one kind that are told before a reader asks for the rest.
const ALIKE: usize = 3;

/// All that were found and are not told by another one; nothing where all is well.
pub(super) fn section(report: &Report, forest: &Forest, rows: &Rows<'_>) -> Markup {
    let shown = |f: &&FindingReport| f.assessed && !f.told_elsewhere;
    let kinds = kinds(report.findings.iter().filter(shown));
    html! {
        section {
            h2 { "Findings" }
            @if kinds.is_empty() { p { "None." } }
            @for kind in kinds { (article(&kind, report, forest, rows)) }
        }
    }
}

/// Those of one kind that are as bad and have the same remedy are told together, at the place of the first.
fn kinds<'a>(found: impl Iterator<Item = &'a FindingReport>) -> Vec<Vec<&'a FindingReport>> {
    let mut kinds: Vec<Vec<&FindingReport>> = Vec::new();
    for finding in found {
        let is_same = |other: &FindingReport| {
            (other.id, other.severity, &other.advice)
                == (finding.id, finding.severity, &finding.advice)
        };
        match kinds
            .iter_mut()
            .find(|kind| kind.iter().all(|other| is_same(other)))
        {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    kinds
}

fn article(kind: &[&FindingReport], report: &Report, forest: &Forest, rows: &Rows<'_>) -> Markup {
    let Some(first) = kind.first() else {
        return html! {};
    };
    let (shown, more) = kind.split_at(kind.len().min(ALIKE));
    let one = |finding: &FindingReport| one(finding, report, forest, rows);
    html! {
        article class=(first.severity.name()) {
            h3 {
                (first.severity.name()) " " (first.id)
                @if kind.len() > 1 { ", " (words::grouped(kind.len() as u64)) " times" }
            }
            @for finding in shown { (one(finding)) }
            @if !more.is_empty() {
                details {
                    summary.faint { (words::grouped(more.len() as u64)) " more" }
                    @for finding in more { (one(finding)) }
                }
            }
            @if !first.advice.is_empty() { p.advice { "\u{2192} " (escape(first.advice.as_bytes())) } }
            @if let Some(rule) = find(first.id) {
                details.more {
                    summary.faint { "What this is about" }
                    @for (heading, text) in sections(rule) {
                        p { strong { (heading) ". " } (sentence(text)) }
                    }
                }
            }
        }
    }
}

/// What one of them says, and the processes that it is about.
fn one(finding: &FindingReport, report: &Report, forest: &Forest, rows: &Rows<'_>) -> Markup {
    let more = finding.subjects.len().saturating_sub(NAMED) as u64;
    html! {
        p { (escape(finding.text.as_bytes())) }
        @if let Some(doubt) = &finding.doubt { p.faint { "Doubtful: " (escape(doubt.as_bytes())) } }
        @if !finding.subjects.is_empty() {
            p.faint {
                "see "
                @for (n, subject) in finding.subjects.iter().take(NAMED).enumerate() {
                    @if n > 0 { ", " }
                    (link(*subject, report, forest, rows))
                }
                @if more > 0 { " and " (words::grouped(more)) " more" }
            }
        }
    }
}

/// A process by name, with a way to its row.
fn link(subject: Id, report: &Report, forest: &Forest, rows: &Rows<'_>) -> Markup {
    let at = report.processes.iter().position(|p| p.id() == subject);
    html! {
        @match at.and_then(|at| Some((at, rows.anchor(at)?))) {
            Some((at, anchor)) => a href={ "#" (anchor) } { (subject.pid) " " (forest.labels[at]) },
            None => (subject.pid),
        }
    }
}
