use super::*;

/// A made-up host: version 2 beside memory and cpu,cpuacct of version 1, and a hierarchy with only a name.
fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchies) {
    let root = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file(
        "proc/self/cgroup",
        "9:name=systemd:/\n5:cpu,cpuacct:/\n4:memory:/a\n0::/\n",
    );
    file(
        "proc/self/mountinfo",
        "30 1 0:26 / /cg rw - tmpfs tmpfs rw\n\
         31 30 0:27 / /cg/unified rw - cgroup2 cgroup2 rw\n\
         32 30 0:28 / /cg/memory rw - cgroup cgroup rw,memory\n\
         33 30 0:29 / /cg/cpu\\040acct rw - cgroup cgroup rw,cpuacct,cpu\n\
         34 30 0:30 /part /cg/systemd rw - cgroup cgroup rw,name=systemd\n",
    );
    for (path, text) in files {
        file(path, text);
    }
    let read = Hierarchies::read(root.path()).unwrap();
    (root, read)
}

fn wanted(path: &str, hierarchy: Option<u32>) -> Wanted {
    Wanted {
        path: path.to_owned(),
        hierarchy,
    }
}

#[test]
fn a_folder_tells_its_hierarchy_and_a_line_of_proc_does_too() {
    let (root, host) = host(&[]);
    let folder = |path: &str| {
        let folder = root.path().join(path);
        host.wanted(folder.to_str().unwrap())
    };
    assert_eq!(folder("cg/unified/a/b"), Ok(wanted("/a/b", Some(0))));
    assert_eq!(folder("cg/memory/a/"), Ok(wanted("/a", Some(4))));
    assert_eq!(folder("cg/cpu acct/a"), Ok(wanted("/a", Some(5))));
    // What is mounted there is a part of the hierarchy.
    assert_eq!(folder("cg/systemd/a"), Ok(wanted("/part/a", Some(9))));
    assert_eq!(host.wanted("0::/a"), Ok(wanted("/a", Some(0))));
    // Of another boot: the number says nothing.
    assert_eq!(host.wanted("7:memory:/a:b"), Ok(wanted("/a:b", Some(4))));
    assert_eq!(host.wanted("/a"), Ok(wanted("/a", None)));
    assert_eq!(host.wanted("/a:b:c"), Ok(wanted("/a:b:c", None)));
}

#[test]
fn what_is_no_group_is_refused_with_the_reason() {
    let (_root, host) = host(&[]);
    let why = |text: &str| host.wanted(text).unwrap_err();
    assert_eq!(why("a/b"), "its path must begin with /");
    assert_eq!(why("4:pids:/a"), "there is no hierarchy 'pids' here");
    assert_eq!(
        why("0::/"),
        "it is the top one, which has the whole host: use -a"
    );
    for text in ["/a/../b", "/a//b", "/a/./b"] {
        assert_eq!(why(text), "its path has an empty part, '.' or '..'");
    }
    let longest = format!("/{}", "a".repeat(LONGEST_PATH - 1));
    assert!(host.wanted(&longest).is_ok());
    assert!(why(&format!("{longest}a")).contains("longer than 511 bytes"));
}

#[test]
fn where_a_group_is_in_several_hierarchies_the_one_with_processes_is_meant() {
    let (_root, host) = host(&[
        ("cg/unified/a/cgroup.procs", ""),
        ("cg/memory/a/cgroup.procs", ""),
        ("cg/memory/a/b/cgroup.procs", "7\n"),
        ("cg/cpu acct/a/cgroup.procs", "7\n"),
        ("cg/unified/empty/cgroup.procs", ""),
        ("cg/memory/empty/cgroup.procs", ""),
        ("cg/memory/no_group/file", ""),
    ]);
    let find = |path, hierarchy| {
        let found = host.find(&wanted(path, hierarchy))?;
        Some((found.hierarchy, found.has_processes))
    };
    assert_eq!(find("/a", None), Some((4, true)));
    assert_eq!(find("/a", Some(0)), Some((0, false)));
    assert_eq!(find("/a", Some(5)), Some((5, true)));
    assert_eq!(find("/empty", None), Some((0, false)));
    assert_eq!(find("/empty", Some(5)), None);
    assert_eq!(find("/no_group", None), None);
    assert_eq!(find("/a/b/c", None), None);
    assert_eq!(host.words(0).as_deref(), Some("version 2"));
    assert_eq!(host.words(5).as_deref(), Some("version 1, cpu,cpuacct"));
    assert_eq!(host.words(6), None);
}

#[test]
fn the_number_of_a_group_is_its_folders() {
    let (root, host) = host(&[("cg/memory/a/cgroup.procs", "")]);
    let folder = root.path().join("cg/memory/a");
    let found = host.find(&wanted("/a", None)).unwrap();
    assert_eq!(found.id, fs::metadata(folder).unwrap().ino());
    assert_eq!(found.path, "/a");
}

#[test]
fn groups_are_found_by_their_name_wherever_they_are() {
    let (_root, host) = host(&[
        ("cg/memory/a/box/cgroup.procs", "7\n"),
        ("cg/unified/b/c/box/cgroup.procs", ""),
        ("cg/unified/box.not/cgroup.procs", ""),
        ("cg/systemd/box/cgroup.procs", ""),
        // No group.
        ("cg/cpu acct/box/file", ""),
    ]);
    let found = host.named(&|name| name == "box");
    let told: Vec<_> = found
        .iter()
        .map(|group| (group.hierarchy, group.path.as_str(), group.has_processes))
        .collect();
    let expected = [
        (0, "/b/c/box", false),
        (4, "/a/box", true),
        (9, "/part/box", false),
    ];
    assert_eq!(told, expected);
}
