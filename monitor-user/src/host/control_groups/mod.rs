//! Control groups as one names them: by folder, or as `/proc/PID/cgroup` writes them, in whichever hierarchy
//! (cgroups(7)).

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::memory_group::place::plain;

/// Longest path of a group that can be waited for, bytes.
pub const LONGEST_PATH: usize = 511;

/// A hierarchy of control groups, with where it can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The kernel's number for it; 0 is version 2.
    pub number: u32,
    /// Its controllers, or its name (`name=systemd`); of version 2 nothing.
    controllers: String,
    /// Where it is mounted, and the path of the group that is to be seen there.
    mounts: Vec<(PathBuf, String)>,
}

/// What somebody has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Path from the top of the hierarchy, as `/proc/PID/cgroup` has it.
    pub path: String,
    /// Number of the hierarchy; `None`: the first in which there is such a group.
    pub hierarchy: Option<u32>,
}

/// A control group that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Number of its hierarchy.
    pub hierarchy: u32,
    /// Its path from the top.
    pub path: String,
    /// The kernel's number for it.
    pub id: u64,
    /// Whether there is a process in it or below.
    pub has_processes: bool,
}

/// All hierarchies of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies(Vec<Hierarchy>);

impl Hierarchy {
    /// In words: "version 2", "version 1, memory".
    fn words(&self) -> String {
        if self.controllers.is_empty() {
            "version 2".to_owned()
        } else {
            format!("version 1, {}", self.controllers)
        }
    }

    /// Which is looked at first: version 2, then the controllers that every service and container is in.
    fn rank(&self) -> (usize, u32) {
        let first = ["", "memory", "pids", "name=systemd"];
        let has = |wanted: &&str| self.controllers.split(',').any(|word| word == *wanted);
        let rank = first.iter().position(has).unwrap_or(first.len());
        (rank, self.number)
    }

    /// Where a group of it would be.
    fn folders(&self, path: &str) -> Vec<PathBuf> {
        let below = |(mount, top): &(PathBuf, String)| {
            let rest = path.strip_prefix(top.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/'))
                .then(|| mount.join(rest.trim_start_matches('/')))
        };
        self.mounts.iter().filter_map(below).collect()
    }

    fn existing(&self, path: &str) -> Option<Existing> {
        self.folders(path).into_iter().find_map(|folder| {
            let id = fs::metadata(&folder).ok()?.ino();
            folder.join("cgroup.procs").exists().then(|| Existing {
                hierarchy: self.number,
                path: path.to_owned(),
                id,
                has_processes: has_processes(&folder),
            })
        })
    }
}

impl Hierarchies {
    /// Those that are mounted. `root` stands for `/`.
    ///
    /// # Errors
    /// `/proc` can't be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup"))?;
        let mounts = fs::read_to_string(root.join("proc/self/mountinfo"))?;
        let mut all: Vec<Hierarchy> = groups
            .lines()
            .filter_map(|line| {
                let mut parts = line.splitn(3, ':');
                let number = parts.next()?.parse().ok()?;
                let controllers = parts.next()?.to_owned();
                let mounts = mounts.lines().filter_map(|line| mount(line, &controllers));
                let mounts = mounts.map(|(at, top)| {
                    let at = root.join(at.strip_prefix("/").unwrap_or(&at));
                    (at, top)
                });
                Some(Hierarchy {
                    number,
                    mounts: mounts.collect(),
                    controllers,
                })
            })
            .collect();
        all.sort_by_key(Hierarchy::rank);
        Ok(Self(all))
    }

    /// Understands a folder in a mounted hierarchy, a line of `/proc/PID/cgroup`, or a path from the top.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence.
    pub fn wanted(&self, text: &str) -> Result<Wanted, String> {
        let mut line = text.splitn(3, ':');
        let (path, hierarchy) = match (line.next(), line.next(), line.next()) {
            (Some(number), Some(controllers), Some(path)) if !number.contains('/') => {
                // The number is another one after each boot; the controllers say what is meant.
                let meant = self.0.iter().find(|h| h.controllers == controllers);
                let meant =
                    meant.ok_or_else(|| format!("there is no hierarchy '{controllers}' here"))?;
                (path.to_owned(), Some(meant.number))
            }
            _ => match self.below_mount(text) {
                Some((path, number)) => (path, Some(number)),
                None => (text.to_owned(), None),
            },
        };
        let path = format!("/{}", path.trim_matches('/'));
        if !text.contains(":/") && !text.starts_with('/') {
            return Err("its path must begin with /".to_owned());
        }
        if path == "/" {
            return Err("it is the top one, which has the whole host: use -a".to_owned());
        }
        let mut parts = path.split('/').skip(1);
        if parts.any(|part| part.is_empty() || part == "." || part == "..") {
            return Err("its path has an empty part, '.' or '..'".to_owned());
        }
        if path.len() > LONGEST_PATH {
            return Err(format!("its path is longer than {LONGEST_PATH} bytes"));
        }
        Ok(Wanted { path, hierarchy })
    }

    /// A folder's path in its hierarchy; of mounts within mounts the innermost counts.
    fn below_mount(&self, text: &str) -> Option<(String, u32)> {
        let folder = Path::new(text);
        let found = self.0.iter().flat_map(|hierarchy| {
            hierarchy.mounts.iter().filter_map(move |(mount, top)| {
                let rest = folder.strip_prefix(mount).ok()?.to_str()?;
                let path = format!("{}/{rest}", top.trim_end_matches('/'));
                Some((mount.components().count(), (path, hierarchy.number)))
            })
        });
        found
            .max_by_key(|(depth, _)| *depth)
            .map(|(_, found)| found)
    }

    /// The group if it is there; of several hierarchies the first in which it has processes, else the first.
    pub fn find(&self, wanted: &Wanted) -> Option<Existing> {
        let is_meant = |hierarchy: &&Hierarchy| {
            wanted
                .hierarchy
                .is_none_or(|number| hierarchy.number == number)
        };
        let there = self.0.iter().filter(is_meant);
        let mut there = there.filter_map(|hierarchy| hierarchy.existing(&wanted.path));
        let first = there.next()?;
        if first.has_processes {
            return Some(first);
        }
        Some(there.find(|group| group.has_processes).unwrap_or(first))
    }

    /// All groups of which `is_meant` takes the last part of the path, hierarchy by hierarchy in the order of
    /// [`Self::find`].
    pub fn named(&self, is_meant: &dyn Fn(&str) -> bool) -> Vec<Existing> {
        let mut found: Vec<Existing> = Vec::new();
        for hierarchy in &self.0 {
            for (mount, top) in &hierarchy.mounts {
                let top = top.trim_end_matches('/');
                for folder in below(mount, is_meant) {
                    let rest = folder.strip_prefix(mount).ok().and_then(Path::to_str);
                    let path = rest.map(|rest| format!("{top}/{rest}"));
                    let group = path.and_then(|path| hierarchy.existing(&path));
                    // What is mounted twice is seen twice.
                    found.extend(group.filter(|group| !found.contains(group)));
                }
            }
        }
        found
    }

    /// A hierarchy in words, by its number.
    pub fn words(&self, number: u32) -> Option<String> {
        let found = self.0.iter().find(|hierarchy| hierarchy.number == number);
        found.map(Hierarchy::words)
    }
}

/// Mount point and the path of what is mounted, if a line of `mountinfo` is about the hierarchy.
fn mount(line: &str, controllers: &str) -> Option<(PathBuf, String)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (top, point) = (plain(fields.next()?), plain(fields.next()?));
    let mut kinds = after.split(' ');
    let is_meant = match kinds.next()? {
        "cgroup2" => controllers.is_empty(),
        "cgroup" if !controllers.is_empty() => {
            let options: Vec<&str> = kinds.nth(1)?.split(',').collect();
            controllers.split(',').all(|word| options.contains(&word))
        }
        _ => false,
    };
    is_meant.then(|| (point.into(), top))
}

/// Folders below one, at any depth, that are called as wanted.
fn below(folder: &Path, is_meant: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_str().is_some_and(is_meant) {
                found.push(entry.path());
            }
            open.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Whether there is a process in a group or below it.
fn has_processes(folder: &Path) -> bool {
    let own = fs::read_to_string(folder.join("cgroup.procs"));
    if own.is_ok_and(|pids| !pids.trim().is_empty()) {
        return true;
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let mut folders = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        entry.file_type().ok()?.is_dir().then(|| entry.path())
    });
    folders.any(|folder| has_processes(&folder))
}

/// Whether this process sees the hierarchies from their top, and not from within a namespace of control groups. `root`
/// stands for `/`.
pub fn sees_the_top(root: &Path) -> bool {
    // include/linux/proc_ns.h: PROC_CGROUP_INIT_INO.
    const FIRST: u64 = 0xEFFF_FFFB;
    fs::metadata(root.join("proc/self/ns/cgroup")).map_or(true, |own| own.ino() == FIRST)
}

#[cfg(test)]
mod tests;
