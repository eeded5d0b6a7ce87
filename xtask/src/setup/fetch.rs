//! The source packages that the build uses, fetched once so that later builds need no network.

use std::{
    collections::HashSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{output, process, workspace::Workspace};

use super::toolchain::Toolchain;

/// Fetches what `Cargo.lock` names, and what building `core` needs beside it.
///
/// # Errors
/// There is no network, or `Cargo.lock` doesn't fit the manifests.
pub(super) fn packages(workspace: &Workspace, toolchain: &Toolchain) -> anyhow::Result<()> {
    output::note("xtask: fetching the source packages in Cargo.lock");
    process::run(
        Command::new(&workspace.cargo)
            .args(["fetch", "--quiet", "--locked"])
            .current_dir(&workspace.root),
    )?;
    let mut command = Command::new(&toolchain.cargo);
    command.args([
        "fetch",
        "--quiet",
        "--locked",
        "-Z",
        "build-std=core",
        "--target",
        "bpfel-unknown-none",
    ]);
    process::run(
        command
            .envs(toolchain.variables())
            .current_dir(&workspace.root),
    )
}

/// Whether every package of `Cargo.lock` that comes from a registry is unpacked or at least downloaded.
pub(super) fn is_complete(workspace: &Workspace) -> bool {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let (Some(home), Ok(lock)) = (home, fs::read_to_string(workspace.root.join("Cargo.lock")))
    else {
        return false;
    };
    let present = downloads(&home.join("registry/cache"));
    registry_packages(&lock)
        .iter()
        .all(|package| present.contains(&OsString::from(format!("{package}.crate"))))
}

fn downloads(cache: &Path) -> HashSet<OsString> {
    let entries = |folder: &Path| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .collect::<Vec<_>>()
    };
    entries(cache)
        .iter()
        .flat_map(|registry| entries(&registry.path()))
        .map(|file| file.file_name())
        .collect()
}

/// `NAME-VERSION` of every package with a source, in the order of the file.
fn registry_packages(lock: &str) -> Vec<String> {
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_matches('"').to_owned())
    };
    lock.split("[[package]]\n")
        .filter(|package| package.contains("\nsource = "))
        .filter_map(|package| {
            Some(format!(
                "{}-{}",
                field(package, "name = ")?,
                field(package, "version = ")?
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn packages_of_the_workspace_need_no_fetching() {
        let lock = "version = 4\n\n[[package]]\nname = \"anyhow\"\nversion = \"1.0.1\"\nsource = \"registry+x\"\n\n\
                    [[package]]\nname = \"xtask\"\nversion = \"0.1.0\"\ndependencies = [\n \"anyhow\",\n]\n";
        assert_eq!(super::registry_packages(lock), ["anyhow-1.0.1"]);
    }
}
