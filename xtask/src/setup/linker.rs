//! `bpf-linker`, pinned and linked to an LLVM that can read what the toolchain writes.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use super::toolchain::{Llvm, Toolchain};
use crate::{output, process, run, workspace::Workspace};

/// The release that the BPF side is linked with.
pub(super) const VERSION: &str = "0.10.3";

/// Names a folder that keeps the finished linker when the build folder goes.
const TOOLS: &str = "RTRACE_TOOLS";

/// Path of the linker, built first if it isn't there.
///
/// # Errors
/// It can't be built, or doesn't run afterwards.
pub(super) fn installed(workspace: &Workspace, toolchain: &Toolchain) -> anyhow::Result<PathBuf> {
    let tools = env::var_os(TOOLS).map_or_else(|| workspace.target.join("tools"), PathBuf::from);
    // A linker of another release or with another LLVM has another folder.
    let kind = match &toolchain.llvm {
        Llvm::System(_) => "system-llvm-22",
        Llvm::Own(_) => "rust-llvm-22",
    };
    let root = tools.join(format!("bpf-linker-{VERSION}-{kind}"));
    let program = root.join("bin/bpf-linker");
    if !works(&program, &toolchain.llvm) {
        build(workspace, toolchain, &root)?;
        ensure!(
            works(&program, &toolchain.llvm),
            "{} was built but doesn't run",
            program.display()
        );
    }
    match &toolchain.llvm {
        Llvm::System(_) => Ok(program),
        Llvm::Own(libraries) => with_libraries(&program, libraries),
    }
}

fn works(program: &Path, llvm: &Llvm) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").env_remove("LD_LIBRARY_PATH");
    if let Llvm::Own(libraries) = llvm {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    process::answer(&mut command)
        .is_some_and(|answer| answer.trim() == format!("bpf-linker {VERSION}"))
}

fn build(workspace: &Workspace, toolchain: &Toolchain, root: &Path) -> anyhow::Result<()> {
    output::note(&format!(
        "xtask: building bpf-linker {VERSION} into {} (about 2 minutes)",
        root.display()
    ));
    let scratch = workspace.target.join("tools-build");
    let mut command = Command::new(&toolchain.cargo);
    command
        .env_clear()
        .envs(run::user_environment(workspace))
        .env("RUSTC", &toolchain.rustc)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .args([
            "install",
            "bpf-linker",
            "--version",
            VERSION,
            "--locked",
            "--force",
            "--root",
        ])
        .arg(root)
        .arg("--target-dir")
        .arg(&scratch);
    if let Llvm::System(folder) = &toolchain.llvm {
        // Linked to the system's library by its full path, so that nothing need be said at run time.
        command
            .args(["--no-default-features", "--features", "llvm-22"])
            .env("LLVM_PREFIX", folder);
    }
    process::run(&mut command).context("bpf-linker can't be built")?;
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))
}

/// A small script beside the linker that tells it where the toolchain's LLVM is.
fn with_libraries(program: &Path, libraries: &Path) -> anyhow::Result<PathBuf> {
    let script = program.with_file_name("bpf-linker-with-llvm");
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let text = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH={} exec {} \"$@\"\n",
        quoted(libraries),
        quoted(program)
    );
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", script.display()))?;
    Ok(script)
}
