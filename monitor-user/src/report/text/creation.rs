//! What making processes took.

use super::{Style, TextOptions};
use crate::{
    report::{
        ProcessReport, Report,
        escape::{right, shorten},
        forest::Forest,
        words,
    },
    units::{Bytes, Nanos},
};

/// Creations that are listed, the longest ones.
const SHOWN: usize = 3;
/// Columns of a time.
const TIME: usize = 10;
/// A call that took less than this isn't worth a line of its own, ns.
const WORTH_NS: u64 = 1_000_000;

/// How long the kernel was at it, and the longest calls with what there was to copy; nothing if none took a
/// millisecond.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let processes = report.processes.iter().enumerate();
    let mut calls: Vec<(u64, usize)> = processes
        .filter_map(|(at, process)| Some((process.fork_ns?, at)))
        .collect();
    calls.sort_by_key(|(ns, at)| (std::cmp::Reverse(*ns), *at));
    let Some((longest, _)) = calls.first().filter(|(ns, _)| *ns >= WORTH_NS) else {
        return Vec::new();
    };
    let all: u64 = calls.iter().fold(0, |sum, (ns, _)| sum.saturating_add(*ns));
    let (median, _) = calls[calls.len() / 2];
    let mut out = vec![options.paint(Style::Heading, "CREATION")];
    let sum = format!(
        "  {} took the kernel {}: each {} (median) to {}",
        words::count(
            calls.len() as u64,
            "call that made a process",
            "calls that made processes"
        ),
        Nanos(all),
        Nanos(median),
        Nanos(*longest),
    );
    out.push(shorten(&sum, options.columns()));
    for (ns, at) in calls.iter().take(SHOWN).filter(|(ns, _)| *ns >= WORTH_NS) {
        let time = right(&Nanos(*ns).to_string(), TIME);
        let process = &report.processes[*at];
        let line = format!("  {time} {}", made(report, forest, process));
        out.push(shorten(&line, options.columns()));
    }
    out
}

/// "pid 12, page tables 1.1 MiB, RSS 510 MiB, VMS 1.2 GiB, 3 threads: by python3 a.py (pid 10)".
fn made(report: &Report, forest: &Forest, process: &ProcessReport) -> String {
    let mut parts = vec![format!("pid {}", process.pid)];
    for (name, bytes) in [
        ("page tables", process.creator_page_tables_bytes),
        ("RSS", process.creator_rss_bytes),
        ("VMS", process.creator_vms_bytes),
    ] {
        if let Some(bytes) = bytes {
            parts.push(format!("{name} {}", Bytes(bytes)));
        }
    }
    if let Some(threads) = process.creator_threads.filter(|threads| *threads > 1) {
        parts.push(format!("{threads} threads"));
    }
    let creator = process.creator.and_then(|id| {
        let at = report.processes.iter().position(|p| p.id() == id)?;
        Some(format!(": by {} (pid {})", forest.labels[at], id.pid))
    });
    parts.join(", ") + &creator.unwrap_or_default()
}
