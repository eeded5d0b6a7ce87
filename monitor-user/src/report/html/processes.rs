//! The process tree; each row opens to tell more.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::{
    report::{
        ByteText, ImageReport, ParentReport, ProcessReport, Report,
        escape::escape,
        forest::Forest,
        outline::{Branch, Limits, Outline, What},
        say, words,
    },
    units::{Bytes, Nanos},
};

/// Columns of the lines of the tree.
const STEM: usize = 60;
/// Processes listed of a row that stands for many.
const MEMBERS: usize = 100;

/// The rows of the tree.
pub(super) struct Rows<'a> {
    report: &'a Report,
    forest: &'a Forest,
    outline: Outline,
    /// Row of each process that is shown, by its place in the report.
    anchors: HashMap<usize, usize>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(report: &'a Report, forest: &'a Forest, limits: Limits) -> Self {
        let outline = Outline::new(forest, limits);
        let mut anchors = HashMap::new();
        for (row, (what, _)) in outline.rows.iter().enumerate() {
            if let What::Alike(members) = what {
                anchors.extend(members.iter().map(|member| (*member, row)));
            }
        }
        Self {
            report,
            forest,
            outline,
            anchors,
        }
    }

    /// Name of the row of a process, to be linked to; `None` if it has none.
    pub(super) fn anchor(&self, process: usize) -> Option<String> {
        self.anchors.get(&process).map(|row| format!("r{row}"))
    }

    pub(super) fn section(&self) -> Markup {
        html! {
            section.processes {
                h2 { "Processes" }
                div .row.heading {
                    span { "program" } span { "pid" } span { "lifetime" } span { "peak RSS" } span { "end" }
                }
                @for (row, (what, branch)) in self.outline.rows.iter().enumerate() {
                    @match what {
                        What::Alike(members) => (self.row(row, members, branch.as_ref())),
                        What::Rest(members) => div .rest {
                            span.tree { (stem(branch.as_ref())) } (rest(self.forest.count(members)))
                        },
                    }
                }
                @if self.outline.hidden > 0 { div .rest { (rest(self.outline.hidden)) } }
            }
        }
    }

    fn row(&self, row: usize, members: &[usize], branch: Option<&Branch>) -> Markup {
        let Some(first) = members.first().copied() else {
            return html! {};
        };
        let process = &self.report.processes[first];
        let is_one = members.len() == 1;
        let lives = || {
            members
                .iter()
                .filter_map(|m| self.report.processes[*m].lifetime_ns())
        };
        let life = lives().min().zip(lives().max());
        let life = life.map_or_else(|| "-".to_owned(), |(low, high)| words::span(low, high));
        let peak = members
            .iter()
            .filter_map(|m| self.report.processes[*m].program_peak_rss_bytes())
            .max();
        let peak = peak.map_or_else(|| "-".to_owned(), |peak| Bytes(peak).to_string());
        html! {
            details id={ "r" (row) } {
                summary {
                    span.row {
                        span {
                            span.tree { (stem(branch)) }
                            span.name {
                                @if !is_one { (words::grouped(members.len() as u64)) " \u{d7} " }
                                (self.forest.labels[first])
                            }
                        }
                        span { @if is_one { (process.pid) } }
                        span { (life) }
                        span { (peak) }
                        span.bad { (self.forest.ends[first]) }
                    }
                }
                div .body { @if is_one { (self.details(first)) } @else { (self.members(members)) } }
            }
        }
    }

    fn members(&self, members: &[usize]) -> Markup {
        let more = members.len().saturating_sub(MEMBERS) as u64;
        html! {
            table {
                thead {
                    tr { th.number { "pid" } th.number { "start" } th.number { "lifetime" } th.number { "peak RSS" } th { "arguments" } }
                }
                tbody {
                    @for process in members.iter().take(MEMBERS).map(|m| &self.report.processes[*m]) {
                        tr {
                            td.number { (process.pid) }
                            td.number { (self.since_start(process.start_ns)) }
                            td.number { (process.lifetime_ns().map_or_else(|| "-".to_owned(), |ns| Nanos(ns).to_string())) }
                            td.number { (process.program_peak_rss_bytes().map_or_else(|| "-".to_owned(), |b| Bytes(b).to_string())) }
                            td.name { (process.images.last().and_then(arguments).unwrap_or_default()) }
                        }
                    }
                }
            }
            @if more > 0 { p.faint { "and " (words::grouped(more)) " more" } }
        }
    }

    fn details(&self, at: usize) -> Markup {
        let process = &self.report.processes[at];
        html! {
            dl {
                @for (term, text) in self.facts(process) { dt { (term) } dd { (text) } }
                @for image in &process.images {
                    @if let Some(arguments) = arguments(image) {
                        dt { "executed" }
                        dd.name { (arguments) }
                        @if let Some(directory) = say::directory(image) {
                            dt { "in the directory" }
                            dd.name { (directory) }
                        }
                    }
                }
                @for parent in process.parents.iter().skip(1) {
                    dt { "parent then" }
                    dd { (self.parent(*parent)) }
                }
                @for mark in &process.marks {
                    dt { "marked" }
                    dd { (escape(&mark.text.0)) ", " (self.since_start(mark.ns)) }
                }
            }
        }
    }

    fn facts(&self, process: &ProcessReport) -> Vec<(&'static str, String)> {
        let mut facts = vec![("start", self.since_start(process.start_ns))];
        if let Some(creator) = process.creator {
            let how = process.created_by.unwrap_or("not known how");
            let took = process
                .fork_ns
                .map(|ns| format!(", which took {}", Nanos(ns)));
            let took = took.unwrap_or_default();
            facts.push(("created", format!("by {} ({how}{took})", creator.pid)));
        }
        if let Some(role) = process.role {
            facts.push(("part", words::role(role).to_owned()));
        }
        if let Some(exit) = &process.exit {
            facts.push(("end", words::ended(exit)));
        }
        if let Some(threads) = process.threads_max {
            facts.push((
                "threads",
                format!("{} at once", words::grouped(u64::from(threads))),
            ));
        }
        if let Some(cpu) = process.cpu_ns {
            facts.push(("CPU time", Nanos(cpu).to_string()));
        }
        let shared = process
            .images
            .iter()
            .rev()
            .find_map(|image| image.shared_mm_with);
        if let Some(with) = shared {
            facts.push(("memory", format!("shared with {}", with.pid)));
        }
        if let Some(wait) = process
            .waits
            .iter()
            .max_by_key(|w| w.until_ns.saturating_sub(w.since_ns))
        {
            let call = wait
                .syscall
                .as_deref()
                .map_or_else(String::new, |call| format!(" in {call}"));
            let took = Nanos(wait.until_ns.saturating_sub(wait.since_ns));
            facts.push(("longest wait", format!("{took}{call}")));
        }
        facts
    }

    fn parent(&self, parent: ParentReport) -> String {
        let since = parent.ns.map(|ns| format!(", {}", self.since_start(ns)));
        let since = since.unwrap_or_else(|| ", since when is not known".to_owned());
        format!("{}{since}", parent.id.pid)
    }

    fn since_start(&self, ns: u64) -> String {
        match ns.checked_sub(say::origin(self.report)) {
            Some(since) => format!("{} after the start", Nanos(since)),
            None => "before the start".to_owned(),
        }
    }
}

fn stem(branch: Option<&Branch>) -> String {
    branch.map_or_else(String::new, |branch| branch.text(STEM))
}

fn rest(hidden: usize) -> String {
    let processes = words::count(hidden as u64, "more process", "more processes");
    format!("\u{2026} {processes}; --all shows them")
}

/// Arguments as a shell would read them; `None` if nothing was executed, or they were lost.
fn arguments(image: &ImageReport) -> Option<String> {
    let argv = image.argv.as_ref()?;
    let word = |word: &ByteText| say::word(&word.0);
    let mut words: Vec<String> = argv.iter().map(word).collect();
    if image.argv_truncated == Some(true) {
        words.push("\u{2026} (cut)".to_owned());
    }
    Some(words.join(" "))
}
