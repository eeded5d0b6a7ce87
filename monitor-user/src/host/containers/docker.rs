//! Docker: `containers/ID/config.v2.json` in its data folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Parse, below, folders, homes, kubernetes, some};
use crate::event::Container;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "Config", default)]
    config: Config,
}

#[derive(Default, Deserialize)]
struct Config {
    #[serde(rename = "Labels", default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Daemon {
    #[serde(rename = "data-root")]
    data_root: Option<String>,
}

/// The files of all containers, also of users who run Docker themselves.
pub(super) fn files(root: &Path) -> Vec<(PathBuf, Parse)> {
    let settings = fs::read_to_string(root.join("etc/docker/daemon.json")).unwrap_or_default();
    let elsewhere = serde_json::from_str(&settings)
        .ok()
        .and_then(|daemon: Daemon| daemon.data_root);
    let own = homes(root)
        .into_iter()
        .map(|home| home.join(".local/share/docker"));
    let data = [
        Some(root.join("var/lib/docker")),
        elsewhere.map(|folder| below(root, &folder)),
    ];
    data.into_iter()
        .flatten()
        .chain(own)
        .flat_map(|data| folders(&data.join("containers")))
        .map(|folder| (folder.join("config.v2.json"), parse as Parse))
        .collect()
}

fn parse(_path: &Path, text: &str) -> Vec<Container> {
    let Ok(file) = serde_json::from_str::<File>(text) else {
        return Vec::new();
    };
    let name = file.name.trim_start_matches('/');
    let labels = file.config.labels.unwrap_or_default();
    let label = |name: &str| labels.get(name).cloned();
    // What Kubernetes says of its own ones.
    let named = Container {
        name: label("io.kubernetes.container.name"),
        pod: label("io.kubernetes.pod.name"),
        pod_id: label("io.kubernetes.pod.uid"),
        namespace: label("io.kubernetes.pod.namespace"),
        ..Container::default()
    };
    let own = Container {
        id: Some(file.id),
        runtime: Some("Docker".to_owned()),
        ..Container::default()
    };
    let by_name = kubernetes::in_name(name).unwrap_or_else(|| Container {
        name: some(name),
        ..Container::default()
    });
    vec![own.or(named).or(by_name)]
}
