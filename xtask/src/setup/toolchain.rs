//! A cargo and a rustc that can build `core` for the BPF target.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use crate::process;

/// Oldest rustc that the BPF side builds with.
const OLDEST: Version = Version([1, 95, 0]);

/// Three numbers, compared from the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) [u32; 3]);

impl Version {
    /// Reads `22.1.8` or `1.97.0-nightly`; a part that is missing counts as 0.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers = text.trim().split('-').next()?;
        let mut parts = [0; 3];
        for (part, number) in parts.iter_mut().zip(numbers.split('.')) {
            *part = number.parse().ok()?;
        }
        Some(Self(parts))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

/// Where `bpf-linker` takes its LLVM from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Llvm {
    /// The system's, in this folder.
    System(PathBuf),
    /// The one that the toolchain itself brings, in this folder of libraries.
    Own(PathBuf),
}

/// A toolchain that was found to be complete.
#[derive(Debug)]
pub(super) struct Toolchain {
    pub(super) cargo: PathBuf,
    pub(super) rustc: PathBuf,
    /// Whether a stable compiler must be told to accept unstable options.
    pub(super) bootstrap: bool,
    pub(super) version: Version,
    pub(super) llvm_version: Version,
    pub(super) llvm: Llvm,
    /// A file of the library source that fits the compiler.
    pub(super) source: PathBuf,
}

impl Toolchain {
    /// Checks that the two programs are there, new enough, and have the source of the standard library.
    ///
    /// # Errors
    /// What is missing, in one line.
    pub(super) fn check(folder: &Path, bootstrap: bool, llvm: Llvm) -> anyhow::Result<Self> {
        let [cargo, rustc] = ["cargo", "rustc"].map(|name| folder.join(name));
        ensure!(
            process::is_program(&cargo),
            "there is no {}",
            cargo.display()
        );
        ensure!(
            process::is_program(&rustc),
            "there is no {}",
            rustc.display()
        );
        let about = process::answer(Command::new(&rustc).arg("-vV"))
            .with_context(|| format!("{} doesn't tell its version", rustc.display()))?;
        let field = |name: &str| {
            about
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(Version::parse)
        };
        let version = field("release: ").context("rustc names no release")?;
        let llvm_version = field("LLVM version: ").context("rustc names no LLVM version")?;
        ensure!(
            version >= OLDEST,
            "{} is {version}, older than {OLDEST}",
            rustc.display()
        );
        let root =
            process::answer(Command::new(&rustc).args(["--print", "sysroot"])).unwrap_or_default();
        let source = Path::new(root.trim()).join("lib/rustlib/src/rust/library/core/Cargo.toml");
        ensure!(
            source.is_file(),
            "{} has no library source beside it",
            rustc.display()
        );
        Ok(Self {
            cargo,
            rustc,
            bootstrap,
            version,
            llvm_version,
            llvm,
            source,
        })
    }

    /// The variables for a build of the BPF side, as `toolchain.env` has them.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("CARGO", self.cargo.display().to_string()),
            ("RUSTC", self.rustc.display().to_string()),
        ];
        if self.bootstrap {
            variables.push(("RUSTC_BOOTSTRAP", "1".to_owned()));
        }
        variables
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} with LLVM {}",
            self.rustc.display(),
            self.version,
            self.llvm_version
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let version = |text| Version::parse(text).expect("a version");
        assert!(version("22.1.10") > version("22.1.8"));
        assert_eq!(version("1.97.0-nightly"), Version([1, 97, 0]));
        assert_eq!(version("22\n"), Version([22, 0, 0]));
        assert_eq!(Version::parse("unknown"), None);
    }

    #[test]
    fn a_folder_without_a_toolchain_is_told_apart() {
        let error =
            Toolchain::check(Path::new("/nowhere"), true, Llvm::System("/usr".into())).unwrap_err();
        assert_eq!(error.to_string(), "there is no /nowhere/cargo");
    }
}
