//! `rtrace export`.

use std::process::ExitCode;

use super::{
    args::{ExportArguments, ExportFormat, ExportTable},
    sink,
};
use crate::{
    findings::Selection,
    report::export::{Format, Table, write},
};

pub(super) fn run(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let (report, tree) = super::report::read_with_tree(&arguments.file, &Selection::default())?;
    let format = match arguments.format {
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Jsonl => Format::JsonLines,
    };
    let table = match arguments.what {
        ExportTable::Processes => Table::Processes,
        ExportTable::Images => Table::Images,
        ExportTable::Memory => Table::Memory,
    };
    let trace = std::slice::from_ref(&arguments.file);
    sink::write(arguments.output.as_deref(), trace, |out| {
        write(&report, &tree.timeline, table, format, out)
    })?;
    Ok(ExitCode::SUCCESS)
}
