//! The folders that everything else needs.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Where sources and build output are.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Folder of the build output, `target` unless cargo was told otherwise.
    pub(crate) target: PathBuf,
    /// The cargo that builds for this machine: the one that started xtask.
    pub(crate) cargo: PathBuf,
}

impl Workspace {
    /// Finds them from what cargo told, and from where this program's file is: whatever set the folder of the build
    /// output (environment, configuration, an option), xtask itself was built into it.
    ///
    /// # Errors
    /// The program was moved out of its build folder.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let own = env::current_exe().context("cannot tell where xtask's own file is")?;
        let target = own
            .parent()
            .and_then(Path::parent)
            .with_context(|| format!("{} isn't in a build folder", own.display()))?;
        // A build folder may have been filled by another clone; cargo says which one runs now.
        let manifest =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest)
            .parent()
            .context("xtask's folder has no parent")?;
        Ok(Self {
            root: root.to_owned(),
            target: target.to_owned(),
            cargo: env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from),
        })
    }

    /// The finished program.
    pub(crate) fn rtrace(&self) -> PathBuf {
        self.target.join("release/rtrace")
    }
}
