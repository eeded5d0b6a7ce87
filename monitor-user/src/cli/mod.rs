//! The command line: parses, wires layers together, prints, chooses exit statuses.

mod args;
mod chart;
mod check;
mod doctor;
mod explain;
mod export;
mod fault;
mod output;
mod plot;
mod record;
mod report;
mod sink;
mod status;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use self::args::{Arguments, MarkArguments, Verb};

/// rtrace itself failed while recording; as `env`, `timeout` and others of their kind have it.
const RECORD_FAILED: u8 = 125;
/// A reader can't read or can't decide.
const READ_FAILED: u8 = 2;

/// Runs rtrace with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let (result, failed) = match arguments.verb {
        Verb::Record(options) => (record::run(&options), RECORD_FAILED),
        Verb::Mark(options) => (mark(&options), READ_FAILED),
        Verb::Report(options) => (fault::guarded(|| report::run(&options)), READ_FAILED),
        Verb::Plot(options) => (fault::guarded(|| plot::run(&options)), READ_FAILED),
        Verb::Export(options) => (fault::guarded(|| export::run(&options)), READ_FAILED),
        Verb::Check(options) => (fault::guarded(|| check::run(&options)), READ_FAILED),
        Verb::Explain(options) => (explain::run(&options), READ_FAILED),
        Verb::Doctor(options) => (doctor::run(&options), READ_FAILED),
    };
    result.unwrap_or_else(|error| {
        complain(&format!("{error:#}"));
        ExitCode::from(failed)
    })
}

/// That it runs is all: a recorder sees it with its arguments.
fn mark(options: &MarkArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        options.text.iter().any(|word| !word.is_empty()),
        "a mark needs a text"
    );
    Ok(ExitCode::SUCCESS)
}

/// Help and version go to stdout and are no failure; a wrong call of `record` ends with 125, since
/// lower numbers are the command's.
fn usage(error: &clap::Error) -> ExitCode {
    let is_record = std::env::args_os()
        .nth(1)
        .is_some_and(|verb| verb == "record");
    // Nothing sensible is left to do if even this can't be written.
    let _unwritable = error.print();
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_record => ExitCode::from(RECORD_FAILED),
        _ => ExitCode::from(READ_FAILED),
    }
}

/// One message on stderr.
fn complain(message: &str) {
    // A stderr that is closed is the caller's wish.
    let _unwritable = writeln!(std::io::stderr(), "rtrace: {message}");
}

/// Columns of the terminal behind a stream; 80 if it is none.
fn terminal_width(stream: impl std::os::fd::AsFd) -> usize {
    terminal_size::terminal_size_of(stream).map_or(80, |(width, _)| usize::from(width.0))
}
