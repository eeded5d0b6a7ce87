//! How far the figures of a report may be from the truth.

use crate::{event::Recording, model::Summary};

/// RSS is the sum of this many counters (anonymous, file, shared memory), each with its own error.
pub(super) const KINDS: u64 = 3;

/// How far one RSS counter of a process may be from the truth, bytes.
pub(super) fn counter_bound(recording: &Recording, threads: u32) -> u64 {
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
pub(super) fn sum_bound(recording: &Recording, rss: u64, spaces: u64, threads: u32) -> u64 {
    let each = counter_bound(recording, threads).saturating_add(recording.resolution_bytes);
    let share = rss.checked_div(recording.resolution_share).unwrap_or(0);
    each.saturating_mul(spaces)
        .saturating_add(share)
        .saturating_mul(KINDS)
}

/// The highest sum of RSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SumPeak {
    /// Bytes.
    pub(super) rss: u64,
    /// The truth differs from that by this at most, bytes.
    pub(super) bound: u64,
    /// When, ns since boot.
    pub(super) time_ns: u64,
}

/// The highest sum of RSS: as the kernel side kept it at every event, else from rows.
///
/// `spaces`: most address spaces at once, since the true peak may have been at another moment than that of
/// the rows.
pub(super) fn sum_peak(summary: &Summary, recording: &Recording, spaces: u64) -> Option<SumPeak> {
    let rows = summary.peak()?;
    let kept = recording.peak_rss_sum_bytes.zip(recording.peak_rss_sum_ns);
    // A recorder that was killed has rows that are newer than the last sum that it wrote down.
    if let Some((rss, time_ns)) = kept.filter(|(rss, _)| *rss >= rows.rss) {
        return Some(SumPeak {
            rss,
            bound: 0,
            time_ns,
        });
    }
    Some(SumPeak {
        rss: rows.rss,
        bound: sum_bound(recording, rows.rss, spaces, summary.max_threads()),
        time_ns: rows.time_ns,
    })
}
