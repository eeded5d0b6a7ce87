//! Tables for other programs: processes, their images and memory over time, as CSV or as lines of JSON.

mod cell;
mod columns;
mod images;
mod memory;
mod processes;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use serde::Serialize;

use self::{
    cell::plain_json,
    columns::{Column, markdown},
};
use crate::{
    model::Timeline,
    report::{Id, ImageReport, Report},
};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each process.
    Processes,
    /// A row for each program that a process was.
    Images,
    /// A row for each span of time with the sums over the tree.
    Memory,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a line of names.
    Csv,
    /// A JSON object in each line.
    JsonLines,
}

/// An image as a JSON line: its own keys, and whose it is.
#[derive(Serialize)]
struct ImageLine<'a> {
    process: Id,
    image: u64,
    #[serde(flatten)]
    keys: &'a ImageReport,
}

/// The columns of a table as CSV has them, with what they hold, as a table in Markdown.
pub fn documentation(table: Table) -> String {
    match table {
        Table::Processes => markdown(processes::COLUMNS),
        Table::Images => markdown(&images::columns()),
        Table::Memory => markdown(memory::COLUMNS),
    }
}

/// Writes a table, row by row.
///
/// # Errors
/// Those of the writer.
pub fn write(
    report: &Report,
    timeline: &Timeline,
    table: Table,
    format: Format,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let processes = &report.processes;
    match (format, table) {
        (Format::Csv, Table::Processes) => csv(processes::COLUMNS, processes.iter(), out),
        (Format::Csv, Table::Images) => csv(&images::columns(), images::rows(processes), out),
        (Format::Csv, Table::Memory) => csv(memory::COLUMNS, memory::rows(timeline), out),
        (Format::JsonLines, Table::Processes) => lines(processes.iter(), out),
        (Format::JsonLines, Table::Images) => {
            lines(images::rows(processes).map(|row| image_line(&row)), out)
        }
        (Format::JsonLines, Table::Memory) => lines(memory::rows(timeline), out),
    }
}

fn csv<R, B: std::borrow::Borrow<R>>(
    columns: &[Column<R>],
    rows: impl Iterator<Item = B>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|column| column.name))?;
    for row in rows {
        for column in columns {
            writer.write_field((column.cell)(row.borrow()).csv().as_bytes())?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

fn lines(
    rows: impl Iterator<Item = impl Serialize>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    for row in rows {
        writeln!(out, "{}", plain_json(&serde_json::to_string(&row)?))?;
    }
    Ok(())
}

fn image_line<'a>(row: &images::Row<'a>) -> ImageLine<'a> {
    ImageLine {
        process: row.process.id(),
        image: row.place,
        keys: row.image,
    }
}
