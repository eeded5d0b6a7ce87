//! Trees of files as each runtime writes them.

use std::cell::Cell;

use super::{groups, *};

const A: &str = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf";
const B: &str = "b0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf";
const C: &str = "b0a1ffffa4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf";

struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn look(&self) -> Vec<Container> {
        Containers::default().look(self.0.path())
    }

    /// Words of each, in order of ids.
    fn words(&self) -> Vec<String> {
        self.look().iter().map(Container::words).collect()
    }
}

fn docker(id: &str, name: &str, labels: &str) -> String {
    format!(
        r#"{{"StreamConfig":{{}},"State":{{"Running":true,"Pid":77}},"ID":"{id}","Created":"2026-01-01T00:00:00Z",
        "Config":{{"Hostname":"h","Image":"debian","Labels":{labels}}},"Name":"{name}","RestartCount":0}}"#
    )
}

fn stored(id: &str, names: &str, metadata: &str) -> String {
    let metadata = metadata.replace('"', "\\\"");
    format!(
        r#"{{"id":"{id}","names":{names},"image":"i","layer":"l","metadata":"{metadata}","created":"2026-01-01T00:00:00Z","flags":{{}}}}"#
    )
}

#[test]
fn dockers_containers_are_in_its_data_folder_wherever_that_is() {
    let host = Host::new();
    host.file(
        &format!("var/lib/docker/containers/{A}/config.v2.json"),
        &docker(A, "/web", "{}"),
    )
    .file(
        "etc/docker/daemon.json",
        r#"{"data-root": "/srv/docker", "debug": true}"#,
    )
    .file(
        &format!("srv/docker/containers/{B}/config.v2.json"),
        &docker(B, "/db", "null"),
    )
    .file(
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nu:x:1000:1000::/srv/u:/bin/sh\n",
    )
    .file(
        &format!("srv/u/.local/share/docker/containers/{C}/config.v2.json"),
        &docker(C, "/mine", "{}"),
    );
    let expected = [
        "container web (Docker, a0a1a2a3a4a5)",
        "container db (Docker, b0a1a2a3a4a5)",
        "container mine (Docker, b0a1ffffa4a5)",
    ];
    assert_eq!(host.words(), expected);
}

#[test]
fn dockers_containers_of_kubernetes_are_named_by_labels_or_by_their_name() {
    let host = Host::new();
    let labels = r#"{"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"web-1",
        "io.kubernetes.pod.namespace":"shop","io.kubernetes.pod.uid":"11-22"}"#;
    host.file(
        &format!("var/lib/docker/containers/{A}/config.v2.json"),
        &docker(A, "/k8s_app_web-1_shop_11-22_0", labels),
    )
    .file(
        &format!("var/lib/docker/containers/{B}/config.v2.json"),
        &docker(B, "/k8s_side_web-1_shop_11-22_3", "{}"),
    );
    let expected = [
        "container app of pod shop/web-1 (Docker, a0a1a2a3a4a5)",
        "container side of pod shop/web-1 (Docker, b0a1a2a3a4a5)",
    ];
    assert_eq!(host.words(), expected);
    assert!(
        host.look()
            .iter()
            .all(|one| one.pod_id.as_deref() == Some("11-22"))
    );
}

#[test]
fn podmans_containers_are_in_the_list_of_its_storage() {
    let host = Host::new();
    let own = r#"{"image-name":"localhost/box","name":"one","created-at":1}"#;
    let volatile = r#"{"name":"gone-soon"}"#;
    host.file(
        "var/lib/containers/storage/overlay-containers/containers.json",
        &format!("[{}]", stored(A, r#"["one"]"#, own)),
    )
    .file(
        "var/lib/containers/storage/overlay-containers/volatile-containers.json",
        &format!("[{}]", stored(B, r#"["gone-soon"]"#, volatile)),
    )
    .file(
        "etc/containers/storage.conf",
        "[storage]\ndriver = \"vfs\"\n# graphroot = \"/no\"\ngraphroot = \"/data/pods\" # large\n",
    )
    .file(
        "data/pods/vfs-containers/containers.json",
        &format!("[{}]", stored(C, r#"["by-list"]"#, "")),
    );
    let expected = [
        "container one (Podman, a0a1a2a3a4a5)",
        "container gone-soon (Podman, b0a1a2a3a4a5)",
        "container by-list (Podman, b0a1ffffa4a5)",
    ];
    assert_eq!(host.words(), expected);
}

#[test]
fn cri_os_containers_are_told_by_their_pod() {
    let host = Host::new();
    let metadata = format!(
        r#"{{"pod-name":"k8s_web-1_shop_11-22_0","pod-id":"{B}","name":"k8s_app_web-1_shop_11-22_0","metadata-name":"app"}}"#
    );
    host.file(
        "var/lib/containers/storage/overlay-containers/containers.json",
        &format!(
            "[{}]",
            stored(A, r#"["k8s_app_web-1_shop_11-22_0"]"#, &metadata)
        ),
    );
    assert_eq!(
        host.words(),
        ["container app of pod shop/web-1 (CRI-O, a0a1a2a3a4a5)"]
    );
}

#[test]
fn containerds_containers_are_told_by_their_specification_and_by_their_log() {
    let host = Host::new();
    let annotations = r#"{"ociVersion":"1.1.0","annotations":{"io.kubernetes.cri.container-type":"container",
        "io.kubernetes.cri.container-name":"app","io.kubernetes.cri.sandbox-name":"web-1",
        "io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.sandbox-uid":"11-22"},
        "linux":{"cgroupsPath":"x"}}"#;
    let tasks = "run/containerd/io.containerd.runtime.v2.task";
    host.file(&format!("{tasks}/k8s.io/{A}/config.json"), annotations)
        .file(
            &format!("{tasks}/moby/{B}/config.json"),
            r#"{"ociVersion":"1.1.0"}"#,
        )
        .file(
            &format!("var/log/containers/web-1_shop_side-car-{B}.log"),
            "",
        )
        .file(&format!("var/log/containers/a_b-{C}.log"), "")
        .file("var/log/containers/web-1_shop_app-12.log", "");
    let expected = [
        "container app of pod shop/web-1 (containerd, a0a1a2a3a4a5)",
        "container side-car of pod shop/web-1 (containerd, b0a1a2a3a4a5)",
    ];
    assert_eq!(host.words(), expected);
}

#[test]
fn what_is_no_container_and_what_is_damaged_is_not_there() {
    let host = Host::new();
    assert_eq!(host.look(), []);
    host.file("var/lib/docker/containers/x/config.v2.json", "{")
        .file(
            "var/lib/docker/containers/y/config.v2.json",
            &docker("../../y", "/y", "{}"),
        )
        .file(
            "var/lib/containers/storage/vfs-containers/containers.json",
            "null",
        )
        .file("etc/docker/daemon.json", "[]")
        .file("etc/passwd", "broken\n::::::\n");
    assert_eq!(host.look(), []);
}

#[test]
fn what_has_changed_is_read_again_and_what_is_gone_is_forgotten() {
    let host = Host::new();
    let file = format!("var/lib/docker/containers/{A}/config.v2.json");
    let mut containers = Containers::default();
    let mut names = || {
        let all = containers.look(host.0.path());
        all.into_iter()
            .filter_map(|one| one.name)
            .collect::<Vec<_>>()
    };
    host.file(&file, &docker(A, "/old", "{}"));
    assert_eq!(names(), ["old"]);
    assert_eq!(names(), ["old"]);
    host.file(&file, &docker(A, "/renamed", "{}"));
    assert_eq!(names(), ["renamed"]);
    fs::remove_file(host.0.path().join(&file)).unwrap();
    assert_eq!(names(), [""; 0]);
}

#[test]
fn a_group_tells_its_container_and_its_pod() {
    let found = |path: String| {
        let found = groups::in_path(&path)?;
        Some((found.id?, found.pod_id))
    };
    let plain = |id: &str| Some((id.to_owned(), None));
    let of = |id: &str, pod: &str| Some((id.to_owned(), Some(pod.to_owned())));
    assert_eq!(found(format!("/docker/{A}")), plain(A));
    assert_eq!(found(format!("/system.slice/docker-{A}.scope")), plain(A));
    assert_eq!(
        found(format!("/machine.slice/libpod-{A}.scope/container")),
        plain(A)
    );
    assert_eq!(
        found(format!(
            "/machine.slice/machine-libpod_pod_{B}.slice/libpod-{A}.scope"
        )),
        of(A, B)
    );
    assert_eq!(found(format!("/libpod_parent/{B}/libpod-{A}")), of(A, B));
    assert_eq!(found(format!("/libpod_parent/libpod-{A}")), plain(A));
    assert_eq!(
        found(format!("/kubepods/burstable/pod11-22/{A}")),
        of(A, "11-22")
    );
    assert_eq!(
        found(format!(
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod11_22.slice/cri-containerd-{A}.scope"
        )),
        of(A, "11-22")
    );
    assert_eq!(
        found(format!(
            "/kubepods.slice/kubepods-pod11_22.slice/crio-{A}.scope"
        )),
        of(A, "11-22")
    );
    // One within another.
    assert_eq!(
        found(format!("/docker/{A}/kubepods/pod7/{B}/x")),
        of(B, "7")
    );
    for path in [
        "/",
        "/system.slice/cron.service",
        "/machine.slice/libpod-conmon-a.scope",
    ] {
        assert_eq!(found(path.to_owned()), None, "{path}");
    }
    assert_eq!(
        found(format!("/machine.slice/libpod-conmon-{A}.scope")),
        None
    );
    assert!(groups::names_of(A).all(|name| groups::id_in(&name) == Some(A)));
}

fn container(id: &str, name: &str, pod: &str) -> Container {
    Container {
        id: some(id),
        name: some(name),
        pod: some(pod),
        namespace: some("shop").filter(|_| !pod.is_empty()),
        ..Container::default()
    }
}

#[test]
fn a_container_is_chosen_by_id_name_or_the_beginning_of_its_id() {
    let all = [
        container(A, "app", "web-1"),
        container(B, "app", "web-2"),
        container(C, "b0a1", ""),
    ];
    let id = |text: &str| {
        let found = choose(&all, text, |_| false);
        found.map(|found| found.and_then(|one| one.id))
    };
    assert_eq!(id(A), Ok(some(A)));
    assert_eq!(id("a0a1"), Ok(some(A)));
    assert_eq!(id("web-2/app"), Ok(some(B)));
    assert_eq!(id("shop/web-1/app"), Ok(some(A)));
    assert_eq!(id("other/web-1/app"), Ok(None));
    // A name counts for more than the beginning of an id.
    assert_eq!(id("b0a1"), Ok(some(C)));
    assert_eq!(id("b0a1f"), Ok(some(C)));
    for none in ["a0a", "", "xyz", "ap", "web-1"] {
        assert_eq!(id(none), Ok(None), "{none}");
    }
}

#[test]
fn of_several_the_one_that_runs_is_meant_and_else_all_are_listed() {
    let all = [container(A, "app", "web-1"), container(B, "app", "web-2")];
    let why = choose(&all, "app", |_| false).unwrap_err();
    let expected = "several are called that: container app of pod shop/web-1 (a0a1a2a3a4a5); container app of pod \
         shop/web-2 (b0a1a2a3a4a5); name one by POD/NAME, NAMESPACE/POD/NAME or its id";
    assert_eq!(why, expected);
    assert_eq!(choose(&all, "app", |_| true).unwrap_err(), expected);
    let looked = Cell::new(0);
    let chosen = choose(&all, "app", |one| {
        looked.set(looked.get() + 1);
        one.id.as_deref() == Some(B)
    });
    assert_eq!(chosen.unwrap().and_then(|one| one.id), some(B));
    assert_eq!(looked.get(), 2);
    let many: Vec<Container> = (0..12)
        .map(|n| container(&format!("{n:064x}"), "app", ""))
        .collect();
    assert!(
        choose(&many, "app", |_| false)
            .unwrap_err()
            .contains(" and 2 more;")
    );
}
