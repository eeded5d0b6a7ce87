//! Memory over time as a picture: the trace is read once more for what stood at each peak.

use std::path::Path;

use anyhow::Context;

use crate::{
    model::{Moments, Quantity, Tree},
    report::{
        Report,
        chart::{self, Chart},
        lanes::{By, LaneFold, Names},
    },
    trace::Trace,
};

/// Pixels.
const SIZE: (u32, u32) = (1220, 380);
/// Marks that get a line in the picture.
const MARKS: usize = 20;

/// RSS by program; `None` if no memory was recorded.
pub(super) fn memory(path: &Path, report: &Report, tree: &Tree) -> anyhow::Result<Option<String>> {
    if report.tree.peak_rss_sum_bytes.is_none() {
        return Ok(None);
    }
    let cannot_read = || format!("cannot read {}", path.display());
    let names = Names::new(report);
    let mut fold = LaneFold::new(report, &names, &tree.timeline, (By::Program, Quantity::Rss));
    let mut moments = Moments::new(&tree.timeline, Quantity::Rss);
    let trace = Trace::open(path).with_context(cannot_read)?;
    for event in trace.events() {
        moments.push(&event.with_context(cannot_read)?, &mut |moment| {
            fold.see(moment)
        });
    }
    moments.finish(&mut |moment| fold.see(moment));
    let lanes = fold.finish(chart::MOST_LANES);
    let svg = chart::svg(&Chart::new(report, &lanes, MARKS, SIZE))?;
    Ok(Some(svg))
}
