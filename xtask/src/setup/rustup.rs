//! A nightly of rustup with the library's source.
//!
//! Untested where this was written: no toolchain could be downloaded there.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};

use super::toolchain::{Llvm, Toolchain};
use crate::{output, process};

/// The nightly: rustc 1.97 with LLVM 22.1.4. The one place that names it is [`COMMAND`].
fn nightly() -> &'static str {
    COMMAND.split(' ').nth(3).unwrap_or("nightly")
}

/// How it is installed.
pub(super) const COMMAND: &str = "rustup toolchain install nightly-2026-05-20 --profile minimal --component rust-src --no-self-update";

/// The installed nightly.
///
/// # Errors
/// What is missing.
pub(super) fn find() -> anyhow::Result<Toolchain> {
    let rustup = program().context("there is no rustup")?;
    let root = process::answer(
        Command::new(rustup)
            .args(["run", nightly(), "rustc", "--print", "sysroot"])
            .env("RUSTUP_AUTO_INSTALL", "0"),
    )
    .with_context(|| format!("rustup has no {}", nightly()))?;
    let root = Path::new(root.trim());
    Toolchain::check(&root.join("bin"), false, Llvm::Own(root.join("lib")))
}

/// Installs it, unless the user has told rustup to install nothing by itself.
///
/// # Errors
/// There is no rustup, it may not or can't install.
pub(super) fn install() -> anyhow::Result<Toolchain> {
    let rustup = program().context("there is no rustup")?;
    if env::var_os("RUSTUP_AUTO_INSTALL").is_some_and(|value| value == "0") {
        bail!(
            "rustup may not install {} by itself (RUSTUP_AUTO_INSTALL=0)",
            nightly()
        );
    }
    output::note(&format!("xtask: {COMMAND}"));
    process::run(Command::new(rustup).args(COMMAND.split(' ').skip(1)))?;
    find()
}

fn program() -> Option<PathBuf> {
    let beside = env::var_os("CARGO_HOME").map(|home| Path::new(&home).join("bin/rustup"));
    beside
        .filter(|file| process::is_program(file))
        .or_else(|| process::find("rustup"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_nightly_is_pinned_to_a_day() {
        assert!(
            super::nightly()
                .strip_prefix("nightly-20")
                .is_some_and(|day| day.len() == 8),
            "{}",
            super::nightly()
        );
    }
}
