//! What programs did: CPU time, faults, bytes read and written.

use std::collections::BTreeMap;

use super::{Style, TextOptions};
use crate::{
    report::{
        ProcessReport, Report,
        escape::{left, right, shorten},
        forest::Forest,
        words,
    },
    units::{Bytes, Nanos},
};

/// Programs listed.
const PROGRAMS: usize = 5;

const CPU: usize = 10;
const SHARE: usize = 8;
const BYTES: usize = 10;

/// Sums over the processes that ended as one program.
#[derive(Default)]
struct Work {
    cpu_ns: u64,
    system_ns: u64,
    read: u64,
    written: u64,
}

/// Programs by CPU time, with what else they did; nothing if of no process anything is known.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let is_known = |p: &&ProcessReport| p.user_ns.is_some();
    let known = report.processes.iter().filter(is_known).count();
    if known == 0 {
        return Vec::new();
    }
    let room = options.columns() - 4 - CPU - SHARE - 2 * BYTES;
    let row = |name: &str, cpu: &str, share: &str, read: &str, written: &str| {
        format!(
            "{}{}{}{}{}",
            left(&shorten(name, room), room),
            right(cpu, CPU),
            right(share, SHARE),
            right(read, BYTES),
            right(written, BYTES),
        )
    };
    let heading = options.paint(Style::Heading, "WORK");
    let mut out = vec![heading];
    let names = row("programs by CPU time", "CPU", "kernel", "read", "written");
    out.push(format!("  {names}"));
    for (name, work) in programs(report, forest) {
        let percent = (work.system_ns.saturating_mul(100) + work.cpu_ns / 2)
            .checked_div(work.cpu_ns)
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
        let line = row(
            &name,
            &Nanos(work.cpu_ns).to_string(),
            &percent,
            &Bytes(work.read).to_string(),
            &Bytes(work.written).to_string(),
        );
        out.push(format!("    {}", line.trim_end()));
    }
    let faults = report.processes.iter().filter_map(|p| p.faults_major);
    let faults: u64 = faults.sum();
    if faults > 0 {
        let faults = words::count(faults, "page fault", "page faults");
        out.push(format!("  {faults} had to wait for storage"));
    }
    let missing = report.processes.len() - known;
    if missing > 0 {
        let processes = words::count(missing as u64, "process", "processes");
        out.push(format!(
            "  not counted: {processes} of which no reaping was seen"
        ));
    }
    out
}

/// The programs that used most CPU time. A process counts as the last program that it was.
fn programs(report: &Report, forest: &Forest) -> Vec<(String, Work)> {
    let mut all: BTreeMap<String, Work> = BTreeMap::new();
    for (n, process) in report.processes.iter().enumerate() {
        let (Some(user), Some(system)) = (process.user_ns, process.system_ns) else {
            continue;
        };
        let name = process.images.last().map(|image| forest.program(n, image));
        let work = all.entry(name.unwrap_or_default()).or_default();
        work.cpu_ns = work.cpu_ns.saturating_add(user).saturating_add(system);
        work.system_ns = work.system_ns.saturating_add(system);
        work.read = work.read.saturating_add(process.read_chars.unwrap_or(0));
        work.written = work
            .written
            .saturating_add(process.written_chars.unwrap_or(0));
    }
    let mut all: Vec<_> = all.into_iter().collect();
    // The map has sorted by name, so equals stay in that order.
    all.sort_by_key(|(_, work)| std::cmp::Reverse(work.cpu_ns));
    all.truncate(PROGRAMS);
    all
}
