//! Moments that were marked.

use super::{Style, TextOptions};
use crate::{
    report::{
        MarkReport, Report,
        escape::{escape, right, shorten},
        forest::Forest,
        say, words,
    },
    units::Nanos,
};

/// Marks that are listed, unless all is wanted.
const SHOWN: usize = 20;
/// Columns of a time.
const TIME: usize = 10;

/// Marks in order of time, each with the process that made it; nothing if there is none.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let processes = report.processes.iter().enumerate();
    let mut marks: Vec<(usize, &MarkReport)> = processes
        .flat_map(|(at, process)| process.marks.iter().map(move |mark| (at, mark)))
        .collect();
    if marks.is_empty() {
        return Vec::new();
    }
    marks.sort_by_key(|(at, mark)| (mark.ns, *at));
    let all = marks.len();
    if !options.all {
        marks.truncate(SHOWN);
    }
    let mut out = vec![options.paint(Style::Heading, "MARKS")];
    let start = say::origin(report);
    for (at, mark) in &marks {
        let time = Nanos(mark.ns.saturating_sub(start)).to_string();
        let (pid, name) = (report.processes[*at].pid, &forest.labels[*at]);
        let line = format!(
            "  {} {} (pid {pid}, {name})",
            right(&time, TIME),
            escape(&mark.text.0)
        );
        out.push(shorten(&line, options.columns()));
    }
    let more = (all - marks.len()) as u64;
    if more > 0 {
        let more = words::count(more, "more mark", "more marks");
        out.push(options.paint(Style::Faint, &format!("  {more}: --all shows them")));
    }
    out
}
