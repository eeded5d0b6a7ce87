//! Names, creation and setting aside of the files of a trace.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::error::WriteError;

/// Only the owner may read a trace: it holds command lines.
const MODE: u32 = 0o600;

/// User and group that the files of a trace are to belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// The file that holds what isn't in the trace yet: `NAME.tail` beside `NAME`.
pub fn tail_path(path: &Path) -> PathBuf {
    with_suffix(path, ".tail")
}

/// `path` with something appended to its last part.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a file that doesn't exist, readable and writable by `owner` only.
///
/// Nothing that exists is opened, so neither a link nor a pipe in the way is followed.
pub(super) fn create_new(path: &Path, owner: Option<Owner>) -> Result<File, WriteError> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)
        .map_err(|error| WriteError::io("create", path, error))?;
    if let Some(owner) = owner {
        give(&file, owner).map_err(|error| WriteError::io("change the owner of", path, error))?;
    }
    Ok(file)
}

fn give(file: &File, owner: Owner) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) == (owner.uid, owner.gid) {
        return Ok(());
    }
    fchown(file, Some(owner.uid), Some(owner.gid))
}

/// Removes a file; that there is none is fine.
pub(super) fn remove(path: &Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WriteError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Whether `path` still means this file.
pub(super) fn still_there(path: &Path, file: &File) -> bool {
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}

/// Makes room for a new trace: an existing `path` becomes `path.old`, and its tail `path.old.tail`,
/// so that an old trace stays readable even if it was cut short. An older `path.old` is replaced.
///
/// Returns the new name, `None` if there was nothing to set aside.
///
/// # Errors
///
/// [`WriteError::NotAFile`] if a folder, a device or the like is in the way, and when the system
/// refuses.
pub fn set_aside(path: &Path) -> Result<Option<PathBuf>, WriteError> {
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WriteError::io("look at", path, error)),
    };
    if !kind.is_file() && !kind.is_symlink() {
        return Err(WriteError::NotAFile {
            path: path.to_owned(),
        });
    }
    let old = with_suffix(path, ".old");
    // The older trace goes first: its tail must never stand beside another trace.
    remove(&tail_path(&old))?;
    fs::rename(path, &old).map_err(|error| WriteError::io("rename", path, error))?;
    let tail = tail_path(path);
    match fs::rename(&tail, tail_path(&old)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WriteError::io("rename", &tail, error))
        }
        _ => Ok(Some(old)),
    }
}
