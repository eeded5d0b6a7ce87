//! Limits of control groups that hold for a process, of all controllers that limit what a program can have.

use std::{fs, path::Path};

use super::{Version, place};
use crate::event::HeldLimit;

/// Controllers, and the files in which each version keeps a limit.
const LIMITS: [(&str, &[&str], &[&str]); 3] = [
    (
        "memory",
        &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
        &["memory.max", "memory.high", "memory.swap.max"],
    ),
    ("pids", &["pids.max"], &["pids.max"]),
    (
        "cpu",
        &["cpu.cfs_quota_us", "cpu.cfs_period_us"],
        &["cpu.max"],
    ),
];

/// From here on version 1 means that there is none (`PAGE_COUNTER_MAX` in `include/linux/page_counter.h`).
const NO_BYTES: u64 = 1 << 62;

/// Every limit of the groups that a process is in and of those above, as far as they can be seen: the innermost
/// group first. `root` stands for `/`, `process` for the process's folder in `/proc`.
pub fn held_limits(root: &Path, process: &str) -> Vec<HeldLimit> {
    let read = |path: String| fs::read_to_string(root.join(path)).unwrap_or_default();
    let groups = read(format!("proc/{process}/cgroup"));
    let mounts = read("proc/self/mountinfo".to_owned());
    let mut held = Vec::new();
    for (controller, first, second) in LIMITS {
        let Some((version, name)) = place::group(&groups, controller) else {
            continue;
        };
        let files = match version {
            Version::V1 => first,
            Version::V2 => second,
        };
        // The newest mount hides those before it.
        let places = place::places(&mounts, version, controller, &name);
        let seen = places.into_iter().rev().find_map(|place| {
            let mount = root.join(place.mount.strip_prefix("/").unwrap_or(&place.mount));
            let folder = mount.join(&place.below);
            folder
                .join("cgroup.procs")
                .exists()
                .then_some((mount, folder))
        });
        let Some((mount, folder)) = seen else {
            continue;
        };
        for group in folder
            .ancestors()
            .take_while(|group| group.starts_with(&mount))
        {
            let shown = Path::new("/").join(group.strip_prefix(root).unwrap_or(group));
            held.extend(own(group, files).map(|(file, value)| HeldLimit {
                group: shown.display().to_string(),
                file: file.to_owned(),
                value,
            }));
        }
    }
    held
}

/// What limits a group itself: files and their contents.
fn own<'a>(group: &Path, files: &'a [&'a str]) -> impl Iterator<Item = (&'a str, String)> {
    let group = group.to_owned();
    let value = move |file: &str| {
        let text = fs::read_to_string(group.join(file)).ok()?;
        Some(text.trim().to_owned())
    };
    // A period without a quota limits nothing.
    let has_quota = value("cpu.cfs_quota_us").is_some_and(|quota| is_limit(&quota));
    files.iter().filter_map(move |file| {
        let value = value(file)?;
        let is_held = is_limit(&value) && (has_quota || *file != "cpu.cfs_period_us");
        is_held.then_some((*file, value))
    })
}

/// "max", "max 100000", -1 and the highest numbers stand for none.
fn is_limit(value: &str) -> bool {
    let first = value.split_whitespace().next().unwrap_or_default();
    match first.parse::<u64>() {
        Ok(number) => number < NO_BYTES,
        Err(_) => false,
    }
}
