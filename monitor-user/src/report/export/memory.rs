//! The table of memory: the sums over the tree in time.

use serde::Serialize;

use super::columns::{Column, columns};
use crate::model::Timeline;

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// From then.
    pub(super) start_ns: u64,
    /// Until then.
    pub(super) end_ns: u64,
    /// Lowest sum of RSS.
    pub(super) min_rss_bytes: u64,
    /// Highest sum of RSS.
    pub(super) max_rss_bytes: u64,
    /// Lowest sum of VMS.
    pub(super) min_vms_bytes: u64,
    /// Highest sum of VMS.
    pub(super) max_vms_bytes: u64,
}

/// Spans in order, all of the same length.
pub(super) fn rows(timeline: &Timeline) -> impl Iterator<Item = Row> + '_ {
    let width = timeline.width_ns();
    timeline.points().map(move |(start_ns, bucket)| Row {
        start_ns,
        end_ns: start_ns.saturating_add(width),
        min_rss_bytes: bucket.min_rss,
        max_rss_bytes: bucket.max_rss,
        min_vms_bytes: bucket.min_vms,
        max_vms_bytes: bucket.max_vms,
    })
}

/// A row for each span of time, all of the same length; at most 1024.
pub(super) const COLUMNS: &[Column<Row>] = &columns! { Row:
    "start_ns", "from then", |r| r.start_ns.into();
    "end_ns", "until then", |r| r.end_ns.into();
    "min_rss_bytes", "lowest sum of RSS in that time", |r| r.min_rss_bytes.into();
    "max_rss_bytes", "highest sum of RSS in that time: no peak is lost", |r| r.max_rss_bytes.into();
    "min_vms_bytes", "lowest sum of VMS in that time", |r| r.min_vms_bytes.into();
    "max_vms_bytes", "highest sum of VMS in that time", |r| r.max_vms_bytes.into();
};
