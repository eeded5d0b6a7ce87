//! Podman and CRI-O: `DRIVER-containers/containers.json` in the storage that both share.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Parse, below, entries, homes, kubernetes, some};
use crate::event::Container;

#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
    /// JSON, in a string.
    #[serde(default)]
    metadata: String,
}

/// What Podman or CRI-O itself keeps there.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Metadata {
    name: String,
    /// CRI-O alone has this.
    pod_id: String,
    #[serde(rename = "metadata-name")]
    in_pod: String,
}

/// The lists of all storages: of root, and of users who run Podman themselves. What lasts no longer than its container
/// is listed in a file of its own.
pub(super) fn files(root: &Path) -> Vec<(PathBuf, Parse)> {
    let settings = [
        "etc/containers/storage.conf",
        "usr/share/containers/storage.conf",
    ];
    let named = settings
        .into_iter()
        .filter_map(|file| fs::read_to_string(root.join(file)).ok())
        .filter_map(|text| graph_root(&text))
        .map(|folder| below(root, &folder));
    let usual =
        ["var/lib/containers/storage", "run/containers/storage"].map(|path| root.join(path));
    let own = homes(root)
        .into_iter()
        .map(|home| home.join(".local/share/containers/storage"));
    let mut storages: Vec<PathBuf> = named.chain(usual).chain(own).collect();
    storages.sort();
    storages.dedup();
    storages
        .iter()
        .flat_map(|storage| entries(storage))
        .filter(|entry| entry.file_name().to_string_lossy().ends_with("-containers"))
        .flat_map(|entry| {
            let lists = ["containers.json", "volatile-containers.json"];
            lists.map(|list| (entry.path().join(list), parse as Parse))
        })
        .collect()
}

/// `graphroot = "FOLDER"` of storage.conf(5).
fn graph_root(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.split('#').next()?.trim();
        let is_it = key.trim() == "graphroot";
        is_it
            .then(|| some(value.trim_matches(['"', '\''])))
            .flatten()
    })
}

fn parse(_path: &Path, text: &str) -> Vec<Container> {
    let Ok(list) = serde_json::from_str::<Vec<Entry>>(text) else {
        return Vec::new();
    };
    list.into_iter().map(container).collect()
}

fn container(entry: Entry) -> Container {
    let metadata: Metadata = serde_json::from_str(&entry.metadata).unwrap_or_default();
    let first = entry.names.unwrap_or_default().into_iter().next();
    let name = some(&metadata.name).or(first);
    let (runtime, named) = if metadata.pod_id.is_empty() {
        (
            "Podman",
            Container {
                name,
                ..Container::default()
            },
        )
    } else {
        let own = Container {
            name: some(&metadata.in_pod),
            ..Container::default()
        };
        let by_name = name.as_deref().and_then(kubernetes::in_name);
        ("CRI-O", by_name.unwrap_or_default().or(own))
    };
    Container {
        id: Some(entry.id),
        runtime: Some(runtime.to_owned()),
        ..named
    }
}
