use super::*;

/// A host with these files below its root.
struct Host {
    root: tempfile::TempDir,
}

const PID: u32 = 42;

impl Host {
    fn new(cgroup: &str, mountinfo: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let host = Self { root };
        host.file("proc/self/cgroup", cgroup);
        host.file("proc/self/mountinfo", mountinfo);
        host
    }

    fn file(&self, path: &str, content: &str) -> &Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A group of version 1 with the process in it.
    fn v1(&self, folder: &str) -> &Self {
        self.file(&format!("{folder}/cgroup.procs"), "7\n42\n")
            .file(&format!("{folder}/memory.usage_in_bytes"), "1\n")
            .file(&format!("{folder}/memory.use_hierarchy"), "1\n")
    }

    fn present(&self) -> Result<Group, String> {
        Group::present(self.root.path(), PID)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }
}

const V1_MOUNT: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

fn v1_job() -> Host {
    let host = Host::new("5:cpu:/\n4:memory:/slurm/job\n0::/\n", V1_MOUNT);
    host.v1("sys/fs/cgroup/memory")
        .v1("sys/fs/cgroup/memory/slurm")
        .v1("sys/fs/cgroup/memory/slurm/job")
        .file("sys/fs/cgroup/memory/cgroup.sane_behavior", "0\n");
    host
}

#[test]
fn the_hierarchy_that_has_the_memory_controller_counts() {
    let group = |text| place::group(text, "memory").unwrap();
    let hybrid = "2:cpu,memory:/a\n1:name=systemd:/b\n0::/c\n";
    assert_eq!(group(hybrid), (Version::V1, "/a".to_owned()));
    let unified = "1:name=systemd:/b\n0::/c:with:colons\n";
    assert_eq!(group(unified), (Version::V2, "/c:with:colons".to_owned()));
    assert_eq!(place::group("3:cpu:/\n", "memory"), None);
    assert_eq!(place::group("0:\nnonsense\n", "memory"), None);
}

#[test]
fn a_present_group_is_found_where_it_is_mounted() {
    let host = v1_job();
    let present = host.present().unwrap();
    assert_eq!(
        (present.version, present.name.as_str()),
        (Version::V1, "/slurm/job")
    );
    assert!(present.folder.ends_with("sys/fs/cgroup/memory/slurm/job"));
    assert!(!present.is_top());
    assert_eq!(present.charged().unwrap().name, "/slurm/job");
}

#[test]
fn in_a_container_a_part_of_the_hierarchy_is_mounted() {
    let mounts = "9 8 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                  35 31 0:32 /docker/a /sys/fs/cgroup/my\\040memory ro - cgroup cgroup rw,memory\n";
    let host = Host::new("4:memory:/docker/a/b\n", mounts);
    host.v1("sys/fs/cgroup/my memory/b");
    let present = host.present().unwrap();
    assert!(present.folder.ends_with("cgroup/my memory/b"));
    // Another container's group has a name that begins alike; one above the namespace has no place.
    for name in ["/docker/ab", "/../x", "/docker"] {
        assert!(
            place::places(mounts, Version::V1, "memory", name).is_empty(),
            "{name}"
        );
    }
}

#[test]
fn a_group_that_cannot_be_seen_is_not_taken_for_another() {
    let host = Host::new("4:memory:/job\n", V1_MOUNT);
    host.file("sys/fs/cgroup/memory/job/cgroup.procs", "7\n421\n");
    let why = host.present().unwrap_err();
    assert!(why.contains("/job is not mounted here"), "{why}");
    let none = Host::new("1:name=systemd:/\n", "");
    assert!(none.present().unwrap_err().contains("no control groups"));
}

#[test]
fn nothing_is_charged_to_the_top() {
    let host = Host::new("4:memory:/\n", V1_MOUNT);
    host.v1("sys/fs/cgroup/memory")
        .file("sys/fs/cgroup/memory/cgroup.sane_behavior", "0\n");
    let present = host.present().unwrap();
    assert!(present.is_top());
    assert_eq!(present.charged(), None);
}

#[test]
fn version_2_charges_the_next_group_above_that_has_the_controller() {
    let host = Host::new("0::/user/session/app\n", V2_MOUNT);
    host.file("sys/fs/cgroup/cgroup.procs", "")
        .file("sys/fs/cgroup/user/cgroup.type", "domain\n")
        .file("sys/fs/cgroup/user/memory.current", "1\n")
        .file("sys/fs/cgroup/user/session/cgroup.type", "domain\n")
        .file("sys/fs/cgroup/user/session/app/cgroup.type", "domain\n")
        .file("sys/fs/cgroup/user/session/app/cgroup.procs", "42\n");
    let present = host.present().unwrap();
    assert_eq!(present.charged().unwrap().name, "/user");
    fs::remove_file(host.path("sys/fs/cgroup/user/memory.current")).unwrap();
    assert_eq!(present.charged(), None);
}

#[test]
fn where_no_group_can_be_made_it_is_said_why() {
    let host = Host::new("0::/job\n", V2_MOUNT);
    host.file("sys/fs/cgroup/job/cgroup.type", "domain\n")
        .file("sys/fs/cgroup/job/cgroup.procs", "42\n");
    let why = |host: &Host| host.present().unwrap().make_child().unwrap_err();
    assert!(why(&host).contains("not at work in the present"));
    host.file("sys/fs/cgroup/job/cgroup.controllers", "cpu memory pids\n");
    assert!(why(&host).contains("has processes"));
    // A folder is made, but nothing comes up in it: this is no file system of control groups.
    host.file("sys/fs/cgroup/job/cgroup.subtree_control", "cpu memory\n");
    assert!(why(&host).contains("not at work in control groups made here"));
    let left = fs::read_dir(host.path("sys/fs/cgroup/job")).unwrap();
    assert!(left.flatten().all(|entry| entry.path().is_file()));
    let old = v1_job();
    old.file("sys/fs/cgroup/memory/slurm/job/memory.use_hierarchy", "0\n");
    assert!(why(&old).contains("use_hierarchy"));
}

#[test]
fn a_named_group_must_be_one_and_keep_all_limits() {
    let host = v1_job();
    let present = host.present().unwrap();
    let named = |path: &str| {
        // What is found is compared with a folder without links.
        let present = Group {
            folder: host.path("sys/fs/cgroup/memory/slurm/job"),
            mount: host.path("sys/fs/cgroup/memory"),
            ..present.clone()
        };
        Group::named(&host.path(path), &present)
    };
    host.v1("sys/fs/cgroup/memory/slurm/job/mine")
        .v1("sys/fs/cgroup/memory/other")
        .v1("elsewhere")
        .file("sys/fs/cgroup/cpu/cgroup.procs", "")
        .file("etc/passwd", "");
    let unlimited = "9223372036854771712\n";
    host.file(
        "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes",
        unlimited,
    );
    let mine = named("sys/fs/cgroup/memory/slurm/job/mine").unwrap();
    assert_eq!(mine.name, "/slurm/job/mine");
    assert_eq!(named("sys/fs/cgroup/memory/other").unwrap().name, "/other");
    host.file(
        "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes",
        "1000000\n",
    );
    assert!(named("sys/fs/cgroup/memory/slurm/job/mine").is_ok());
    for (path, words) in [
        ("sys/fs/cgroup/memory/other", "limit_in_bytes"),
        ("sys/fs/cgroup/memory", "top"),
        ("sys/fs/cgroup/cpu", "memory controller"),
        ("etc", "not the folder"),
        ("elsewhere", "hierarchy"),
        ("nowhere", "no such file"),
    ] {
        let why = named(path).unwrap_err();
        assert!(why.contains(words), "{path}: {why}");
    }
    // Then the job's limits wouldn't hold below it.
    host.file("sys/fs/cgroup/memory/slurm/job/memory.use_hierarchy", "0\n")
        .file(
            "sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes",
            "5\n",
        );
    assert!(named("sys/fs/cgroup/memory/slurm/job/mine").is_err());
}

#[test]
fn version_2_has_limits_of_other_controllers_too() {
    let host = Host::new("0::/job\n", V2_MOUNT);
    host.file("sys/fs/cgroup/cgroup.procs", "")
        .file("sys/fs/cgroup/job/cgroup.procs", "42\n")
        .file("sys/fs/cgroup/job/memory.max", "max\n")
        .file("sys/fs/cgroup/job/cpu.max", "max 100000\n")
        .file("sys/fs/cgroup/job/io.max", "\n");
    let present = host.present().unwrap();
    let other = Group {
        folder: present.mount.join("other"),
        ..present.clone()
    };
    assert_eq!(limits::left_behind(&present, &other), None);
    host.file("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    let limit = limits::left_behind(&present, &other).unwrap();
    assert!(limit.starts_with("cpu.max of"), "{limit}");
}

#[test]
fn only_groups_of_recorders_that_are_gone_are_removed() {
    let host = v1_job();
    let (pid, start) = (std::process::id(), start_of("self").unwrap());
    let folder = "sys/fs/cgroup/memory/slurm/job";
    let names = [
        format!("rtrace.{pid}.{start}"),
        format!("rtrace.{pid}.{}", start + 1),
        "rtrace.4194305.1".to_owned(),
        "rtrace.old".to_owned(),
        "rtrace.1.2.3".to_owned(),
        "other".to_owned(),
    ];
    for name in &names {
        fs::create_dir(host.path(&format!("{folder}/{name}"))).unwrap();
    }
    // Something is in it.
    host.file(&format!("{folder}/rtrace.4194306.1/x"), "");
    host.present().unwrap().remove_stale();
    let is_there = |name: &str| host.path(&format!("{folder}/{name}")).exists();
    assert_eq!(
        names.each_ref().map(|name| is_there(name)),
        [true, false, false, true, true, true]
    );
    assert!(is_there("rtrace.4194306.1"));
}

#[test]
fn a_charge_is_split_as_each_version_tells() {
    let old = "cache 1\nrss 2\nshmem 3\ntotal_cache 1000\ntotal_rss 500\ntotal_shmem 300\n";
    let split = meter::v1(old, Some(70));
    assert_eq!(
        (
            split.anon,
            split.file,
            split.shmem,
            split.kernel,
            split.page_tables
        ),
        (Some(500), Some(700), Some(300), Some(70), None)
    );
    let new = "anon 500\nfile 1000\nkernel 70\npagetables 9\nsec_pagetables 1\nshmem 300\nfile_mapped 5\n";
    let split = meter::v2(new);
    assert_eq!(
        (
            split.anon,
            split.file,
            split.shmem,
            split.kernel,
            split.page_tables
        ),
        (Some(500), Some(700), Some(300), Some(70), Some(9))
    );
    // 5.10 tells neither the kernel's share nor page tables.
    let split = meter::v2("anon 500\nfile 100\nshmem 300\n");
    assert_eq!(
        (split.file, split.kernel, split.page_tables),
        (Some(0), None, None)
    );
    assert_eq!(meter::v1("", None), crate::event::ChargeSplit::default());
}

#[test]
fn a_meter_reads_the_files_of_its_version() {
    let host = v1_job();
    host.file(
        "sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes",
        "4096\n",
    )
    .file(
        "sys/fs/cgroup/memory/slurm/job/memory.max_usage_in_bytes",
        "8192\n",
    );
    let meter = Meter::open(&host.present().unwrap()).unwrap();
    assert_eq!(
        (meter.usage(), meter.peak(), meter.processes()),
        (Some(4096), Some(8192), Some(2))
    );
    assert_eq!(
        (meter.split().total, meter.split().anon),
        (Some(4096), None)
    );
    host.file(
        "sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes",
        "5000\n",
    );
    assert_eq!(meter.usage(), Some(5000));
}

fn held(host: &Host, process: &str) -> Vec<(String, String, String)> {
    let held = held_limits(host.root.path(), process);
    held.into_iter()
        .map(|l| (l.group, l.file, l.value))
        .collect()
}

fn limit(group: &str, file: &str, value: &str) -> (String, String, String) {
    (group.to_owned(), file.to_owned(), value.to_owned())
}

#[test]
fn limits_of_all_groups_above_hold_with_the_innermost_first() {
    let host = Host::new("0::/a/b\n", V2_MOUNT);
    host.file("proc/7/cgroup", "0::/a/b\n")
        .file("sys/fs/cgroup/cgroup.procs", "")
        .file("sys/fs/cgroup/a/cgroup.procs", "")
        .file("sys/fs/cgroup/a/memory.max", "4096\n")
        .file("sys/fs/cgroup/a/pids.max", "max\n")
        .file("sys/fs/cgroup/a/b/cgroup.procs", "7\n")
        .file("sys/fs/cgroup/a/b/memory.max", "max\n")
        .file("sys/fs/cgroup/a/b/memory.swap.max", "0\n")
        .file("sys/fs/cgroup/a/b/pids.max", "100\n")
        .file("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n")
        .file("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    let (above, own) = ("/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b");
    let expected = [
        limit(own, "memory.swap.max", "0"),
        limit(above, "memory.max", "4096"),
        limit(own, "pids.max", "100"),
        limit(own, "cpu.max", "200000 100000"),
    ];
    assert_eq!(held(&host, "7"), expected);
    assert_eq!(held(&host, "8"), []);
}

#[test]
fn in_version_1_each_controller_has_its_own_place() {
    let mounts = format!(
        "{V1_MOUNT}36 31 0:33 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    );
    let host = Host::new("5:cpu,cpuacct:/c\n4:memory:/m\n0::/\n", &mounts);
    host.file("sys/fs/cgroup/memory/m/cgroup.procs", "")
        .file("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8192\n")
        .file(
            "sys/fs/cgroup/memory/m/memory.memsw.limit_in_bytes",
            "9223372036854771712\n",
        )
        .file("sys/fs/cgroup/cpu/c/cgroup.procs", "")
        .file("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n")
        .file("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n")
        .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
        .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    let expected = [
        limit("/sys/fs/cgroup/memory/m", "memory.limit_in_bytes", "8192"),
        limit("/sys/fs/cgroup/cpu/c", "cpu.cfs_quota_us", "50000"),
        limit("/sys/fs/cgroup/cpu/c", "cpu.cfs_period_us", "100000"),
    ];
    assert_eq!(held(&host, "self"), expected);
}
