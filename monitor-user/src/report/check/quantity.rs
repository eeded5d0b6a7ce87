//! What can be compared.

use super::parted::{PARTED, Parted, counts, words};
use crate::{
    report::Report,
    units::{Bytes, Nanos, grouped},
};

/// A figure or word of a report.
#[derive(Debug)]
pub(super) struct Quantity {
    /// Its name in expectations.
    pub(super) name: &'static str,
    /// Its unit.
    pub(super) unit: Unit,
    /// What it is.
    pub(super) meaning: &'static str,
    /// Its values: one, or one for each pool.
    pub(super) of: fn(&Report) -> Vec<Known>,
}

/// In what it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Bytes,
    Time,
    Word,
}

impl Unit {
    /// As in a message.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Count => "a count, such as 0 or 12",
            Self::Bytes => "bytes, such as 8GiB or 512M",
            Self::Time => "time, such as 1.5s, 200ms or 2h",
            Self::Word => "a word, such as 'spawn'",
        }
    }
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// At least, and at most; `None`: there is no upper bound.
    Between(u64, Option<u64>),
    /// A word.
    Word(String),
    /// Nothing.
    Unknown,
}

/// All quantities.
const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "peak",
        unit: Unit::Bytes,
        meaning: "highest sum of RSS",
        of: |report| {
            let tree = &report.tree;
            let bound = tree.peak_rss_sum_bound_bytes.unwrap_or(0);
            let known = |rss: u64| {
                Known::Between(
                    rss.saturating_sub(bound),
                    most(report, rss.saturating_add(bound)),
                )
            };
            vec![tree.peak_rss_sum_bytes.map_or(Known::Unknown, known)]
        },
    },
    Quantity {
        name: "in_use",
        unit: Unit::Bytes,
        meaning: "highest memory in use, shared pages counted once",
        of: |report| {
            let low = report.tree.peak_unique_low_bytes.unwrap_or(0);
            let high = report
                .tree
                .max_unique_high_bytes
                .and_then(|high| most(report, high));
            vec![Known::Between(low, high)]
        },
    },
    Quantity {
        name: "charge",
        unit: Unit::Bytes,
        meaning: "highest charge of the command's own control group",
        of: |report| {
            let own = report
                .tree
                .charge
                .as_ref()
                .filter(|charge| charge.scope == Some("own"));
            let kept = own.and_then(|charge| charge.peak_bytes);
            // What was charged between two events isn't in what was seen at events.
            let seen = own.and_then(|charge| charge.peak_seen_bytes);
            vec![match (kept, seen) {
                (Some(kept), _) => exactly(kept),
                (None, Some(seen)) => Known::Between(seen, None),
                (None, None) => Known::Unknown,
            }]
        },
    },
    Quantity {
        name: "charge_scope",
        unit: Unit::Word,
        meaning: "whose charge it is: 'own', 'given' or 'shared'",
        of: |report| {
            let scope = report.tree.charge.as_ref().and_then(|charge| charge.scope);
            vec![scope.map_or(Known::Unknown, |scope| Known::Word(scope.to_owned()))]
        },
    },
    Quantity {
        name: "peak_vms",
        unit: Unit::Bytes,
        meaning: "highest sum of VMS",
        of: |report| {
            vec![
                report
                    .tree
                    .peak_vms_sum_bytes
                    .map_or(Known::Unknown, |vms| Known::Between(vms, most(report, vms))),
            ]
        },
    },
    Quantity {
        name: "process_peak",
        unit: Unit::Bytes,
        meaning: "highest RSS of a single program",
        of: |report| {
            let images = report.processes.iter().flat_map(|p| &p.images);
            let peaks = images
                .filter_map(|i| Some((i.peak_rss_bytes?, i.peak_rss_bound_bytes.unwrap_or(0))));
            let highest = peaks.max_by_key(|(rss, bound)| rss.saturating_add(*bound));
            let known = |(rss, bound): (u64, u64)| {
                Known::Between(
                    rss.saturating_sub(bound),
                    most(report, rss.saturating_add(bound)),
                )
            };
            vec![highest.map_or(Known::Unknown, known)]
        },
    },
    Quantity {
        name: "processes",
        unit: Unit::Count,
        meaning: "processes ever",
        of: |report| vec![at_least(report, report.tree.processes)],
    },
    Quantity {
        name: "live_processes",
        unit: Unit::Count,
        meaning: "most processes alive at once",
        of: |report| vec![at_least(report, report.tree.max_live_processes)],
    },
    Quantity {
        name: "depth",
        unit: Unit::Count,
        meaning: "most creators between a process and the command",
        of: |report| vec![at_least(report, report.tree.max_depth)],
    },
    Quantity {
        name: "threads_max",
        unit: Unit::Count,
        meaning: "most threads of one process at once",
        of: |report| {
            let threads = report.processes.iter().map(|p| p.threads_max);
            vec![match threads.collect::<Option<Vec<u32>>>() {
                Some(all) => at_least(report, all.into_iter().max().unwrap_or(0).into()),
                None => Known::Unknown,
            }]
        },
    },
    Quantity {
        name: "survivors",
        unit: Unit::Count,
        meaning: "processes that lived on after the command",
        of: |report| vec![known(report, report.tree.survivors)],
    },
    Quantity {
        name: "oom_kills",
        unit: Unit::Count,
        meaning: "processes that the OOM killer ended",
        of: |report| vec![known(report, report.tree.oom_kills)],
    },
    Quantity {
        name: "duration",
        unit: Unit::Time,
        meaning: "from the start of the command's process to its end",
        of: |report| {
            let root = report
                .processes
                .iter()
                .find(|p| Some(p.id()) == report.root);
            let took = root.and_then(|root| Some(root.end_ns?.saturating_sub(root.start_ns)));
            vec![took.map_or(Known::Unknown, exactly)]
        },
    },
    Quantity {
        name: "exit_code",
        unit: Unit::Count,
        meaning: "how the command ended; 128 and the signal for a death by signal",
        of: |report| {
            let code = report
                .recording
                .exit
                .as_ref()
                .and_then(|exit| exit.code.or(exit.signal.map(|signal| 128 + signal)));
            vec![code.map_or(Known::Unknown, |code| exactly(code.into()))]
        },
    },
    Quantity {
        name: "pools",
        unit: Unit::Count,
        meaning: "pools of workers",
        of: |report| vec![at_least(report, report.pools.len() as u64)],
    },
    Quantity {
        name: "pool.workers",
        unit: Unit::Count,
        meaning: "most workers of a pool alive at once; for each pool, as the next four",
        of: |report| counts(report, |pool| pool.workers_max),
    },
    Quantity {
        name: "pool.idle",
        unit: Unit::Count,
        meaning: "workers of a pool that never had anything to do",
        of: |report| counts(report, |pool| Some(pool.idle.as_ref()?.len() as u64)),
    },
    Quantity {
        name: "pool.start_method",
        unit: Unit::Word,
        meaning: "'fork', 'spawn', 'forkserver' or 'loky'; 'none' without a pool",
        of: |report| words(report, |pool| pool.start_method),
    },
    Quantity {
        name: "pool.kind",
        unit: Unit::Word,
        meaning: "'Pool', 'ProcessPoolExecutor' or 'loky'; 'none' without a pool",
        of: |report| words(report, |pool| Some(pool.kind)),
    },
    Quantity {
        name: "pool.start",
        unit: Unit::Word,
        meaning: "'eager' or 'on_demand'; 'none' without a pool",
        of: |report| words(report, |pool| Some(pool.start)),
    },
    Quantity {
        name: "lost_events",
        unit: Unit::Count,
        meaning: "events that are known to be missing",
        of: |report| vec![exactly(report.trust.lost_events)],
    },
];

fn exactly(n: u64) -> Known {
    Known::Between(n, Some(n))
}

/// What was counted, and more if the recording isn't complete.
pub(super) fn at_least(report: &Report, n: u64) -> Known {
    Known::Between(n, report.trust.complete.then_some(n))
}

fn known(report: &Report, n: Option<u64>) -> Known {
    n.map_or(Known::Unknown, |n| at_least(report, n))
}

/// An upper bound of memory, if no memory is missing.
pub(super) fn most(report: &Report, bytes: u64) -> Option<u64> {
    // This bound is there only if no event of memory was lost.
    let is_whole = report.tree.max_unique_high_bytes.is_some() && !report.recording.cut_short;
    let is_followed = !report
        .recording
        .missing_hooks
        .iter()
        .any(|hook| hook == "rss_stat");
    (is_whole && is_followed).then_some(bytes)
}

/// A quantity that was asked for.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// One of the whole report.
    Whole(&'static Quantity),
    /// One of what stands in brackets.
    Part(&'static Parted, String),
}

impl Asked {
    /// As it is written in an expectation.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Whole(quantity) => quantity.name.to_owned(),
            Self::Part(parted, part) => format!("{}[{part}]", parted.name),
        }
    }

    /// Its unit.
    pub(super) fn unit(&self) -> Unit {
        match self {
            Self::Whole(quantity) => quantity.unit,
            Self::Part(parted, _) => parted.unit,
        }
    }

    /// Its values.
    pub(super) fn of(&self, report: &Report) -> Vec<Known> {
        match self {
            Self::Whole(quantity) => (quantity.of)(report),
            Self::Part(parted, part) => (parted.of)(report, part),
        }
    }
}

/// The quantity of this name.
pub(super) fn find(name: &str) -> Option<Asked> {
    if let Some((name, rest)) = name.split_once('[') {
        let part = rest.strip_suffix(']')?;
        let mut parted = PARTED.iter();
        let parted = parted.find(|parted| parted.name == name && (parted.is_part)(part))?;
        return Some(Asked::Part(parted, part.to_owned()));
    }
    let whole = QUANTITIES.iter().find(|quantity| quantity.name == name);
    whole.map(Asked::Whole)
}

/// All names.
pub(super) fn names() -> String {
    let parted = PARTED.iter().map(|p| format!("{}[{}]", p.name, p.part));
    let names = QUANTITIES.iter().map(|q| q.name.to_owned());
    names.chain(parted).collect::<Vec<_>>().join(", ")
}

/// All quantities, with what they mean, a line for each.
pub fn quantities() -> String {
    let line = |name: &str, meaning: &str| format!("  {name:20}{meaning}\n");
    let whole = QUANTITIES.iter().map(|q| line(q.name, q.meaning));
    let parted = PARTED
        .iter()
        .map(|p| line(&format!("{}[{}]", p.name, p.part), p.meaning));
    whole.chain(parted).collect()
}

/// What is known, in words.
pub(super) fn told(known: &Known, unit: Unit) -> String {
    let number = |n: u64| match unit {
        Unit::Bytes => Bytes(n).to_string(),
        Unit::Time => Nanos(n).to_string(),
        Unit::Count | Unit::Word => grouped(n),
    };
    match known {
        Known::Unknown => "not known".to_owned(),
        Known::Word(word) => format!("'{word}'"),
        Known::Between(low, Some(high)) if number(*low) == number(*high) => number(*low),
        Known::Between(low, Some(high)) => {
            format!("between {} and {}", number(*low), number(*high))
        }
        Known::Between(low, None) => {
            format!("at least {}, and more may have been lost", number(*low))
        }
    }
}
