//! `rtrace report`.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::Context;

use super::args::ReportArguments;
use crate::{
    findings::Selection,
    model::Model,
    report::{Report, json, text, text::TextOptions},
    trace::Trace,
};

/// The report of a trace file.
pub(super) fn read(path: &Path, selection: &Selection) -> anyhow::Result<Report> {
    let cannot_read = || format!("cannot read {}", path.display());
    let trace = Trace::open(path).with_context(cannot_read)?;
    let mut model = Model::new();
    for event in trace.events() {
        model.push(&event.with_context(cannot_read)?);
    }
    let tree = model.finish(trace.recording());
    Ok(Report::with_findings(&tree, trace.recording(), selection))
}

pub(super) fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let selection = Selection::new(arguments.select.clone(), arguments.ignore.clone())?;
    let report = read(&arguments.file, &selection)?;
    let stdout = io::stdout();
    let options = TextOptions {
        width: arguments
            .width
            .map_or_else(|| super::terminal_width(&stdout), usize::from),
        colour: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        all: arguments.all,
    };
    let mut out = BufWriter::new(stdout.lock());
    let written = if arguments.json {
        json::write(&report, &mut out)
    } else {
        text::write(&report, &options, &mut out)
    };
    match written.and_then(|()| out.flush()) {
        // `rtrace report | head` is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write the report")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
