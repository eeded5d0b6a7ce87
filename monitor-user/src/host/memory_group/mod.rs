//! Control groups of the memory controller: which one this process is in, whether one of its own can be made for a
//! command inside of it, and what is charged to one.
//!
//! A group is only ever made below the one that the recorder is in itself, so that every limit that holds for the
//! recorder (a SLURM step's, a container's, a slice's) holds for the command too.

mod held;
mod limits;
mod meter;
pub(super) mod place;

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

pub use held::held_limits;
pub use meter::Meter;

/// Which group the command is charged to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// One of its own, if it can be made inside of the present one; else the present one.
    #[default]
    Auto,
    /// Whichever it is; its charge isn't read.
    Off,
    /// One that is there already: its folder.
    Path(PathBuf),
}

/// Versions of the memory controller, which differ in the names of files and in what may be made where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy of its own.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

impl Version {
    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// The file with what is charged to a group.
    fn usage(self) -> &'static str {
        match self {
            Self::V1 => "memory.usage_in_bytes",
            Self::V2 => "memory.current",
        }
    }
}

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name, as `/proc/PID/cgroup` has it.
    pub name: String,
    /// Version of the hierarchy that it is in.
    pub version: Version,
    /// Where that hierarchy, or what can be seen of it, is mounted.
    mount: PathBuf,
    /// Name of the group that is mounted there.
    mounted: String,
}

/// Beginning of the names of groups that rtrace makes; the recorder's pid and start follow.
const PREFIX: &str = "rtrace.";

impl Group {
    /// The group that a process is in, as far as the memory controller goes. `root` stands for `/`.
    ///
    /// # Errors
    /// Why there is none, or none that can be reached.
    pub fn present(root: &Path, pid: u32) -> Result<Self, String> {
        let read = |path: &str| {
            fs::read_to_string(root.join(path))
                .map_err(|error| format!("/{path} can't be read: {}", plain(&error)))
        };
        let (version, name) = place::group(&read("proc/self/cgroup")?, "memory")
            .ok_or("the kernel has no control groups for memory")?;
        let mounts = read("proc/self/mountinfo")?;
        let places = place::places(&mounts, version, "memory", &name);
        // The newest mount hides those before it.
        let mut reachable = places.into_iter().rev().map(|place| {
            let mount = root.join(place.mount.strip_prefix("/").unwrap_or(&place.mount));
            Self {
                folder: mount.join(place.below),
                name: name.clone(),
                version,
                mount,
                mounted: place.mounted,
            }
        });
        reachable
            .find(|group| group.has_process(pid))
            .ok_or_else(|| format!("the control group {name} is not mounted here"))
    }

    /// The group in a folder, inside of the hierarchy that `present` is in.
    ///
    /// # Errors
    /// Why it can't be used, in one sentence.
    pub fn named(path: &Path, present: &Self) -> Result<Self, String> {
        let folder = path.canonicalize().map_err(|error| plain(&error))?;
        let version = if folder.join(Version::V1.usage()).exists() {
            Version::V1
        } else if folder.join(Version::V2.usage()).exists() {
            Version::V2
        } else if folder.join("cgroup.procs").exists() {
            return Err("the memory controller is not at work in that control group".to_owned());
        } else {
            return Err("it is not the folder of a control group".to_owned());
        };
        let below = folder.strip_prefix(&present.mount).ok();
        let Some(below) = below.filter(|_| version == present.version) else {
            return Err("it is not in the hierarchy that this process is in".to_owned());
        };
        let group = Self {
            name: join(&present.mounted, &below.to_string_lossy()),
            folder,
            version,
            ..present.clone()
        };
        if group.is_top() {
            return Err("nothing is charged to the top control group".to_owned());
        }
        if let Some(limit) = limits::left_behind(present, &group) {
            return Err(format!("the command would leave a limit behind: {limit}"));
        }
        Ok(group)
    }

    /// Whether it is the top of its hierarchy, to which nothing is charged. (A namespace's top isn't.)
    pub fn is_top(&self) -> bool {
        match self.version {
            // Only the top has it (CFTYPE_ONLY_ON_ROOT in kernel/cgroup/cgroup-v1.c).
            Version::V1 => self.folder.join("cgroup.sane_behavior").exists(),
            // Only the top lacks it (CFTYPE_NOT_ON_ROOT in kernel/cgroup/cgroup.c).
            Version::V2 => !self.folder.join("cgroup.type").exists(),
        }
    }

    /// The group that its processes' memory is charged to: itself or, in version 2 without the memory controller, one
    /// above. `None`: it isn't charged to any.
    pub fn charged(&self) -> Option<Self> {
        if self.is_top() {
            return None;
        }
        if self.folder.join(self.version.usage()).exists() {
            return Some(self.clone());
        }
        if self.folder == self.mount {
            return None;
        }
        let (above, _) = self.name.trim_end_matches('/').rsplit_once('/')?;
        let above = Self {
            folder: self.folder.parent()?.to_owned(),
            name: join("/", above),
            ..self.clone()
        };
        above.charged()
    }

    /// Makes a group inside of this one, in which the calling process must be.
    ///
    /// # Errors
    /// Why it can't be made, in one sentence.
    pub fn make_child(&self) -> Result<Self, String> {
        let is_top = self.is_top();
        match self.version {
            Version::V1 => {
                // Before 5.11: what is in a group without it isn't charged to, nor limited by, those above.
                if !is_top && self.read("memory.use_hierarchy").as_deref() == Some("0") {
                    return Err(
                        "limits of the present control group would not hold in one below \
                                (memory.use_hierarchy is 0)"
                            .to_owned(),
                    );
                }
            }
            Version::V2 => self.share_memory_out(is_top)?,
        }
        let name = own_name().ok_or("/proc/self/stat can't be read")?;
        let child = Self {
            folder: self.folder.join(&name),
            name: join(&self.name, &name),
            ..self.clone()
        };
        let failed = |error: io::Error| {
            format!(
                "no control group can be made in {}: {}",
                self.name,
                plain(&error)
            )
        };
        fs::DirBuilder::new()
            .mode(0o755)
            .create(&child.folder)
            .map_err(failed)?;
        // The caller's umask may have taken what the recorder needs once it isn't root any more.
        let opened = fs::set_permissions(&child.folder, fs::Permissions::from_mode(0o755));
        if opened.is_err() || !child.folder.join(self.version.usage()).exists() {
            child.remove();
            return Err(
                "the memory controller is not at work in control groups made here".to_owned(),
            );
        }
        Ok(child)
    }

    /// Version 2: lets groups below have the memory controller, which a group with processes may not, but for the top.
    fn share_memory_out(&self, is_top: bool) -> Result<(), String> {
        let lists = |file| {
            let list = self.read(file).unwrap_or_default();
            list.split_whitespace().any(|word| word == "memory")
        };
        if lists("cgroup.subtree_control") {
            return Ok(());
        }
        if !lists("cgroup.controllers") {
            return Err(
                "the memory controller is not at work in the present control group".to_owned(),
            );
        }
        if !is_top {
            return Err("the present control group has processes, and version 2 then lets none below have the memory \
                        controller"
                .to_owned());
        }
        fs::write(self.folder.join("cgroup.subtree_control"), "+memory").map_err(|error| {
            format!(
                "the memory controller can't be had below: {}",
                plain(&error)
            )
        })
    }

    /// Puts a process into it.
    ///
    /// # Errors
    /// The system's.
    pub fn join(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    /// Removes it if no process is in it.
    pub fn remove(&self) {
        // What can't be removed is in use, and is tried again at the next start.
        let _in_use = fs::remove_dir(&self.folder);
    }

    /// Removes the groups inside of it that recorders left behind which were killed, once those are empty.
    pub fn remove_stale(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if let Some((pid, start)) = name.to_str().and_then(maker)
                && start_of(&pid.to_string()) != Some(start)
            {
                // The system refuses where a process is left.
                let _in_use = fs::remove_dir(entry.path());
            }
        }
    }

    fn has_process(&self, pid: u32) -> bool {
        let list = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        list.lines().any(|line| line.parse() == Ok(pid))
    }

    fn read(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(file)).ok()?;
        Some(text.trim().to_owned())
    }
}

/// Whether a group for a command could be made here: made and removed again. The text tells where, or why not.
///
/// # Errors
/// Why not, and what is read instead.
pub fn try_make() -> Result<String, String> {
    let present = Group::present(Path::new("/"), std::process::id())?;
    match present.make_child() {
        Ok(child) => {
            child.remove();
            let version = present.version.number();
            Ok(format!("version {version}, inside of {}", present.name))
        }
        Err(why) => Err(match present.charged() {
            Some(charged) => format!(
                "{why}; the charge of {} is read, which others share",
                charged.name
            ),
            None => why,
        }),
    }
}

/// Name of a group below another one.
fn join(above: &str, below: &str) -> String {
    format!(
        "{}/{}",
        above.trim_end_matches('/'),
        below.trim_matches('/')
    )
}

/// What the system said, without the number that Rust adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or(&text)
        .to_lowercase()
}

/// Name of the group that this process makes.
fn own_name() -> Option<String> {
    let start = start_of("self")?;
    Some(format!("{PREFIX}{}.{start}", std::process::id()))
}

/// Pid and start of the recorder that made a group of this name; `None`: no recorder did.
fn maker(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('.')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Start of a process in clock ticks since boot: field 22 of its `stat`.
fn start_of(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything, blanks and brackets too.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
