//! The report for programs.

use std::io::{self, Write};

use crate::report::Report;

/// Writes the report as indented JSON with a line end.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}
