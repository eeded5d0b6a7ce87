//! Packages of other releases of Debian, by apt from the mirror that this machine already uses, into folders of our own:
//! nothing of the machine's is changed, and no root is needed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

use crate::{output, process};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The lists of one release.
#[derive(Debug)]
pub(super) struct Release {
    folder: PathBuf,
}

impl Release {
    /// Fetches the lists of packages of a suite, such as `bullseye`, unless they are there.
    ///
    /// # Errors
    /// This machine doesn't use a mirror of Debian, or the suite can't be had there.
    pub(super) fn of(suite: &str, cache: &Path) -> anyhow::Result<Self> {
        let release = Self {
            folder: cache.join("apt").join(suite),
        };
        let done = release.folder.join("complete");
        if done.exists() {
            return Ok(release);
        }
        for folder in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(release.folder.join(folder))?;
        }
        fs::write(release.folder.join("status"), "")?;
        let line = format!("deb [signed-by={KEYRING}] {} {suite} main\n", mirror()?);
        fs::write(release.folder.join("sources.list"), line)?;
        output::note(&format!("xtask: lists of packages of {suite}"));
        let updated = process::answer(release.apt("apt-get").args(["update", "--quiet"]));
        updated.with_context(|| format!("the mirror of this machine has no suite {suite}"))?;
        fs::write(done, "")?;
        Ok(release)
    }

    /// A program of apt that sees this release alone.
    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let settings = [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::State", "state"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ];
        for (name, place) in settings {
            command.arg("-o");
            command.arg(format!("{name}={}", self.folder.join(place).display()));
        }
        for setting in [
            "Dir::Etc::sourceparts=/dev/null",
            "APT::Architecture=amd64",
            "APT::Sandbox::User=",
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        ] {
            command.args(["-o", setting]);
        }
        command
    }

    /// Direct dependencies of a package.
    pub(super) fn dependencies(&self, package: &str) -> Vec<String> {
        let text = process::answer(
            self.apt("apt-cache")
                .args(["depends", "--important", package]),
        );
        depends(&text.unwrap_or_default())
    }

    /// Downloads a package into a folder, which holds it alone; the file.
    ///
    /// # Errors
    /// It can't be had.
    pub(super) fn download(&self, package: &str, into: &Path) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(into)?;
        let mut command = self.apt("apt-get");
        command
            .args(["download", "--quiet", package])
            .current_dir(into);
        process::answer(&mut command).with_context(|| format!("cannot download {package}"))?;
        deb_in(into).with_context(|| format!("no file came for {package}"))
    }
}

/// Address of the machine's mirror of Debian, from apt's own settings.
fn mirror() -> anyhow::Result<String> {
    ensure!(
        Path::new(KEYRING).exists(),
        "there are no keys of Debian ({KEYRING})"
    );
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format"]);
    targets.arg("$(CREATED_BY) $(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)");
    let text = process::answer(&mut targets).context("there is no apt-get")?;
    text.lines()
        .find_map(|line| line.strip_prefix("Packages Debian Debian main "))
        .map(str::to_owned)
        .context("this machine doesn't use a mirror of Debian, or has no lists of packages yet (apt-get update)")
}

/// Names in what `apt-cache depends` prints; alternatives (`|Depends`) and virtual packages (`<name>`) are left out.
fn depends(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .filter(|name| !name.starts_with('<'))
        .map(str::to_owned)
        .collect()
}

fn deb_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
}

/// Downloads what an installation of a package on this machine would add, and unpacks it into a folder.
///
/// For a program whose installation would remove another one: it runs from there, with the machine's other libraries.
///
/// # Errors
/// apt doesn't know it or can't fetch it.
pub(super) fn unpack_beside(package: &str, into: &Path) -> anyhow::Result<()> {
    let mut simulate = Command::new("apt-get");
    simulate.args(["install", "--simulate", "--no-install-recommends", package]);
    let plan = process::answer(&mut simulate)
        .with_context(|| format!("apt-get knows no package {package}"))?;
    let packages = installs(&plan);
    ensure!(!packages.is_empty(), "nothing to install for {package}");
    let downloads = into.join("packages");
    fs::create_dir_all(&downloads)?;
    let mut download = Command::new("apt-get");
    download
        .args(["-o", "APT::Sandbox::User=", "download", "--quiet"])
        .args(&packages)
        .current_dir(&downloads);
    process::answer(&mut download).with_context(|| format!("cannot download {package}"))?;
    for entry in fs::read_dir(&downloads)? {
        unpack(&entry?.path(), into)?;
    }
    fs::remove_dir_all(&downloads)?;
    Ok(())
}

/// Unpacks a package's files.
///
/// # Errors
/// It isn't a package, or there is no dpkg.
pub(super) fn unpack(deb: &Path, into: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").args([deb, into]);
    if process::answer(&mut command).is_none() {
        bail!("cannot unpack {}", deb.display());
    }
    Ok(())
}

/// `NAME=VERSION` of each line `Inst NAME (VERSION ...` of a simulated installation; one that is replaced has its old
/// version in brackets before that.
fn installs(plan: &str) -> Vec<String> {
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst "))
        .filter_map(|line| {
            let (name, _) = line.split_once(' ')?;
            let (_, rest) = line.split_once('(')?;
            let (version, _) = rest.split_once(' ')?;
            Some(format!("{name}={version}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_installation_names_packages_and_versions() {
        let plan = "Remv old [1.0]\nInst a (1:2.0-3 Debian:12/stable [amd64])\nInst b [1.0] (1.1 Debian:12 [all])\n\
                    Conf a (1:2.0-3 Debian:12/stable [amd64])\n";
        assert_eq!(installs(plan), ["a=1:2.0-3", "b=1.1"]);
    }

    #[test]
    fn dependencies_are_real_packages() {
        let text = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-1-cloud-amd64\n  Depends: <virtual>\n |Depends: dracut\n";
        assert_eq!(depends(text), ["linux-image-6.1.0-1-cloud-amd64"]);
    }
}
