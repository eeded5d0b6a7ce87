//! Kubernetes: what containerd keeps of each container, the links that the kubelet makes to their logs, and the names
//! that it gives to containers of other runtimes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Parse, entries, folders, is_id, some};
use crate::event::Container;

/// A container as the runtime's specification has it (`config.json`), as far as it is of interest.
#[derive(Deserialize)]
struct Specification {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The specifications of containerd's containers: `NAMESPACE/ID/config.json`, with namespaces of containerd itself.
pub(super) fn files(root: &Path) -> Vec<(PathBuf, Parse)> {
    folders(&root.join("run/containerd/io.containerd.runtime.v2.task"))
        .iter()
        .flat_map(|namespace| folders(namespace))
        .map(|folder| (folder.join("config.json"), parse as Parse))
        .collect()
}

fn parse(path: &Path, text: &str) -> Vec<Container> {
    let folder = path.parent().and_then(Path::file_name);
    let id = folder.map(|name| name.to_string_lossy().into_owned());
    let Ok(found) = serde_json::from_str::<Specification>(text) else {
        return Vec::new();
    };
    let told = |name: &str| {
        found
            .annotations
            .get(&format!("io.kubernetes.cri.{name}"))
            .cloned()
    };
    vec![Container {
        id,
        name: told("container-name"),
        runtime: Some("containerd".to_owned()),
        pod: told("sandbox-name"),
        pod_id: told("sandbox-uid"),
        namespace: told("sandbox-namespace"),
    }]
}

/// Containers by the links to their logs: `/var/log/containers/POD_NAMESPACE_NAME-ID.log`.
pub(super) fn logged(root: &Path) -> Vec<Container> {
    entries(&root.join("var/log/containers"))
        .filter_map(|entry| in_log(&entry.file_name().to_string_lossy()))
        .collect()
}

fn in_log(file: &str) -> Option<Container> {
    let (names, id) = file.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = names.split('_');
    let (pod, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && is_id(id)).then(|| Container {
        id: some(id),
        name: some(name),
        pod: some(pod),
        namespace: some(namespace),
        ..Container::default()
    })
}

/// A container by the name that the kubelet has a runtime give it: `k8s_NAME_POD_NAMESPACE_UID_ATTEMPT`, where no part
/// can have a `_`.
pub(super) fn in_name(name: &str) -> Option<Container> {
    let parts: Vec<&str> = name.split('_').collect();
    let ["k8s", name, pod, namespace, uid, _attempt] = parts[..] else {
        return None;
    };
    Some(Container {
        name: some(name),
        pod: some(pod),
        pod_id: some(uid),
        namespace: some(namespace),
        ..Container::default()
    })
}
