//! Quantities of a part of the report: those of pools, and those with a name in brackets (`findings[worker]`,
//! `process_peak[python3]`).

use super::{
    Denial,
    quantity::{Known, Unit, at_least, most},
};
use crate::report::{ImageReport, PoolReport, Report};

/// A figure of what is named in brackets.
#[derive(Debug)]
pub(super) struct Parted {
    /// Its name before the brackets.
    pub(super) name: &'static str,
    /// What stands in the brackets, for help.
    pub(super) part: &'static str,
    /// Its unit.
    pub(super) unit: Unit,
    /// What it is.
    pub(super) meaning: &'static str,
    /// Whether this may stand in the brackets.
    pub(super) is_part: fn(&str) -> bool,
    /// Its value.
    pub(super) of: fn(&Report, &str) -> Vec<Known>,
}

/// All of them.
pub(super) const PARTED: &[Parted] = &[
    Parted {
        name: "findings",
        part: "ID",
        unit: Unit::Count,
        meaning: "findings of an id, an area or a level and worse",
        is_part: |part| Denial::parse(part).is_ok(),
        of: findings,
    },
    Parted {
        name: "process_peak",
        part: "NAME",
        unit: Unit::Bytes,
        meaning: "highest RSS of a process while it was this program",
        is_part: |part| !part.is_empty(),
        of: program_peak,
    },
];

/// How often something was found. What is doubtful may be wrong, and what couldn't be assessed may be more.
fn findings(report: &Report, part: &str) -> Vec<Known> {
    let Ok(meant) = Denial::parse(part) else {
        return vec![Known::Unknown];
    };
    let (mut sure, mut doubtful, mut is_whole) = (0, 0, true);
    for finding in report.findings.iter().filter(|f| meant.means(f)) {
        match (finding.assessed, &finding.doubt) {
            (false, _) => is_whole = false,
            (true, Some(_)) => doubtful += 1,
            (true, None) => sure += 1,
        }
    }
    vec![Known::Between(sure, is_whole.then_some(sure + doubtful))]
}

fn program_peak(report: &Report, part: &str) -> Vec<Known> {
    let images = report.processes.iter().flat_map(|p| &p.images);
    let own: Vec<&ImageReport> = images.filter(|image| is_called(image, part)).collect();
    if own.is_empty() {
        return vec![Known::Between(0, most(report, 0))];
    }
    let peaks = own
        .iter()
        .filter_map(|i| Some((i.peak_rss_bytes?, i.peak_rss_bound_bytes.unwrap_or(0))));
    let highest = peaks.max_by_key(|(rss, bound)| rss.saturating_add(*bound));
    let known = |(rss, bound): (u64, u64)| {
        let high = most(report, rss.saturating_add(bound));
        Known::Between(rss.saturating_sub(bound), high)
    };
    vec![highest.map_or(Known::Unknown, known)]
}

/// Whether a program goes by this name: that of its file, of its process, or what the report calls it.
fn is_called(image: &ImageReport, name: &str) -> bool {
    let name = name.as_bytes();
    let base = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(name);
    let file = image.filename.as_ref().is_some_and(|file| base(&file.0));
    let comm = image.comm.as_ref().is_some_and(|comm| comm.0 == name);
    file || comm || image.program().is_some_and(|label| label.0 == name)
}

/// A word of each pool: `none` where there is no pool, if that is certain.
pub(super) fn words(report: &Report, of: fn(&PoolReport) -> Option<&'static str>) -> Vec<Known> {
    let known = |word: Option<&'static str>| match word {
        None | Some("unknown") => Known::Unknown,
        Some(word) => Known::Word(word.to_owned()),
    };
    match (report.pools.is_empty(), report.trust.complete) {
        (true, true) => vec![Known::Word("none".to_owned())],
        (true, false) => vec![Known::Unknown],
        (false, _) => report.pools.iter().map(|pool| known(of(pool))).collect(),
    }
}

/// A number of each pool: 0 where there is no pool.
pub(super) fn counts(report: &Report, of: fn(&PoolReport) -> Option<u64>) -> Vec<Known> {
    if report.pools.is_empty() {
        return vec![at_least(report, 0)];
    }
    let known = |n: Option<u64>| n.map_or(Known::Unknown, |n| at_least(report, n));
    report.pools.iter().map(|pool| known(of(pool))).collect()
}
