//! Real programs that kernel tests record: packages of Python's in an environment of their own; with `--all` large ones
//! too, and some of Debian's.
//!
//! What can't be had stops nothing: its tests say themselves that they did not run.

use std::fs;

use anyhow::Context;

use super::venv;
use crate::{output, setup, workspace::Workspace};

/// Installs them where `tests/tests/real_programs.rs` looks for them.
pub(super) fn install(workspace: &Workspace, all: bool) {
    if all && let Err(error) = setup::real_programs() {
        output::note(&format!("xtask: {error:#}"));
    }
    if let Err(error) = packages(workspace, all) {
        output::note(&format!(
            "xtask: real programs can't be installed, and won't be recorded: {error:#}"
        ));
    }
}

fn packages(workspace: &Workspace, all: bool) -> anyhow::Result<()> {
    let lists = workspace.root.join("tests/programs");
    let mut wanted = vec![lists.join("light.txt")];
    if all {
        wanted.push(lists.join("all.txt"));
    }
    let scratch = workspace.target.join("programs");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    venv::environment(&scratch, &wanted)?;
    Ok(())
}
