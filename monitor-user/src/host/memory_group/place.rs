//! Where a process's group is: from `/proc/PID/cgroup` (cgroups(7)) and `/proc/PID/mountinfo`
//! (Linux Documentation/filesystems/proc.rst, 3.5).

use std::path::PathBuf;

use super::Version;

/// Version and name of the group that a controller has a process in.
///
/// The controller is in one hierarchy at a time: where version 1 has it there is a line of its own.
pub(super) fn group(text: &str, controller: &str) -> Option<(Version, String)> {
    let lines = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, name) = rest.split_once(':')?;
        Some((number, controllers, name))
    });
    let mut unified = None;
    for (number, controllers, name) in lines {
        if controllers.split(',').any(|word| word == controller) {
            return Some((Version::V1, name.to_owned()));
        }
        if number == "0" && controllers.is_empty() {
            unified = Some((Version::V2, name.to_owned()));
        }
    }
    unified
}

/// Where a group is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Where its hierarchy is mounted.
    pub(super) mount: PathBuf,
    /// Name of the group that is mounted there: a mount may show a part of the hierarchy, as in a container.
    pub(super) mounted: String,
    /// From there to the group.
    pub(super) below: String,
}

/// Where a controller's group would be by the mounts of its hierarchy, in the order of the mounts.
pub(super) fn places(mounts: &str, version: Version, controller: &str, name: &str) -> Vec<Place> {
    let place = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (plain(fields.next()?), plain(fields.next()?));
        let mut kinds = after.split(' ');
        let is_meant = match version {
            Version::V1 => {
                kinds.next() == Some("cgroup") && kinds.nth(1)?.split(',').any(|o| o == controller)
            }
            Version::V2 => kinds.next() == Some("cgroup2"),
        };
        // Names are relative to the namespace's top; what lies outside of that begins with "..".
        let rest = name.strip_prefix(root.trim_end_matches('/'))?;
        let is_within = (rest.is_empty() || rest.starts_with('/')) && !name.contains("/..");
        (is_meant && is_within).then(|| Place {
            mount: point.into(),
            below: rest.trim_matches('/').to_owned(),
            mounted: root.clone(),
        })
    };
    mounts.lines().filter_map(place).collect()
}

/// A path without the escapes of `mountinfo`: blank, tab, line feed and backslash are octal there.
pub(in crate::host) fn plain(path: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(path.to_owned(), |path, (escape, plain)| {
        path.replace(escape, plain)
    })
}
