//! Memory over time as a picture: a trace is read once more for what stood at each peak.

use std::path::Path;

use anyhow::Context;

use crate::{
    model::{Moments, Quantity, Tree},
    report::{
        Report,
        chart::{self, Panel},
        lanes::{By, LaneFold, Lanes, Names, tell_apart},
    },
    trace::Trace,
};

/// Width of a picture and height of each recording in it, pixels.
pub(super) const SIZE: (u32, u32) = (1220, 380);
/// Marks that get a line in a picture.
pub(super) const MARKS: usize = 20;
/// Above a picture in a page.
const TITLE: &str = "RSS by program; pages that processes share count in each of them";

/// RSS by program, as a picture for a page; `None` if no memory was recorded.
pub(super) fn memory(path: &Path, report: &Report, tree: &Tree) -> anyhow::Result<Option<String>> {
    if report.tree.peak_rss_sum_bytes.is_none() {
        return Ok(None);
    }
    let all = lanes(path, report, tree, (By::Program, Quantity::Rss))?;
    let lanes = tell_apart(&[all], chart::MOST_LANES);
    let panel = |lanes| Panel::new(TITLE.to_owned(), report, lanes, MARKS);
    let panels: Vec<Panel<'_>> = lanes.iter().map(panel).collect();
    Ok(Some(chart::svg(&panels, SIZE)?))
}

/// Memory over time in a trace that `report` and `tree` are of.
pub(super) fn lanes(
    path: &Path,
    report: &Report,
    tree: &Tree,
    (by, quantity): (By, Quantity),
) -> anyhow::Result<Lanes> {
    let cannot_read = || format!("cannot read {}", path.display());
    let names = Names::new(report);
    let mut fold = LaneFold::new(report, &names, &tree.timeline, (by, quantity));
    let mut moments = Moments::new(&tree.timeline, quantity);
    let trace = Trace::open(path).with_context(cannot_read)?;
    for event in trace.events() {
        let event = event.with_context(cannot_read)?;
        moments.push(&event, &mut |moment| fold.see(moment));
    }
    moments.finish(&mut |moment| fold.see(moment));
    Ok(fold.finish())
}
