//! What is said of a pool of workers.

use crate::{
    report::{PoolReport, Report, escape::shorten, forest::Forest, words},
    units::Bytes,
};

/// Columns of the owner's name.
const NAME: usize = 24;

/// A process with so many threads at once works by threads.
const THREADS: u32 = 3;

/// That there are no workers, where somebody may look for them: a process has threads instead.
pub(in crate::report) fn threads_only(report: &Report, forest: &Forest) -> Option<String> {
    let threads = |at: &usize| report.processes[*at].threads_max;
    // Of several with as many the first.
    let at = (0..report.processes.len())
        .rev()
        .max_by_key(|at| threads(at))?;
    let most = threads(&at).filter(|most| *most >= THREADS)?;
    Some(format!(
        "no pool of processes was seen; {} (pid {}) had {} threads at once",
        shorten(&forest.labels[at], NAME),
        report.processes[at].pid,
        words::grouped(most.into())
    ))
}

/// What it is and whose.
pub(in crate::report) fn pool_title(report: &Report, forest: &Forest, pool: &PoolReport) -> String {
    format!("{} of {}", what(pool), owner(report, forest, pool))
}

fn what(pool: &PoolReport) -> String {
    let kind = match pool.kind {
        "Pool" => "multiprocessing.Pool",
        "unknown" => "workers",
        kind => kind,
    };
    match pool.start_method {
        Some(method) if method != kind => format!("{kind} ({method})"),
        _ => kind.to_owned(),
    }
}

fn owner(report: &Report, forest: &Forest, pool: &PoolReport) -> String {
    let at = report.processes.iter().position(|p| p.id() == pool.owner);
    let name = at.map_or_else(String::new, |at| {
        format!("{} ", shorten(&forest.labels[at], NAME))
    });
    format!("{name}(pid {})", pool.owner.pid)
}

/// How many workers it had, and what became of them.
pub(in crate::report) fn pool_facts(pool: &PoolReport) -> Vec<String> {
    let mut facts = vec![words::count(pool.workers_total, "worker", "workers")];
    if let Some(most) = pool.workers_max.filter(|most| *most != pool.workers_total) {
        facts.push(format!("{} at once", words::grouped(most)));
    }
    match pool.start {
        "eager" => facts.push("all made before the first task".to_owned()),
        "on_demand" => facts.push("made as tasks came".to_owned()),
        _ => {}
    }
    if let Some(idle) = &pool.idle {
        let idle = idle.len() as u64;
        if idle > 0 {
            let bytes = pool.idle_bytes_at_peak.filter(|bytes| *bytes > 0);
            let bytes = bytes.map(|bytes| format!(" ({} RSS at the peak)", Bytes(bytes)));
            let bytes = bytes.unwrap_or_default();
            facts.push(format!(
                "{} never gave a result{bytes}",
                words::grouped(idle)
            ));
        }
    }
    for (count, words) in [
        (pool.recycled, "ended by plan and followed by another"),
        (pool.replaced, "died and replaced"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            facts.push(format!("{} {words}", words::grouped(count)));
        }
    }
    facts
}
