//! What bounds and shapes a program from outside.

use std::{collections::BTreeMap, fs, path::Path};

use super::memory_group::held_limits;
use crate::event::{Conditions, Ulimit};

/// Conditions of a process as they are now; `process` is its folder in `/proc`, such as `self`, `root` stands for `/`.
pub fn conditions(root: &Path, process: &str) -> Conditions {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let number = |path: &str| read(path)?.trim().parse().ok();
    let status = read(&format!("proc/{process}/status"));
    let field = |name: &str| {
        let line = status
            .as_ref()?
            .lines()
            .find_map(|line| line.strip_prefix(name));
        line.map(|line| line.trim().to_owned())
    };
    Conditions {
        // The first of four: the real one.
        uid: field("Uid:").and_then(|uids| uids.split_whitespace().next()?.parse().ok()),
        allowed_cpus: field("Cpus_allowed_list:"),
        cgroup_limits: held_limits(root, process),
        ulimits: read(&format!("proc/{process}/limits"))
            .map(|text| ulimits(&text))
            .unwrap_or_default(),
        overcommit_memory: number("proc/sys/vm/overcommit_memory"),
        overcommit_ratio: number("proc/sys/vm/overcommit_ratio"),
        transparent_hugepages: read("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text)),
    }
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_owned())
}

/// Lines of `/proc/PID/limits`: a name, two limits, a unit, with more than one blank between them.
fn ulimits(text: &str) -> BTreeMap<String, Ulimit> {
    text.lines().skip(1).filter_map(ulimit).collect()
}

fn ulimit(line: &str) -> Option<(String, Ulimit)> {
    let mut parts = line
        .split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let name = parts.next()?.to_lowercase().replace(' ', "_");
    let mut limit = || match parts.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let (soft, hard) = (limit()?, limit()?);
    Some((name, Ulimit { soft, hard }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     \n\
Max cpu time              unlimited            unlimited            seconds   \n\
Max open files            1024                 524288               files     \n\
Max nice priority         0                    0                    \n\
Max broken                x                    0                    files     \n";

    #[test]
    fn limits_have_numbers_unless_they_are_unlimited() {
        let limits = ulimits(LIMITS);
        let expected = [
            ("max_cpu_time", None, None),
            ("max_nice_priority", Some(0), Some(0)),
            ("max_open_files", Some(1024), Some(524_288)),
        ];
        let expected = expected.map(|(name, soft, hard)| (name.to_owned(), Ulimit { soft, hard }));
        assert_eq!(limits, BTreeMap::from(expected));
    }

    #[test]
    fn a_made_up_host_is_read_as_it_is_and_what_it_does_not_tell_is_not_known() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(conditions(root.path(), "7"), Conditions::default());
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        file(
            "proc/7/status",
            "Name:\ta\nUid:\t5\t6\t7\t8\nCpus_allowed_list:\t0-2,5\n",
        );
        file("proc/7/limits", LIMITS);
        file("proc/sys/vm/overcommit_memory", "2\n");
        file("proc/sys/vm/overcommit_ratio", "50\n");
        file(
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        );
        let read = conditions(root.path(), "7");
        assert_eq!(
            (read.uid, read.allowed_cpus.as_deref()),
            (Some(5), Some("0-2,5"))
        );
        assert_eq!(read.ulimits.len(), 3);
        assert_eq!(
            (read.overcommit_memory, read.overcommit_ratio),
            (Some(2), Some(50))
        );
        assert_eq!(read.transparent_hugepages.as_deref(), Some("madvise"));
    }
}
