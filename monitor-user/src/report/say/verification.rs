//! What a recording that checked itself has found, in words.

use crate::{
    event::{Difference, Skipped, Verification},
    report::{
        ChargeReport,
        say::{Sentence, bad, good},
        words,
    },
    units::{Bytes, Nanos},
};

/// The kernel charges ahead by up to this many pages for each CPU (`MEMCG_CHARGE_BATCH`, less before 6.1), and notes a
/// new peak without a lock, so that of two CPUs the one with less may come last (`page_counter_try_charge`).
const CHARGED_AHEAD: u64 = 64;

/// Differences that are told one by one.
const TOLD: usize = 3;

/// How many values were compared and what came of it, and each difference that is more than it may be.
///
/// `start_ns`: of the recording, since boot.
pub(in crate::report) fn result(found: &Verification, start_ns: u64) -> Vec<Sentence> {
    let mut out = vec![summary(found)];
    let told = found.shown.iter().take(TOLD);
    out.extend(told.map(|difference| bad(differs(difference, start_ns))));
    out
}

/// The control group's own peak beside the highest charge that was recorded; `None` where either isn't known, or the
/// kernel's may be of before the recording. `page_size`: bytes.
pub(in crate::report) fn group(
    charge: &ChargeReport,
    cpus: u32,
    page_size: u64,
) -> Option<Sentence> {
    let slack = CHARGED_AHEAD * u64::from(cpus) * page_size;
    let (kernel, seen) = (charge.peak_bytes?, charge.peak_seen_bytes?);
    let begin = format!(
        "The control group's own peak is {} bytes, the highest charge that was recorded {}: ",
        words::grouped(kernel),
        words::grouped(seen)
    );
    Some(match kernel.checked_sub(seen) {
        Some(0) => good(format!("{begin}the same.")),
        Some(less) => good(format!(
            "{begin}{} less, charged between two events.",
            words::grouped(less)
        )),
        None if seen - kernel <= slack => good(format!(
            "{begin}{} more, of at most {} by which the kernel's may be too low.",
            words::grouped(seen - kernel),
            words::grouped(slack)
        )),
        None => bad(format!(
            "{begin}{} more than there ever was.",
            words::grouped(seen - kernel)
        )),
    })
}

/// What else is to be known about that.
pub(in crate::report) fn details(found: &Verification, highest_rss: Option<u64>) -> Vec<Sentence> {
    let mut out = Vec::new();
    if found.status_is_approximate {
        let text = "RSS by kind in /proc/PID/status is itself approximate on this kernel, so it is compared with that \
                    bound too; smaps_rollup is exact.";
        out.push(good(text.to_owned()));
    }
    out.extend(skipped(found.skipped).map(good));
    if let (Some(kernel), Some(highest)) = (found.max_rss_bytes, highest_rss) {
        out.push(good(format!(
            "For information: highest RSS of one process by the kernel's own account (ru_maxrss) {}, recorded {}. \
             The kernel's is approximate, counts rtrace's own copy that executed the command, and leaves out who wasn't \
             reaped.",
            Bytes(kernel),
            Bytes(highest)
        )));
    }
    out
}

fn summary(found: &Verification) -> Sentence {
    if found.points == 0 {
        let text = "Checked against /proc: nothing was compared, no process was quiet when it was looked at.";
        return bad(text.to_owned());
    }
    let points = words::count(found.points, "quiet point", "quiet points");
    let values = words::count(found.values(), "value", "values");
    let begin = format!("Checked against /proc at {points} ({values}): ");
    match &found.largest {
        _ if found.beyond > 0 => bad(format!(
            "{begin}{} by more than {} may.",
            words::count(found.beyond, "value differs", "values differ"),
            if found.beyond == 1 { "it" } else { "they" }
        )),
        None => good(format!("{begin}largest difference 0 bytes.")),
        Some(largest) => good(format!(
            "{begin}largest difference {} bytes, of at most {} that there may be.",
            words::grouped(largest.bytes()),
            words::grouped(largest.bound_bytes)
        )),
    }
}

fn differs(difference: &Difference, start_ns: u64) -> String {
    let source = if difference.quantity == "rss" {
        "smaps_rollup"
    } else {
        "status"
    };
    let pid = difference.pid;
    format!(
        "pid {pid}, {}, {} after the start: recorded {} bytes, /proc/{pid}/{source} says {}; they may differ by {}.",
        difference.quantity,
        Nanos(difference.time_ns.saturating_sub(start_ns)),
        words::grouped(difference.recorded_bytes),
        words::grouped(difference.proc_bytes),
        words::grouped(difference.bound_bytes),
    )
}

fn skipped(skipped: Skipped) -> Option<String> {
    let parts = [
        (skipped.busy, "at a process that changed meanwhile"),
        (skipped.unsettled, "with a difference that did not last"),
        (skipped.gone, "at a process that ended or became another"),
        (skipped.refused, "not permitted"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", words::grouped(*n)))
        .collect();
    let looks = "Looks that could not be compared, or not in full";
    (!parts.is_empty()).then(|| format!("{looks}: {}.", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::event::{Charge, Compared};

    fn found() -> Verification {
        let compared = Compared {
            values: 132,
            ..Compared::default()
        };
        let names = ["anon", "file", "shmem", "swap", "vms", "rss"];
        Verification {
            points: 132,
            quantities: names.map(|name| (name.to_owned(), compared)).into(),
            ..Verification::default()
        }
    }

    fn difference(quantity: &str, bound_bytes: u64) -> Difference {
        Difference {
            pid: 42,
            start_ns: 5,
            time_ns: 1_500_000_000,
            quantity: quantity.to_owned(),
            recorded_bytes: 8192,
            proc_bytes: 1_052_672,
            bound_bytes,
        }
    }

    fn texts(sentences: &[Sentence]) -> Vec<&str> {
        sentences.iter().map(|s| s.text.as_str()).collect()
    }

    #[test]
    fn what_agrees_is_told_in_one_sentence() {
        let said = result(&found(), 0);
        let expected =
            "Checked against /proc at 132 quiet points (792 values): largest difference 0 bytes.";
        assert_eq!(texts(&said), [expected]);
        assert!(!said[0].is_bad);
        assert_eq!(details(&found(), None), []);
    }

    #[test]
    fn a_difference_within_its_bound_is_told_with_it() {
        let found = Verification {
            largest: Some(difference("anon", 2 << 20)),
            ..found()
        };
        let said = result(&found, 0);
        assert!(!said[0].is_bad);
        let end = "largest difference 1,044,480 bytes, of at most 2,097,152 that there may be.";
        assert!(said[0].text.ends_with(end), "{}", said[0].text);
    }

    #[test]
    fn each_difference_beyond_its_bound_has_process_value_and_what_each_said() {
        let found = Verification {
            largest: Some(difference("anon", 0)),
            beyond: 7,
            shown: vec![difference("anon", 0), difference("rss", 0)],
            ..found()
        };
        let said = result(&found, 500_000_000);
        assert!(said.iter().all(|sentence| sentence.is_bad));
        assert_eq!(
            texts(&said),
            [
                "Checked against /proc at 132 quiet points (792 values): 7 values differ by more than they may.",
                "pid 42, anon, 1.0 s after the start: recorded 8,192 bytes, /proc/42/status says 1,052,672; they may \
                 differ by 0.",
                "pid 42, rss, 1.0 s after the start: recorded 8,192 bytes, /proc/42/smaps_rollup says 1,052,672; \
                 they may differ by 0.",
            ]
        );
    }

    #[test]
    fn the_groups_own_peak_is_told_beside_the_recorded_one() {
        let mut charge = ChargeReport::new(&Charge {
            version: 1,
            ..Charge::default()
        });
        // 64 pages of a byte each.
        let told = |charge: &ChargeReport| group(charge, 1, 1);
        assert_eq!(told(&charge), None);
        charge.peak_bytes = Some(5000);
        assert_eq!(told(&charge), None);
        for (seen, end, is_bad) in [
            (5000, "recorded 5,000: the same.", false),
            (
                3999,
                "recorded 3,999: 1,001 less, charged between two events.",
                false,
            ),
            (
                5064,
                "recorded 5,064: 64 more, of at most 64 by which the kernel's may be too low.",
                false,
            ),
            (5065, "recorded 5,065: 65 more than there ever was.", true),
        ] {
            charge.peak_seen_bytes = Some(seen);
            let said = told(&charge).unwrap();
            let expected = format!(
                "The control group's own peak is 5,000 bytes, the highest charge that was {end}"
            );
            assert_eq!((said.text, said.is_bad), (expected, is_bad));
        }
    }

    #[test]
    fn that_nothing_could_be_compared_is_no_good_news() {
        let found = Verification {
            quantities: BTreeMap::new(),
            points: 0,
            skipped: Skipped {
                busy: 1200,
                gone: 2,
                ..Skipped::default()
            },
            ..found()
        };
        let said = result(&found, 0);
        assert!(said[0].is_bad && said[0].text.contains("nothing was compared"));
        assert_eq!(
            texts(&details(&found, None)),
            [
                "Looks that could not be compared, or not in full: 1,200 at a process that changed meanwhile, 2 at a \
              process that ended or became another."
            ]
        );
    }
}
