//! Under the real sudo, with settings of our own that only these tests see: each call has mounts of its own.
//!
//! `RTRACE_WRITE_DOCS=1` writes a new user's first session to `docs/first-minutes.md`.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, ensure};
use rtrace_tests::harness;

/// Puts the settings in place, becomes a user without rights, and calls sudo in an environment of that user's.
const CALL: &str = r#"mount --bind "$1" /etc/sudoers || exit 99
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups -- env -i "PATH=/opt/conda/bin:/usr/bin:/bin" HOME=/nonexistent \
  CONDA_PREFIX=/opt/conda FSLDIR=/opt/fsl OMP_NUM_THREADS=1 "ODD=a b=c" LD_LIBRARY_PATH=/opt/lib sudo -n "$@""#;

/// Ways in which distributions and sites set sudo up.
const SETTINGS: [(&str, &str); 4] = [
    ("its own defaults", ""),
    (
        "Debian's",
        "Defaults env_reset\nDefaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\n",
    ),
    (
        "with a terminal of its own",
        "Defaults env_reset\nDefaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\nDefaults use_pty\n",
    ),
    ("keeping everything", "Defaults !env_reset\n"),
];

struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(settings: &str) -> anyhow::Result<Self> {
        let site = Self {
            folder: tempfile::tempdir()?,
        };
        fs::set_permissions(site.folder.path(), fs::Permissions::from_mode(0o777))?;
        fs::copy(harness::binary()?, site.path("rtrace"))?;
        let rule = "nobody ALL=(ALL:ALL) NOPASSWD: ALL\n";
        fs::write(site.path("sudoers"), format!("{settings}{rule}"))?;
        fs::set_permissions(site.path("sudoers"), fs::Permissions::from_mode(0o440))?;
        Ok(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `sudo rtrace record OPTIONS -o t.parquet -- COMMAND`.
    fn record(&self, options: &[&str], command: &[&str]) -> anyhow::Result<Output> {
        let mut call = Command::new("unshare");
        call.args(["--mount", "--", "/bin/sh", "-c", CALL, "sh"])
            .arg(self.path("sudoers"))
            .arg(self.path("rtrace"))
            .args(["record", "--quiet"])
            .args(options)
            .arg("-o")
            .arg(self.path("t.parquet"))
            .arg("--")
            .args(command)
            .current_dir(self.folder.path());
        let output = call.output().context("unshare")?;
        ensure!(
            output.status.code() != Some(99),
            "the settings can't be put in place"
        );
        Ok(output)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_command_runs_as_the_user_in_the_users_environment() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for (name, settings) in SETTINGS {
        let site = Site::new(settings)?;
        let output = site.record(&[], &["/bin/sh", "-c", "id -u; id -g; id -G; env"])?;
        ensure!(output.status.success(), "{name}: {}", said(&output));
        // A terminal of sudo's own ends lines as terminals do.
        let out = String::from_utf8(output.stdout)?.replace('\r', "");
        let mut lines = out.lines();
        let ids: Vec<_> = lines.by_ref().take(3).collect();
        assert_eq!(ids, ["65534"; 3], "{name}");
        let found: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once('=')).collect();
        let mut expected = BTreeMap::from([
            ("PATH", "/opt/conda/bin:/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
            ("CONDA_PREFIX", "/opt/conda"),
            ("FSLDIR", "/opt/fsl"),
            ("OMP_NUM_THREADS", "1"),
            ("ODD", "a b=c"),
            ("LD_LIBRARY_PATH", "/opt/lib"),
        ]);
        // The shell sets these itself.
        for own in ["PWD", "OLDPWD", "SHLVL", "_"] {
            if let Some(value) = found.get(own) {
                expected.insert(own, value);
            }
        }
        assert_eq!(found, expected, "{name}");
        let trace = site.path("t.parquet");
        let metadata = fs::metadata(&trace)?;
        assert_eq!((metadata.uid(), metadata.gid()), (65534, 65534), "{name}");
        let report = harness::report(&trace)?;
        ensure!(report.trust.complete, "{name}: {:?}", report.trust);
        let names = harness::files_in(site.folder.path())?;
        assert_eq!(names, ["rtrace", "sudoers", "t.parquet"], "{name}");
    }
    Ok(())
}

#[test]
fn root_is_meant_if_asked_for() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let site = Site::new("")?;
    let output = site.record(&["--as-root"], &["/usr/bin/id", "-u"])?;
    assert_eq!(String::from_utf8(output.stdout)?, "0\n");
    assert_eq!(fs::metadata(site.path("t.parquet"))?.uid(), 0);
    Ok(())
}

#[test]
fn a_folder_of_somebody_else_is_refused_before_the_command_runs() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let site = Site::new("")?;
    fs::set_permissions(site.folder.path(), fs::Permissions::from_mode(0o755))?;
    let output = site.record(&[], &["/bin/echo", "ran"])?;
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    let said = said(&output);
    assert!(said.starts_with("rtrace: cannot write to "), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(
        harness::files_in(site.folder.path())?,
        ["rtrace", "sudoers"]
    );
    Ok(())
}

#[test]
fn a_program_that_only_root_may_run_is_not_run() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let site = Site::new("")?;
    let program = site.path("mine");
    fs::copy("/bin/true", &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    let output = site.record(&[], &[program.to_str().context("path")?])?;
    assert_eq!(output.status.code(), Some(126), "{}", said(&output));
    Ok(())
}

#[test]
fn a_link_in_the_way_is_not_followed() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let site = Site::new("")?;
    let mine = tempfile::NamedTempFile::new()?;
    fs::write(mine.path(), "root's")?;
    std::os::unix::fs::symlink(mine.path(), site.path("t.parquet"))?;
    let output = site.record(&[], &["/bin/true"])?;
    ensure!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read(mine.path())?, b"root's");
    assert!(fs::symlink_metadata(site.path("t.parquet.old"))?.is_symlink());
    Ok(())
}

/// What a new user types, the status, and a part of what is answered.
const FIRST_SESSION: [(&str, i32, &str); 8] = [
    ("rtrace", 2, "Usage: rtrace <COMMAND>"),
    (
        "rtrace record -- python3 pool.py fork",
        125,
        "recording needs root or three capabilities",
    ),
    ("rtrace doctor", 1, "rtrace can't record here."),
    ("sudo rtrace doctor", 0, "rtrace can record here."),
    (
        "sudo rtrace record -- python3 pool.py fork",
        0,
        "next:      rtrace report trace.parquet",
    ),
    ("rtrace report", 0, "Complete"),
    ("rtrace report trace.parquat", 2, "there is no such file"),
    (
        "sudo rtrace record -o again.parquet -- pyhton3 pool.py fork",
        127,
        "pyhton3: command not found",
    ),
];

/// As [`CALL`], with a shell of the user's whose words are typed.
const SESSION: &str = r#"mount --bind "$1" /etc/sudoers || exit 99
exec setpriv --reuid=65534 --regid=65534 --clear-groups -- env -i "PATH=$2:/usr/bin:/bin" HOME=/nonexistent \
  /bin/sh -c "$3""#;

/// Control groups of this machine's own naming, which would tell a reader nothing.
fn own_groups() -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let names = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    Ok(names
        .filter(|name| name.len() > 1)
        .map(str::to_owned)
        .collect())
}

#[test]
fn a_new_user_gets_on_in_the_first_five_minutes() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let path = "/usr/bin:/bin";
    let site = Site::new("")?;
    let folder = site.folder.path().to_string_lossy().into_owned();
    // Installed as a package would: where sudo finds it too.
    let rule =
        format!("Defaults secure_path=\"{folder}:{path}\"\nnobody ALL=(ALL:ALL) NOPASSWD: ALL\n");
    fs::set_permissions(site.path("sudoers"), fs::Permissions::from_mode(0o640))?;
    fs::write(site.path("sudoers"), rule)?;
    fs::set_permissions(site.path("sudoers"), fs::Permissions::from_mode(0o440))?;
    fs::copy(
        rtrace_tests::victims::script("pool.py"),
        site.path("pool.py"),
    )?;
    let mut page = String::new();
    for (typed, status, expected) in FIRST_SESSION {
        let mut call = Command::new("unshare");
        call.args(["--mount", "--", "/bin/sh", "-c", SESSION, "sh"])
            .arg(site.path("sudoers"))
            .args([&folder, &format!("exec 2>&1; {typed}")])
            .current_dir(site.folder.path());
        let output = call.output()?;
        let said = String::from_utf8(output.stdout)?;
        ensure!(
            output.status.code() == Some(status),
            "{typed}: {}: {said}",
            output.status
        );
        ensure!(said.contains(expected), "{typed}: {said}");
        let shown = own_groups()?
            .iter()
            .fold(said.replace(&folder, "/usr/local/bin"), |text, group| {
                text.replace(group, "/the/session")
            });
        write!(page, "\n    $ {typed}\n")?;
        for line in shown.lines() {
            let line = format!("    {line}");
            writeln!(page, "{}", line.trim_end())?;
        }
    }
    if std::env::var_os("RTRACE_WRITE_DOCS").is_some() {
        let head = "# A new user's first minutes\n\nWritten by the test program `sudo`, from what a user without rights typed and \
                    what really came out:\n\n    RTRACE_WRITE_DOCS=1 cargo test --release -p rtrace-tests --test sudo\n\n\
                    The folder in which the test had put rtrace is shown as `/usr/local/bin`, its control group as `/the/session`.\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/first-minutes.md");
        fs::write(file, format!("{head}{page}"))?;
    }
    Ok(())
}

#[test]
fn the_group_of_the_command_is_removed_though_the_recorder_is_the_user_by_then()
-> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let site = Site::new("")?;
    let groups = "grep -o ':memory:.*\\|^0::.*' /proc/self/cgroup | head -n 1";
    let output = site.record(&[], &["/bin/sh", "-c", groups])?;
    ensure!(output.status.success(), "{}", said(&output));
    let said = String::from_utf8(output.stdout)?;
    let name = said.trim().rsplit(':').next().unwrap_or_default();
    let report = harness::report(&site.path("t.parquet"))?;
    let charge = report.tree.charge.context("no charge")?;
    // Version 2 lets no group be made where this test is, unless that is the top one.
    if charge.scope.as_deref() == Some("own") {
        assert_eq!(charge.group.as_deref(), Some(name));
        ensure!(
            charge.at_end.is_some_and(|end| end.total_bytes.is_some()),
            "{charge:?}"
        );
        let mounts = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
        let left = mounts.map(|mount| Path::new(mount).join(name.trim_matches('/')));
        ensure!(
            left.iter().all(|folder| !folder.exists()),
            "{name} is still there"
        );
    }
    Ok(())
}
