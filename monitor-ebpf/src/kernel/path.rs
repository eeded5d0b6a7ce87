//! The working directory of a process: from its folder up to the top, over mount points.
//!
//! As the kernel's own `prepend_path` (`fs/d_path.c`, 5.10 to 7.2), but up to the top of the tree of mounts, whatever
//! the root of the process or of the recorder is, and without the locks that make a path whole while somebody renames
//! folders.

use monitor_ebpf::abi::{Cwd, absent};

use super::{Task, frozen, read_string, word_at};
use crate::maps::layout;

/// Longest name of a folder with its NUL (`NAME_MAX`).
const NAME: u32 = 256;

/// A folder as it is seen through a mount: addresses that are never taken for granted.
#[derive(Clone, Copy)]
struct Place {
    folder: u64,
    mount: u64,
}

/// What is one step up.
enum Up {
    /// The folder that this one is in.
    Folder(u64),
    /// The place that the file system is mounted on.
    Mount(Place),
    /// Nothing: that was the top.
    Top,
    /// Nothing, though it isn't the top.
    Nowhere,
}

impl Place {
    #[inline(always)]
    fn up(self) -> Up {
        let inner = self.mount.wrapping_add(u64::from(at!(path.mount_inner)));
        if self.folder == word_at(inner, at!(path.inner_root)) {
            let parent = word_at(self.mount, at!(path.mount_parent));
            if parent == self.mount || parent == 0 {
                return Up::Top;
            }
            return Up::Mount(Self {
                folder: word_at(self.mount, at!(path.mount_point)),
                mount: parent,
            });
        }
        let parent = word_at(self.folder, at!(path.folder_parent));
        if parent == self.folder || parent == 0 {
            Up::Nowhere
        } else {
            Up::Folder(parent)
        }
    }
}

impl Task {
    /// Writes names of folders, from its working directory outwards, each with its NUL: `names` has room for
    /// [`Cwd::FULL`] and a name more. What is written is counted in `length`, and what else there is to say stands in
    /// `flags`.
    ///
    /// # Safety
    /// All three are in a map value. (The verifier knows nothing of what is kept there; of a number in a register it
    /// would know so much that it followed each turn on its own to the end of the program.)
    #[inline(always)]
    pub(crate) unsafe fn read_directory(self, names: *mut u8, length: *mut u32, flags: *mut u32) {
        // SAFETY: see above; the verifier checks each access.
        unsafe {
            length.write_volatile(0);
            flags.write_volatile(Cwd::UNKNOWN);
            if absent(at!(path.task_fs)) {
                return;
            }
            let fs = word_at(self.address(), at!(path.task_fs));
            let inner = word_at(fs, at!(path.pwd_mount));
            let mut place = Place {
                folder: word_at(fs, at!(path.pwd_folder)),
                mount: inner.wrapping_sub(u64::from(at!(path.mount_inner))),
            };
            if fs == 0 || inner == 0 || place.folder == 0 {
                return;
            }
            let is_removed = word_at(place.folder, at!(path.folder_hash)) == 0
                && word_at(place.folder, at!(path.folder_parent)) != place.folder;
            let removed = if is_removed { Cwd::DELETED } else { 0 };
            flags.write_volatile(removed | Cwd::CUT);
            for _ in 0..Cwd::MOST_STEPS {
                match place.up() {
                    Up::Folder(parent) => {
                        let used = length.read_volatile();
                        if used >= Cwd::FULL {
                            return;
                        }
                        let name = word_at(place.folder, at!(path.folder_name));
                        let room = names.add((used & 4095) as usize);
                        let added = read_string(name as *const u8, room, NAME);
                        length.write_volatile(used + added);
                        place.folder = parent;
                    }
                    Up::Mount(above) => place = above,
                    Up::Top => {
                        let namespace = word_at(place.mount, at!(path.mount_namespace));
                        let lost = if namespace == 0 { Cwd::UNREACHABLE } else { 0 };
                        flags.write_volatile(flags.read_volatile() & !Cwd::CUT | lost);
                        return;
                    }
                    Up::Nowhere => {
                        flags.write_volatile(flags.read_volatile() & !Cwd::CUT | Cwd::UNREACHABLE);
                        return;
                    }
                }
            }
        }
    }
}
