//! Whether the trace can be written where it is to be.

use std::{
    fs::{self, Metadata},
    io::{Error, ErrorKind},
    os::unix::fs::MetadataExt,
    path::Path,
};

use anyhow::{Context, anyhow, bail};
use nix::{
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, faccessat},
};

/// Says early what would otherwise come to light only when the command runs already.
pub(super) fn check(output: &Path) -> anyhow::Result<()> {
    if output.is_dir() {
        bail!("cannot write {}: it is a folder", output.display());
    }
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let cannot = || format!("cannot write to {}", folder.display());
    let metadata = fs::metadata(folder).with_context(cannot)?;
    if !metadata.is_dir() {
        bail!("{}: it is no folder", cannot());
    }
    if metadata.nlink() == 0 {
        bail!("{}: it has been removed", cannot());
    }
    faccessat(AT_FDCWD, folder, AccessFlags::W_OK, AtFlags::AT_EACCESS)
        .map_err(Error::from)
        .with_context(cannot)?;
    in_the_way(output, fs::symlink_metadata(output))
}

/// A file or a link becomes NAME.old; anything else stays, and so does a name that can't be.
fn in_the_way(output: &Path, there: Result<Metadata, Error>) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", output.display());
    match there {
        Ok(there) if there.is_file() || there.is_symlink() => Ok(()),
        Ok(_) => Err(anyhow!("{}: it exists and is no file", cannot())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(cannot),
    }
}
