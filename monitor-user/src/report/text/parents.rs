//! Processes that lost their parent and lived on with another one.

use std::collections::HashMap;

use super::{Style, TextOptions, directories::named};
use crate::{
    report::{
        Id, ProcessReport, Report,
        escape::{right, shorten},
        forest::Forest,
        say, words,
    },
    units::Nanos,
};

/// Changes that are listed, unless all is wanted.
const SHOWN: usize = 20;
/// Columns of a time.
const TIME: usize = 10;
/// Who ends so soon after its parent isn't worth a line, ns.
const WORTH_NS: u64 = 250_000_000;

/// Who got whose children, in order of time; nothing if nobody lived on with another parent.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let mut changes: Vec<(Change, Vec<usize>)> = Vec::new();
    let mut places = HashMap::new();
    for (at, process) in report.processes.iter().enumerate() {
        for pair in process.parents.windows(2) {
            let change = Change {
                ns: pair[1].ns,
                before: pair[0].id,
                after: pair[1].id,
            };
            let end_ns = process.end_ns.zip(change.ns);
            let lived_ns = end_ns.map(|(end, since)| end.saturating_sub(since));
            if options.all || lived_ns.is_none_or(|ns| ns >= WORTH_NS) {
                let place = *places.entry(change).or_insert_with(|| {
                    changes.push((change, Vec::new()));
                    changes.len() - 1
                });
                changes[place].1.push(at);
            }
        }
    }
    if changes.is_empty() {
        return Vec::new();
    }
    changes.sort_by_key(|(change, _)| change.ns.unwrap_or(u64::MAX));
    let ids = report.processes.iter().map(ProcessReport::id);
    let processes: HashMap<Id, usize> = ids.zip(0..).collect();
    let (all, start) = (changes.len(), say::origin(report));
    let mut out = vec![options.paint(Style::Heading, "OTHER PARENTS")];
    let shown = if options.all { all } else { SHOWN };
    for (change, members) in changes.iter().take(shown) {
        let since = change.ns.map(|ns| Nanos(ns.saturating_sub(start)));
        let time = since.map_or_else(|| "-".to_owned(), |since| since.to_string());
        let line = format!(
            "  {} {}: to {} from {}",
            right(&time, TIME),
            named(report, forest, members),
            who(&processes, forest, change.after),
            who(&processes, forest, change.before),
        );
        out.push(shorten(&line, options.columns()));
    }
    let more = all.saturating_sub(shown) as u64;
    if more > 0 {
        let more = words::count(more, "more change", "more changes");
        out.push(options.paint(Style::Faint, &format!("  {more}: --all shows them")));
    }
    out
}

/// One parent's children that another one got.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Change {
    /// `None`: since when isn't known.
    ns: Option<u64>,
    before: Id,
    after: Id,
}

/// "sh run.sh (pid 12)", or "pid 1" of a process that isn't in the report.
fn who(places: &HashMap<Id, usize>, forest: &Forest, id: Id) -> String {
    places.get(&id).map_or_else(
        || format!("pid {}", id.pid),
        |at| format!("{} (pid {})", forest.labels[*at], id.pid),
    )
}
