//! `rtrace check`, and the check at the end of `rtrace record --check`.

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::Context;

use super::{
    READ_FAILED,
    args::{CheckArguments, CheckFormat, Conditions},
};
use crate::{
    findings::{Selection, Severity},
    report::check::{Checked, Denial, Format, Outcome, check, outcome, render},
};

/// A condition is violated.
const VIOLATED: u8 = 1;

impl Conditions {
    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.expect.is_empty()
    }
}

pub(super) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let checked = checked(&arguments.file, &arguments.conditions)?;
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
    Ok(ExitCode::from(status(&checked)))
}

/// Checks what has just been recorded, says how it came out, and gives the status that this asks for.
pub(super) fn recorded(file: &Path, conditions: &Conditions) -> u8 {
    let (text, status) = match checked(file, conditions) {
        Ok(checked) => {
            let text = render(&checked, &file.display().to_string(), Format::Text);
            (text, status(&checked))
        }
        Err(error) => (format!("rtrace: nothing checked: {error:#}\n"), READ_FAILED),
    };
    // A stderr that is closed is the caller's wish; the status tells too.
    let _unwritable = io::stderr().write_all(text.as_bytes());
    status
}

/// Without any condition errors are denied.
fn checked(file: &Path, conditions: &Conditions) -> anyhow::Result<Vec<Checked>> {
    let report = super::report::read(file, &Selection::default())?;
    let bare = [Denial::Severity(Severity::Error)];
    let denials = if conditions.is_empty() {
        &bare[..]
    } else {
        &conditions.deny
    };
    Ok(check(&report, denials, &conditions.expect))
}

/// 0, or what the worst outcome asks for.
fn status(checked: &[Checked]) -> u8 {
    match outcome(checked) {
        Outcome::Holds => 0,
        Outcome::Violated => VIOLATED,
        Outcome::Undecided => READ_FAILED,
    }
}
