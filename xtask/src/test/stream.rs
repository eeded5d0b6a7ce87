//! Runs test programs, shows what they print, and counts their results.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use anyhow::Context;

use super::libtest::{self, Counts};
use crate::{output, process};

/// Runs a program of libtest or a `cargo test`; its output appears as it comes.
///
/// A program that fails without having counted a failure (it crashed, or didn't compile) counts as one.
///
/// # Errors
/// It can't be started.
pub(super) fn run(command: &mut Command) -> anyhow::Result<Counts> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", process::words(command)))?;
    let mut counts = Counts::default();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = line.context("reading the output of a test program")?;
            let line = String::from_utf8_lossy(&line);
            output::result(&line);
            counts += libtest::result_line(&line).unwrap_or_default();
        }
    }
    let status = child.wait().context("waiting for a test program")?;
    if !status.success() && counts.failed == 0 {
        output::result(&format!("{} ended with {status}", process::words(command)));
        counts.failed = 1;
    }
    Ok(counts)
}
