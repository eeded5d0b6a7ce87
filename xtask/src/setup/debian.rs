//! Debian's packages: a stable compiler with its library source, and the LLVM that it was built with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use super::{
    apt,
    toolchain::{Llvm, Toolchain, Version},
};
use crate::process;

/// What must be installed. They conflict with the packages `cargo`, `rustc` and `rustup`, not with rustup's installer.
pub(super) const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "llvm-22-dev"];

/// Folder of the LLVM that `bpf-linker` is linked to.
const LLVM: &str = "/usr/lib/llvm-22";

/// The installed packages.
///
/// # Errors
/// What is missing.
pub(super) fn find() -> anyhow::Result<Toolchain> {
    let toolchain = Toolchain::check(Path::new("/usr/bin"), true, Llvm::System(LLVM.into()))?;
    let config = PathBuf::from(LLVM).join("bin/llvm-config");
    let llvm = process::answer(Command::new(&config).arg("--version"))
        .and_then(|text| Version::parse(&text))
        .with_context(|| format!("there is no {}", config.display()))?;
    // An older LLVM can't read what a newer one wrote.
    ensure!(
        llvm >= toolchain.llvm_version,
        "{} has LLVM {}, newer than the {llvm} in {LLVM}",
        toolchain.rustc.display(),
        toolchain.llvm_version
    );
    Ok(toolchain)
}

/// Installs them.
///
/// # Errors
/// apt isn't there, or can't, or would remove another package.
pub(super) fn install() -> anyhow::Result<Toolchain> {
    apt::install(&PACKAGES)?;
    find()
}
