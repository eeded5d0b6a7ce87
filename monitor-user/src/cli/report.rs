//! `rtrace report`.

use std::{
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use anyhow::Context;

use super::{args::ReportArguments, chart, sink};
use crate::{
    findings::Selection,
    model::{Model, Tree},
    report::{Report, html, json, text, text::TextOptions},
    trace::Trace,
};

/// The report of a trace file.
pub(super) fn read(path: &Path, selection: &Selection) -> anyhow::Result<Report> {
    Ok(read_with_tree(path, selection)?.0)
}

/// The report of a trace file and the tree that it is made from.
pub(super) fn read_with_tree(path: &Path, selection: &Selection) -> anyhow::Result<(Report, Tree)> {
    let cannot_read = || format!("cannot read {}", path.display());
    let trace = Trace::open(path).with_context(cannot_read)?;
    let mut model = Model::new();
    for event in trace.events() {
        model.push(&event.with_context(cannot_read)?);
    }
    let tree = model.finish(trace.recording());
    let report = Report::with_findings(&tree, trace.recording(), selection);
    Ok((report, tree))
}

pub(super) fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let selection = Selection::new(arguments.select.clone(), arguments.ignore.clone())?;
    let (report, tree) = read_with_tree(&arguments.file, &selection)?;
    let chart = if arguments.html {
        chart::memory(&arguments.file, &report, &tree)?
    } else {
        None
    };
    let stdout = io::stdout();
    let to_terminal = arguments.output.is_none() && stdout.is_terminal();
    let options = TextOptions {
        width: arguments
            .width
            .map_or_else(|| super::terminal_width(&stdout), usize::from),
        colour: to_terminal && std::env::var_os("NO_COLOR").is_none(),
        all: arguments.all,
    };
    let trace = std::slice::from_ref(&arguments.file);
    sink::write(arguments.output.as_deref(), trace, |out| {
        if arguments.json {
            json::write(&report, out)
        } else if arguments.html {
            html::write(&report, chart.as_deref(), arguments.all, out)
        } else {
            text::write(&report, &options, out)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
