//! How far figures of a recording may be from the truth.

use crate::{
    event::Recording,
    model::{InUse, Summary},
};

/// RSS is the sum of this many counters (anonymous, file, shared memory), each with its own error.
pub const KINDS: u64 = 3;

/// How far one RSS counter of a process may be from the truth, bytes.
pub fn counter_bound(recording: &Recording, threads: u32) -> u64 {
    if recording.rss_bound_per_thread {
        recording
            .rss_bound_bytes
            .saturating_mul(threads.max(1).into())
    } else {
        recording.rss_bound_bytes
    }
}

/// How far a sum of RSS over some address spaces may be from the truth, bytes, where it comes from rows:
/// each counter by its own error, with the most threads that a process had, and by what may change before a
/// row is due.
pub fn sum_bound(recording: &Recording, rss: u64, spaces: u64, threads: u32) -> u64 {
    let each = counter_bound(recording, threads).saturating_add(recording.resolution_bytes);
    let share = rss.checked_div(recording.resolution_share).unwrap_or(0);
    each.saturating_mul(spaces)
        .saturating_add(share)
        .saturating_mul(KINDS)
}

/// Memory really in use, bytes: at least, and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// At least this.
    pub low: u64,
    /// At most this.
    pub high: u64,
}

/// Bounds of the memory that was really in use at the highest sum of RSS. `None` if memory was lost, or none seen.
pub fn unique_at_peak(summary: &Summary, recording: &Recording, spaces: u64) -> Option<Unique> {
    let (peak, sum) = (summary.peak()?, sum_peak(summary, recording, spaces)?);
    let error = in_use_error(recording, &peak.in_use, summary.max_threads());
    let high = peak.in_use.high.saturating_add(error);
    is_followed(summary, recording).then_some(Unique {
        low: peak.in_use.low.saturating_sub(low_error(
            recording,
            &peak.in_use,
            summary.max_threads(),
        )),
        // Nothing is counted more often than in that sum.
        high: high.min(sum.rss.saturating_add(sum.bound)),
    })
}

/// Memory in use was at most this at every moment, bytes. `None` if memory was lost, or none seen.
pub fn most_unique(summary: &Summary, recording: &Recording, spaces: u64) -> Option<u64> {
    let (_, most) = summary.most_in_use()?;
    let sum = sum_peak(summary, recording, spaces)?;
    let error = in_use_error(recording, &most, summary.max_threads());
    let high = most.high.saturating_add(error);
    is_followed(summary, recording).then_some(high.min(sum.rss.saturating_add(sum.bound)))
}

/// Whether no state of memory is known to be missing.
fn is_followed(summary: &Summary, recording: &Recording) -> bool {
    let lost = |map: &std::collections::BTreeMap<String, u64>| {
        ["memory", "fork", "mm_end"]
            .iter()
            .any(|kind| map.get(*kind).is_some_and(|n| *n > 0))
    };
    !lost(&recording.lost) && !lost(summary.lost()) && recording.full_maps.is_empty()
}

/// How far such a bound may be from what it is meant to be, bytes: each counter, and what came and was copied, may
/// have moved since its last row, and counters lack what CPUs or threads keep to themselves.
fn in_use_error(recording: &Recording, in_use: &InUse, threads: u32) -> u64 {
    let counters = if recording.rss_bound_per_thread {
        // A thread hands over what it has kept after so many page faults of all kinds together.
        counter_bound(recording, threads)
    } else {
        counter_bound(recording, threads).saturating_mul(KINDS + 1)
    };
    let rows = recording.resolution_bytes.saturating_mul(KINDS + CHURN);
    let share = share(recording, in_use.grown.max(in_use.high));
    in_use
        .spaces
        .saturating_mul(counters.saturating_add(rows))
        .saturating_add(share.saturating_mul(KINDS + CHURN))
}

/// The same below, where anonymous memory counts of all, but files and shared memory of one address space each.
fn low_error(recording: &Recording, in_use: &InUse, threads: u32) -> u64 {
    let counters = counter_bound(recording, threads);
    let anon = if recording.rss_bound_per_thread {
        // A fault brings one anonymous page.
        counters.min(THREAD_FAULTS * recording.page_size * u64::from(threads.max(1)))
    } else {
        counters
    };
    let rows = recording.resolution_bytes;
    let of_all = in_use.spaces.saturating_mul(anon.saturating_add(rows));
    let of_one = counters
        .saturating_add(rows)
        .saturating_add(share(recording, in_use.largest));
    of_all
        .saturating_add(share(recording, in_use.grown))
        .saturating_add(of_one.saturating_mul(2))
}

/// What may change before a row is due, where that is a share of the whole.
fn share(recording: &Recording, whole: u64) -> u64 {
    whole.checked_div(recording.resolution_share).unwrap_or(0)
}

/// Page faults after which a thread hands over what it has counted, at most (before 6.2, `check_sync_rss_stat` in
/// `mm/memory.c`).
const THREAD_FAULTS: u64 = 66;

/// What came and what was copied.
const CHURN: u64 = 2;

/// The highest sum of RSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumPeak {
    /// Bytes.
    pub rss: u64,
    /// The truth differs from that by this at most, bytes.
    pub bound: u64,
    /// When, ns since boot.
    pub time_ns: u64,
}

/// By how much the truth may differ from a sum of RSS that the kernel side kept, bytes: each address space may have moved by
/// less than its resolution at events that were skipped.
fn skipped_bound(recording: &Recording, rss: u64, spaces: u64) -> u64 {
    if !recording.skips_looks {
        return 0;
    }
    let steps = recording.resolution_bytes.saturating_mul(spaces);
    steps.saturating_add(share(recording, rss))
}

/// The highest sum of RSS: as the kernel side kept it at every event, else from rows.
///
/// `spaces`: most address spaces at once, since the true peak may have been at another moment than that of
/// the rows.
pub fn sum_peak(summary: &Summary, recording: &Recording, spaces: u64) -> Option<SumPeak> {
    let rows = summary.peak()?;
    let kept = recording.peak_rss_sum_bytes.zip(recording.peak_rss_sum_ns);
    // A recorder that was killed has rows that are newer than the last sum that it wrote down.
    if let Some((rss, time_ns)) = kept.filter(|(rss, _)| *rss >= rows.rss) {
        return Some(SumPeak {
            rss,
            bound: skipped_bound(recording, rss, spaces),
            time_ns,
        });
    }
    Some(SumPeak {
        rss: rows.rss,
        bound: sum_bound(recording, rows.rss, spaces, summary.max_threads()),
        time_ns: rows.time_ns,
    })
}
