//! Who was killed for memory.

use super::forest::Forest;
use crate::{
    report::{
        OomReport, Report,
        escape::{escape, shorten},
        words,
    },
    units::Bytes,
};

/// Victims that are told of one by one.
const SHOWN: usize = 3;
/// Columns of a name.
const NAME: usize = 40;

/// A line for each of the first victims, and one for the rest.
pub(super) fn lines(report: &Report, forest: &Forest) -> impl Iterator<Item = String> {
    let victims = report.processes.iter().zip(&forest.labels);
    let mut lines: Vec<String> = victims
        .filter(|(process, _)| {
            process
                .exit
                .as_ref()
                .is_some_and(|exit| exit.oom == Some(true))
        })
        .filter_map(|(process, label)| {
            let oom = process.oom.as_ref()?;
            let name = shorten(label, NAME);
            Some(format!("{name} (pid {}) {}", process.pid, killed(oom)))
        })
        .collect();
    let rest = lines.split_off(lines.len().min(SHOWN)).len() as u64;
    if rest > 0 {
        let more = words::count(rest, "more process was", "more processes were");
        lines.push(format!("{more} killed by the OOM killer"));
    }
    lines.into_iter()
}

fn killed(oom: &OomReport) -> String {
    let memory = match (oom.rss_bytes, oom.rss_anon_bytes) {
        (Some(rss), Some(anon)) => {
            format!(
                " with {} RSS, of which {} anonymous",
                Bytes(rss),
                Bytes(anon)
            )
        }
        _ => String::new(),
    };
    let limit = oom.limit_bytes.map(|limit| format!(" of {}", Bytes(limit)));
    let limit = limit.unwrap_or_default();
    let cause = match (oom.scope, &oom.cgroup) {
        (Some("cgroup"), Some(name)) => {
            let name = shorten(&escape(name.as_bytes()), NAME);
            format!(": control group {name} had reached its limit{limit}")
        }
        (Some("cgroup"), None) => format!(": a control group had reached its limit{limit}"),
        (Some(_), _) => ": the host had no memory left".to_owned(),
        (None, _) => "; what had run out is not known".to_owned(),
    };
    format!("was killed by the OOM killer{memory}{cause}")
}
