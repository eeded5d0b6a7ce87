//! Compares a report with what a witness saw.

use super::Tree;
use crate::{
    differences::Differences,
    report::{Process, Report},
};

/// All differences between some processes of a report and a witness's tree whose root is `top`.
pub fn compare(report: &Report, processes: &[&Process], tree: &Tree, top: u32) -> Differences {
    let mut found = Differences::default();
    for (pid, seen) in tree {
        let what = |part: &str| format!("pid {pid}, {part}");
        let matching: Vec<_> = processes
            .iter()
            .filter(|process| process.pid == *pid)
            .collect();
        let [process] = matching.as_slice() else {
            found.add(format!(
                "pid {pid} ({:?}) is {} times in the report",
                seen.execs,
                matching.len()
            ));
            continue;
        };
        if *pid != top {
            found.same(
                what("creator"),
                process.creator.map(|creator| creator.pid),
                seen.creator,
            );
        }
        found.same(what("threads"), process.threads_created, Some(seen.threads));
        found.same(what("ended"), process.end_ns.is_some(), seen.ended);
        if seen.ended {
            found.same(what("exit code"), process.code(), seen.code);
            found.same(what("signal"), process.signal(), seen.signal);
        }
        let execs: Vec<_> = process.execs().collect();
        found.same(what("number of execs"), execs.len(), seen.execs.len());
        for (image, exec) in execs.iter().zip(&seen.execs) {
            found.same(what("file"), image.filename.as_ref(), Some(&exec.filename));
            if exec.argv.is_some() {
                found.same(what("arguments"), image.argv.as_ref(), exec.argv.as_ref());
            }
        }
    }
    for process in processes {
        if !tree.contains_key(&process.pid) {
            found.add(format!(
                "pid {} ({:?}) is in the report only",
                process.pid, process.comm
            ));
        }
    }
    found.same("lost events", report.trust.lost_events, 0);
    found
}
