//! Whether the trace can be written where it is to be.

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{Error, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use anyhow::{Context, anyhow, bail};
use nix::{
    fcntl::{AT_FDCWD, AtFlags, OFlag},
    sys::statvfs::statvfs,
    unistd::{AccessFlags, faccessat},
};

/// Room that a recording must find, bytes: what the shortest one writes, a few times over.
const LEAST_ROOM: usize = 64 << 10;

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
    in_the_way(output, fs::symlink_metadata(output))?;
    has_room(folder).map_err(|error| {
        anyhow!(
            "{}: {error}; make room ({} KiB at least), or choose another place with -o",
            cannot(),
            LEAST_ROOM >> 10
        )
    })
}

/// Whether a first piece of a trace would fit. It is tried with a file that has no name: free space that the
/// file system tells of may be kept for root, or be beyond the user's quota.
fn has_room(folder: &Path) -> std::io::Result<()> {
    let nameless = OpenOptions::new()
        .write(true)
        .mode(0o600)
        .custom_flags(OFlag::O_TMPFILE.bits())
        .open(folder);
    match nameless {
        Ok(mut file) => file.write_all(&vec![0; LEAST_ROOM]),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            ) =>
        {
            Err(error)
        }
        // NFS and some others have no such files.
        Err(_) => {
            let room = statvfs(folder)?;
            let free = room.blocks_available() * room.fragment_size();
            // Those that don't count their blocks say that there are none.
            if room.blocks() > 0 && free < LEAST_ROOM as u64 {
                return Err(ErrorKind::StorageFull.into());
            }
            Ok(())
        }
    }
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
