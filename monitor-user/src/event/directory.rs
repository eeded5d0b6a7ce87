//! Working directories.

/// The working directory of a process, as it is from the top of the tree of mounts that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Its path; bytes as the file systems have them. Without a slash in front if `is_cut`.
    pub path: Vec<u8>,
    /// The outermost folders are missing: it has more than 128 folders and mount points, or more than about 3,840 bytes.
    pub is_cut: bool,
    /// It has been removed; this is where it was.
    pub is_deleted: bool,
    /// Its file system isn't mounted any more, or not this part of it: the path begins there.
    pub is_unreachable: bool,
}
