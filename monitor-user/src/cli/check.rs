//! `rtrace check`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;

use super::{
    READ_FAILED,
    args::{CheckArguments, CheckFormat},
};
use crate::{
    findings::{Selection, Severity},
    report::check::{Denial, Format, Outcome, check, outcome, render},
};

/// A condition is violated.
const VIOLATED: u8 = 1;

pub(super) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let report = super::report::read(&arguments.file, &Selection::default())?;
    let is_bare = arguments.deny.is_empty() && arguments.expect.is_empty();
    let bare = [Denial::Severity(Severity::Error)];
    let denials = if is_bare { &bare[..] } else { &arguments.deny };
    let checked = check(&report, denials, &arguments.expect);
    let format = match arguments.format {
        CheckFormat::Text => Format::Text,
        CheckFormat::Junit => Format::Junit,
        CheckFormat::Github => Format::Github,
        CheckFormat::Markdown => Format::Markdown,
    };
    let text = render(&checked, &arguments.file.display().to_string(), format);
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(error).context("cannot write the result");
        }
        _ => {}
    }
    Ok(match outcome(&checked) {
        Outcome::Holds => ExitCode::SUCCESS,
        Outcome::Violated => ExitCode::from(VIOLATED),
        Outcome::Undecided => ExitCode::from(READ_FAILED),
    })
}
