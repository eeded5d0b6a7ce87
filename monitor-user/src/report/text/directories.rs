//! Working directories: in pipelines they name the task.

use super::{Style, TextOptions};
use crate::report::{
    Report,
    escape::{shorten, shorten_left},
    forest::Forest,
    say, words,
};

/// Directories that are listed, unless all is wanted.
const SHOWN: usize = 20;
/// Processes that are named for each.
const NAMED: usize = 3;

/// Directories other than the command's, in order of time, each with the processes that executed their last program
/// there; nothing if there is none.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let last = |at: usize| report.processes[at].images.last();
    let root =
        (0..report.processes.len()).find(|at| Some(report.processes[*at].id()) == report.root);
    let usual = root.and_then(|at| say::directory(report.processes[at].images.first()?));
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for at in 0..report.processes.len() {
        let image = last(at).filter(|image| image.how == "exec");
        let Some(path) = image
            .and_then(say::directory)
            .filter(|path| Some(path) != usual.as_ref())
        else {
            continue;
        };
        let place = *places.entry(path.clone()).or_insert_with(|| {
            all.push((path, Vec::new()));
            all.len() - 1
        });
        all[place].1.push(at);
    }
    if all.is_empty() {
        return Vec::new();
    }
    let hidden = if options.all {
        0
    } else {
        all.len().saturating_sub(SHOWN)
    };
    let mut out = vec![options.paint(Style::Heading, "WORKING DIRECTORIES")];
    if let Some(usual) = usual {
        let usual = format!("  other than the command's, {usual}");
        out.push(options.paint(Style::Faint, &shorten(&usual, options.columns())));
    }
    for (path, members) in &all[..all.len() - hidden] {
        // What a path ends with tells more than what it begins with.
        out.push(format!("  {}", shorten_left(path, options.columns() - 2)));
        out.push(shorten(
            &format!("    {}", named(report, forest, members)),
            options.columns(),
        ));
    }
    if hidden > 0 {
        let more = words::count(hidden as u64, "more directory", "more directories");
        out.push(options.paint(Style::Faint, &format!("  {more}: --all shows them")));
    }
    out
}

/// "python3 a.py (pid 12), sh (pid 13) and 5 more".
pub(super) fn named(report: &Report, forest: &Forest, members: &[usize]) -> String {
    let first = members.iter().take(NAMED);
    let names: Vec<String> = first
        .map(|at| format!("{} (pid {})", forest.labels[*at], report.processes[*at].pid))
        .collect();
    let names = names.join(", ");
    match members.len().saturating_sub(NAMED) {
        0 => names,
        more => format!("{names} and {} more", words::grouped(more as u64)),
    }
}
