//! The kernels that rtrace is tested on besides the one that runs here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::mirror::{self, Release};
use crate::output;

/// A kernel of Debian for virtual machines: small, and everything that a test needs is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Its version, as the command line and the tables have it.
    pub(crate) name: &'static str,
    /// Suites that may have it, the preferred one first.
    suites: &'static [&'static str],
    /// The version of control groups that its virtual machine mounts.
    pub(super) cgroup: u32,
}

/// From the oldest on. One of them mounts control groups of version 1 alone, the others of version 2 alone.
pub(crate) const KERNELS: [Kernel; 4] = [
    Kernel {
        name: "5.10",
        suites: &["bullseye"],
        cgroup: 1,
    },
    Kernel {
        name: "6.1",
        suites: &["bookworm"],
        cgroup: 2,
    },
    Kernel {
        name: "6.12",
        suites: &["trixie", "bookworm-backports"],
        cgroup: 2,
    },
    Kernel {
        name: "7.2",
        suites: &["sid"],
        cgroup: 2,
    },
];

/// The package that depends on a release's newest kernel of this kind.
const NEWEST: &str = "linux-image-cloud-amd64";

impl Kernel {
    /// The file to boot, fetched if it isn't in the cache.
    ///
    /// # Errors
    /// No suite has it: it can't be fetched, or moved on to another version.
    pub(super) fn image(&self, cache: &Path) -> anyhow::Result<PathBuf> {
        let folder = cache.join("kernels").join(self.name);
        let image = folder.join("vmlinuz");
        if image.exists() {
            return Ok(image);
        }
        let mut reasons = Vec::new();
        for suite in self.suites {
            match self.fetch(suite, cache, &folder) {
                Ok(found) => {
                    fs::rename(&found, &image).context("cannot keep the kernel")?;
                    return Ok(image);
                }
                Err(error) => reasons.push(format!("{suite}: {error:#}")),
            }
        }
        anyhow::bail!(reasons.join("; "))
    }

    fn fetch(&self, suite: &str, cache: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
        let release = Release::of(suite, cache)?;
        let package = release
            .dependencies(NEWEST)
            .into_iter()
            .find(|name| self.is_mine(name))
            .with_context(|| format!("its newest kernel isn't a {}", self.name))?;
        // Since 7, the file itself is in a package that this one depends on.
        let parts = release.dependencies(&package);
        let holder = parts
            .into_iter()
            .find(|name| name.starts_with("linux-binary-"))
            .unwrap_or(package);
        output::note(&format!("xtask: kernel {holder} from {suite}"));
        let downloads = folder.join("package");
        let deb = release.download(&holder, &downloads)?;
        let unpacked = folder.join("unpacked");
        mirror::unpack(&deb, &unpacked)?;
        fs::remove_dir_all(&downloads)?;
        find(&unpacked).context("the package has no vmlinuz")
    }

    /// Whether a package such as `linux-image-6.1.0-50-cloud-amd64` is of this version.
    fn is_mine(&self, package: &str) -> bool {
        package
            .strip_prefix("linux-image-")
            .and_then(|rest| rest.strip_prefix(self.name))
            .is_some_and(|rest| rest.starts_with('.'))
    }
}

/// The first file called `vmlinuz` or `vmlinuz-*` below a folder.
fn find(folder: &Path) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with("vmlinuz") && path.is_file() {
                return Some(path);
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::KERNELS;

    #[test]
    fn a_version_is_not_the_beginning_of_another() {
        let [old, middle, ..] = KERNELS;
        assert!(middle.is_mine("linux-image-6.1.0-50-cloud-amd64"));
        assert!(!middle.is_mine("linux-image-6.12.117+deb13-cloud-amd64"));
        assert!(old.is_mine("linux-image-5.10.0-32-cloud-amd64"));
    }
}
