//! `cargo xtask setup`: finds or installs what the build needs, once.
//!
//! Two kinds of toolchain can build `core` for the BPF target: Debian's packages, and a rustup nightly with its
//! source. What is there already is taken first. The choice is written to `toolchain.env` in the build folder, from
//! where `monitor-user/build.rs` reads it.

use std::fs;

use anyhow::{Context, bail};

use crate::{output, process, workspace::Workspace};

mod apt;
mod debian;
mod fetch;
mod linker;
mod record;
mod rustup;
mod toolchain;

pub(crate) use apt::{know, real_programs, test_programs};
use toolchain::Toolchain;

/// Sets up the BPF toolchain, `bpf-linker` and the packages that the build uses. Silent if it was done before.
///
/// # Errors
/// It can't go on; the message has the commands that the user may run instead.
pub(crate) fn toolchain(workspace: &Workspace) -> anyhow::Result<()> {
    if record::is_current(workspace) {
        return Ok(());
    }
    output::note("xtask: setting up what the build needs (once)");
    fs::create_dir_all(&workspace.target)
        .with_context(|| format!("cannot create {}", workspace.target.display()))?;
    let toolchain = choose()?;
    output::note(&format!("xtask: BPF toolchain: {toolchain}"));
    let linker = linker::installed(workspace, &toolchain)?;
    output::note(&format!("xtask: BPF linker: {}", linker.display()));
    fetch::packages(workspace, &toolchain)?;
    record::write(workspace, &toolchain, &linker)?;
    output::note("xtask: set-up is done; building needs no network from here on");
    Ok(())
}

fn choose() -> anyhow::Result<Toolchain> {
    let mut reasons = Vec::new();
    for find in [debian::find, rustup::find, debian::install, rustup::install] {
        match find() {
            Ok(toolchain) => return Ok(toolchain),
            Err(error) => reasons.push(format!("  {error:#}")),
        }
    }
    reasons.dedup();
    let sudo = if process::is_root() { "" } else { "sudo " };
    bail!(
        "cannot set up a toolchain for the BPF side:\n{}\nRun the commands of one of these two ways, then \
         `cargo xtask setup` again:\n  Debian:  {sudo}apt-get update && {sudo}{}\n  rustup:  {}",
        reasons.join("\n"),
        apt::command_line(&debian::PACKAGES),
        rustup::COMMAND,
    )
}
