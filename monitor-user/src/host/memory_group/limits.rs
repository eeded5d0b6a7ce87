//! Limits that a command would escape in another group.

use super::{Group, Version};

/// In bytes; from here on version 1 means that there is none (`PAGE_COUNTER_MAX` in `include/linux/page_counter.h`).
const NONE: u64 = 1 << 62;

/// A limit that holds in `from` and not in `to`, in words. Both are in the same hierarchy.
pub(super) fn left_behind(from: &Group, to: &Group) -> Option<String> {
    // Version 1 before 5.11 may have limits that don't hold for groups below.
    let holds_below = from.read("memory.use_hierarchy").as_deref() != Some("0");
    for folder in from.folder.ancestors() {
        let is_same = folder == to.folder;
        if is_same || (to.folder.starts_with(folder) && holds_below) {
            return None;
        }
        if !folder.join("cgroup.procs").exists() {
            return None;
        }
        let group = Group {
            folder: folder.to_owned(),
            ..from.clone()
        };
        if let Some(limit) = own_limit(&group) {
            return Some(format!("{limit} of {}", folder.display()));
        }
    }
    None
}

/// The file of a group that holds a limit.
fn own_limit(group: &Group) -> Option<&'static str> {
    match group.version {
        Version::V1 => ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
            .into_iter()
            .find(|file| {
                let limit = group.read(file).and_then(|text| text.parse::<u64>().ok());
                limit.is_some_and(|limit| limit < NONE)
            }),
        // One hierarchy for all: who leaves the group leaves the limits of other controllers too.
        Version::V2 => [
            "memory.max",
            "memory.high",
            "memory.swap.max",
            "memory.swap.high",
            "pids.max",
            "cpu.max",
            "io.max",
            "cpuset.cpus",
            "cpuset.mems",
        ]
        .into_iter()
        .find(|file| {
            let limit = group.read(file).unwrap_or_default();
            !limit.is_empty() && !limit.starts_with("max")
        }),
    }
}
