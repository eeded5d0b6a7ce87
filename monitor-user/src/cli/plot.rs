//! `rtrace plot`.

use std::{path::Path, process::ExitCode};

use anyhow::bail;

use super::{args::PlotArguments, chart, report, sink};
use crate::{
    findings::Selection,
    report::{
        chart::{MOST_LANES, Panel, svg},
        escape,
        lanes::tell_apart,
        title,
    },
};

pub(super) fn run(arguments: &PlotArguments) -> anyhow::Result<ExitCode> {
    let is_svg = |path: &Path| {
        let ending = path.extension();
        path == Path::new("-") || ending.is_none_or(|e| e.eq_ignore_ascii_case("svg"))
    };
    if let Some(path) = arguments.output.as_deref().filter(|path| !is_svg(path)) {
        bail!(
            "cannot write {}: pictures are SVG, so name it .svg; rsvg-convert and browsers make other formats of it",
            path.display()
        );
    }
    let what = (arguments.by.into(), arguments.what.into());
    let (mut reports, mut all) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let (report, tree) = report::read_with_tree(path, &Selection::default())?;
        if report.tree.peak_rss_sum_bytes.is_none() {
            bail!("cannot plot {}: no memory was recorded", path.display());
        }
        all.push(chart::lanes(path, &report, &tree, what)?);
        reports.push(report);
    }
    let lanes = tell_apart(&all, MOST_LANES);
    let panels: Vec<Panel<'_>> = arguments
        .files
        .iter()
        .zip(reports.iter().zip(&lanes))
        .map(|(path, (report, lanes))| {
            let command = title(report);
            // Of several the reader must know which is which.
            let title = match &arguments.title {
                Some(title) => title.clone(),
                None if reports.len() > 1 => {
                    format!("{}: {command}", escape(path.as_os_str().as_encoded_bytes()))
                }
                None => command,
            };
            Panel::new(title, report, lanes, chart::MARKS)
        })
        .collect();
    let (width, height) = chart::SIZE;
    let height = height.saturating_mul(u32::try_from(panels.len())?);
    let picture = svg(&panels, (width, height))?;
    sink::write(arguments.output.as_deref(), &arguments.files, |out| {
        out.write_all(picture.as_bytes())
    })?;
    Ok(ExitCode::SUCCESS)
}
