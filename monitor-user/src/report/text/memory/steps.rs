//! How mappings grew.

use super::SIZE;
use crate::{
    report::{
        Id, Report, StepReport,
        escape::{left, shorten, wrap},
        forest::Forest,
        holders::image_at,
        say,
        text::TextOptions,
        words,
    },
    units::{Bytes, Nanos},
};

/// Steps told without being asked for all: the largest, of which many tell the same.
const STEPS: usize = 3;
/// Smaller steps than this part of the highest sum of VMS explain nothing.
const SMALL: u64 = 20;

/// The largest steps in which mapped memory grew.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let whole = report.tree.peak_vms_sum_bytes.unwrap_or(0);
    let matters = |step: &&StepReport| options.all || step.bytes >= whole / SMALL;
    let most = if options.all { usize::MAX } else { STEPS };
    // Forks of one process by the same size are one line.
    let mut lines: Vec<(&StepReport, u64)> = Vec::new();
    for step in report.tree.vms_steps.iter().filter(matters) {
        let is_same = |(other, _): &&mut (&StepReport, u64)| {
            !options.all
                && other.how == "forked"
                && step.how == "forked"
                && other.bytes == step.bytes
        };
        match lines.iter_mut().find(is_same) {
            Some((_, times)) => *times += 1,
            None => lines.push((step, 1)),
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let columns = options.columns();
    let mut out = vec!["  largest steps of mapped memory (VMS)".to_owned()];
    for (step, times) in lines.into_iter().take(most) {
        let size = format!("+{}", Bytes(step.bytes));
        let since = Nanos(step.ns.saturating_sub(say::origin(report)));
        let text = format!(
            "    {}{}",
            left(&size, SIZE + 2),
            told(report, forest, step, times)
        );
        out.extend(wrap(
            &format!("{text}, {since} after the start"),
            columns,
            4 + SIZE + 2,
        ));
    }
    out
}

fn told(report: &Report, forest: &Forest, step: &StepReport, times: u64) -> String {
    let place = |id: Option<Id>| report.processes.iter().position(|p| Some(p.id()) == id);
    let name = |n: usize| {
        let process = &report.processes[n];
        let image = image_at(process, step.ns).map(|at| &process.images[at]);
        let name = image.map(|image| forest.program(n, image));
        shorten(&name.unwrap_or_default(), 30)
    };
    let Some(n) = place(step.process) else {
        return "a process that is not known".to_owned();
    };
    let process = &report.processes[n];
    let thread = step.tid.filter(|tid| *tid != process.pid);
    let thread = thread.map_or_else(String::new, |tid| format!(", thread {tid}"));
    let who = || format!("{} (pid {}{thread})", name(n), process.pid);
    match step.how {
        "forked" => {
            let from = place(process.creator).map_or_else(
                || "a process that is not known".to_owned(),
                |n| format!("{} (pid {})", name(n), report.processes[n].pid),
            );
            let times = if times > 1 {
                format!(", {} times", words::grouped(times))
            } else {
                String::new()
            };
            format!("copied by a fork of {from}{times}")
        }
        "executed" => format!("executed: {}", who()),
        _ => {
            let what = match step.part {
                Some("data") => "private data",
                Some("stack") => "stack",
                Some("exec") => "code",
                Some(_) => "shared, read-only or reserved",
                None => "memory",
            };
            format!("mapped {what}: {}", who())
        }
    }
}
