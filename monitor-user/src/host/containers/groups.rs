//! Control groups as runtimes name them.

use super::{is_id, some};
use crate::event::Container;

/// What stands before and behind a container's id in the last part of its group's path, by whether systemd or the
/// runtime itself makes the group: of Docker, Podman, CRI-O, containerd and nerdctl, and of those who take the bare id.
const FORMS: [(&str, &str); 8] = [
    ("docker-", ".scope"),
    ("libpod-", ".scope"),
    ("libpod-", ""),
    ("crio-", ".scope"),
    ("crio-", ""),
    ("cri-containerd-", ".scope"),
    ("nerdctl-", ".scope"),
    ("", ""),
];

/// All names that the group of a container may have.
pub fn names_of(id: &str) -> impl Iterator<Item = String> {
    FORMS
        .iter()
        .map(move |(before, behind)| format!("{before}{id}{behind}"))
}

/// The id in the name of a container's group.
pub fn id_in(name: &str) -> Option<&str> {
    FORMS.iter().find_map(|(before, behind)| {
        let id = name.strip_prefix(before)?.strip_suffix(behind)?;
        is_id(id).then_some(id)
    })
}

/// The container that a group belongs to, with what the path tells of it. Of containers within containers the
/// innermost.
pub fn in_path(path: &str) -> Option<Container> {
    let parts: Vec<&str> = path.split('/').collect();
    let at = parts.iter().rposition(|part| id_in(part).is_some())?;
    let (own, above) = (parts.get(at)?, parts.get(..at)?);
    let pod = above.iter().rev().find_map(|part| pod_in(part));
    // Podman without systemd: a pod's group has its bare id.
    let of_podman = || {
        let is_podman = own.starts_with("libpod-");
        let last = above.last().filter(|part| is_podman && is_id(part))?;
        some(last)
    };
    Some(Container {
        id: id_in(own).map(str::to_owned),
        pod_id: pod.or_else(of_podman),
        ..Container::default()
    })
}

/// Id of a pod in the name of its group: `podUID`, `kubepods-burstable-podUID.slice` with `_` for `-`, or
/// `machine-libpod_pod_ID.slice`.
fn pod_in(name: &str) -> Option<String> {
    if let Some(uid) = name.strip_prefix("pod") {
        return some(uid);
    }
    let slice = name.strip_suffix(".slice")?;
    if let Some((_, id)) = slice.split_once("libpod_pod_") {
        return some(id);
    }
    let (before, uid) = slice.rsplit_once("-pod")?;
    before
        .starts_with("kubepods")
        .then(|| uid.replace('_', "-"))
}
