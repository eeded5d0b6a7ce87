//! What is charged to a group, as its files tell.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
};

use nix::{
    fcntl::{OFlag, open, openat},
    sys::stat::Mode,
};

use super::{Group, Version};
use crate::{event::ChargeSplit, host::facts};

/// A group whose files can be read, also with fewer rights than it was opened with.
#[derive(Debug)]
pub struct Meter {
    folder: OwnedFd,
    version: Version,
}

impl Meter {
    /// Opens the group's folder.
    ///
    /// # Errors
    /// The system's.
    pub fn open(group: &Group) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
        Ok(Self {
            folder: open(&group.folder, flags, Mode::empty())?,
            version: group.version,
        })
    }

    /// What is charged now, bytes.
    pub fn usage(&self) -> Option<u64> {
        self.number(self.version.usage())
    }

    /// The highest charge since the group was made, bytes; version 2 tells since 5.19.
    pub fn peak(&self) -> Option<u64> {
        self.number(match self.version {
            Version::V1 => "memory.max_usage_in_bytes",
            Version::V2 => "memory.peak",
        })
    }

    /// Processes that are in the group itself.
    pub fn processes(&self) -> Option<u64> {
        u64::try_from(self.read("cgroup.procs")?.lines().count()).ok()
    }

    /// What the charge consists of now.
    pub fn split(&self) -> ChargeSplit {
        let total = self.usage();
        let stat = self.read("memory.stat").unwrap_or_default();
        let parts = match self.version {
            Version::V1 => v1(&stat, self.number("memory.kmem.usage_in_bytes")),
            Version::V2 => v2(&stat),
        };
        ChargeSplit {
            ns: facts::boot_ns(),
            total,
            ..parts
        }
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    /// Opened each time: version 1 gives a file that stays open the list of processes of up to a second ago.
    fn read(&self, file: &str) -> Option<String> {
        let flags = OFlag::O_CLOEXEC | OFlag::O_RDONLY;
        let file = openat(&self.folder, file, flags, Mode::empty()).ok()?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

fn field(stat: &str, name: &str) -> Option<u64> {
    let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(found, _)| *found == name)?;
    value.trim().parse().ok()
}

/// Version 1 (Linux Documentation/admin-guide/cgroup-v1/memory.rst, 5.2): `total_` is with the groups below, `cache` has
/// shared memory in it, and page tables are somewhere in the kernel's memory.
pub(super) fn v1(stat: &str, kernel: Option<u64>) -> ChargeSplit {
    let shmem = field(stat, "total_shmem");
    ChargeSplit {
        anon: field(stat, "total_rss"),
        file: without(field(stat, "total_cache"), shmem),
        shmem,
        kernel,
        ..ChargeSplit::default()
    }
}

/// Version 2 (Linux Documentation/admin-guide/cgroup-v2.rst, memory.stat): `file` has shared memory in it, `kernel` is
/// there since 5.18, `pagetables` since 5.11.
pub(super) fn v2(stat: &str) -> ChargeSplit {
    let shmem = field(stat, "shmem");
    ChargeSplit {
        anon: field(stat, "anon"),
        file: without(field(stat, "file"), shmem),
        shmem,
        kernel: field(stat, "kernel"),
        page_tables: field(stat, "pagetables"),
        ..ChargeSplit::default()
    }
}

/// CPUs add the two up at different moments, so that the part may be more than the whole.
fn without(whole: Option<u64>, part: Option<u64>) -> Option<u64> {
    Some(whole?.saturating_sub(part?))
}
