//! `cargo xtask build`.

use std::process::Command;

use crate::{process, setup, workspace::Workspace};

/// Sets up and builds rtrace.
///
/// # Errors
/// The set-up can't go on, or the build fails.
pub(crate) fn rtrace(workspace: &Workspace) -> anyhow::Result<()> {
    setup::toolchain(workspace)?;
    process::run(cargo(workspace).args(["build", "--release", "--locked", "--package", "rtrace"]))
}

/// A cargo for the workspace, into the build folder that xtask is in, without network: `setup` has fetched everything.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(&workspace.cargo);
    command
        .current_dir(&workspace.root)
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env("CARGO_NET_OFFLINE", "true");
    command
}
