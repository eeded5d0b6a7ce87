//! The working directory of a process that is there already, as `/proc` tells it.

use std::{
    fs,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::Path,
};

use crate::event::Directory;

/// What the kernel puts behind the path of a directory that has been removed.
const DELETED: &[u8] = b" (deleted)";
/// What it puts in front of one that isn't mounted any more, where it says so.
const UNREACHABLE: &[u8] = b"(unreachable)";

/// The working directory of a process now; `None`: it has ended, or it may not be read.
pub(super) fn working_directory(pid: u32) -> Option<Directory> {
    let link = format!("/proc/{pid}/cwd");
    let text = fs::read_link(&link).ok()?.into_os_string().into_vec();
    let is_removed = || {
        let there = fs::metadata(&link).ok();
        there.is_none_or(|there| there.nlink() == 0 || !is_at(&there, &text))
    };
    Some(parse(&text, is_removed))
}

/// Whether that is what a path leads to: then its name only looks like that of a directory that has been removed.
fn is_at(there: &fs::Metadata, path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let named = fs::metadata(path).ok();
    named.is_some_and(|named| named.dev() == there.dev() && named.ino() == there.ino())
}

fn parse(text: &[u8], is_removed: impl FnOnce() -> bool) -> Directory {
    let deleted = text.strip_suffix(DELETED).filter(|_| is_removed());
    let path = deleted.unwrap_or(text);
    let unreachable = path.strip_prefix(UNREACHABLE);
    Directory {
        path: unreachable.unwrap_or(path).to_vec(),
        is_cut: false,
        is_deleted: deleted.is_some(),
        is_unreachable: unreachable.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_adds_is_no_part_of_the_path() {
        let removed = parse(b"/a/b (deleted)", || true);
        assert_eq!(
            (removed.path.as_slice(), removed.is_deleted),
            (&b"/a/b"[..], true)
        );
        let named_so = parse(b"/a/b (deleted)", || false);
        assert_eq!(
            (named_so.path.as_slice(), named_so.is_deleted),
            (&b"/a/b (deleted)"[..], false)
        );
        let lost = parse(b"(unreachable)/x", || true);
        assert_eq!(
            (lost.path.as_slice(), lost.is_unreachable),
            (&b"/x"[..], true)
        );
    }

    #[test]
    fn the_own_directory_is_told() {
        let own = working_directory(std::process::id()).unwrap();
        let expected = std::env::current_dir().unwrap().into_os_string().into_vec();
        assert_eq!((own.path, own.is_deleted), (expected, false));
        // Above the highest that a kernel gives.
        assert_eq!(working_directory(5_000_000), None);
    }
}
