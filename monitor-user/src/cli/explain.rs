//! `rtrace explain`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;

use super::args::ExplainArguments;
use crate::findings::{UnknownId, explanation, overview};

pub(super) fn run(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    let text = match &arguments.id {
        None => overview(),
        Some(id) => explanation(id).ok_or_else(|| UnknownId { id: id.clone() })?,
    };
    match io::stdout().write_all(text.as_bytes()) {
        // `rtrace explain | head` is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
