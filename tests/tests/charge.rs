//! What the memory controller charges, and the control group that is made for it and removed again.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use rtrace::{event::What, trace::Trace};
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::{Charge, ChargeSplit, Report},
    victims::victim,
};

const MIB: u64 = 1 << 20;

/// What the kernel charges ahead: up to 64 pages for each CPU.
fn charged_ahead() -> anyhow::Result<u64> {
    let cpus = std::thread::available_parallelism()?.get();
    Ok(u64::try_from(cpus)? * 64 * 4096)
}

/// Charged besides what a program uses by design: its own image and libraries, page tables, and what is charged ahead.
fn slack() -> anyhow::Result<u64> {
    Ok(6 * MIB + charged_ahead()?)
}

fn is_v1() -> bool {
    Path::new("/sys/fs/cgroup/memory/cgroup.procs").exists()
}

/// The folder of the top group.
fn top() -> &'static Path {
    Path::new(if is_v1() {
        "/sys/fs/cgroup/memory"
    } else {
        "/sys/fs/cgroup"
    })
}

/// The folder of the group of a name.
fn folder_of(name: &str) -> PathBuf {
    top().join(name.trim_matches('/'))
}

/// A group that is removed at the end.
struct Group {
    folder: PathBuf,
}

impl Group {
    fn new(name: &str) -> anyhow::Result<Self> {
        if !is_v1() {
            fs::write(top().join("cgroup.subtree_control"), "+memory")?;
        }
        let folder = top().join(format!("rtrace-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        format!("/{}", name.to_string_lossy())
    }

    fn limit(&self, mib: u64) -> anyhow::Result<()> {
        let file = if is_v1() {
            "memory.limit_in_bytes"
        } else {
            "memory.max"
        };
        fs::write(self.folder.join(file), (mib * MIB).to_string())?;
        if !is_v1() && self.folder.join("memory.swap.max").exists() {
            fs::write(self.folder.join("memory.swap.max"), "0")?;
        }
        Ok(())
    }

    /// Before 5.11 a group below wouldn't be limited by it, unless that is switched on.
    fn is_without_hierarchy(&self) -> bool {
        let file = self.folder.join("memory.use_hierarchy");
        fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
    }

    /// What starts a program in it, after other commands of a shell.
    fn shell(&self, then: &str) -> [OsString; 6] {
        let join = format!(
            "set -e; echo $$ > {}/cgroup.procs; {then} exec \"$@\"",
            self.folder.display()
        );
        ["unshare", "--mount", "sh", "-c", &join, "sh"].map(OsString::from)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..200 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn command(words: &[&str]) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![victim("charge").into()];
    command.extend(words.iter().map(OsString::from));
    command
}

/// A recording of a command that ended well, its charge, and the group that the command found itself in.
fn charged(how: &Recorder, words: &[&str]) -> anyhow::Result<(Recorded, Report, Charge, String)> {
    let recorded = how.record(&command(words))?;
    ensure!(
        recorded.status.code() == Some(0),
        "{}: {}",
        recorded.status,
        recorded.stderr
    );
    let report = recorded.complete_report()?;
    let charge = report.tree.charge.clone().context("no charge")?;
    let group = recorded.stdout.trim().to_owned();
    Ok((recorded, report, charge, group))
}

/// The charge of a group of the command's own, of which nothing is there any more.
fn own(words: &[&str]) -> anyhow::Result<(Recorded, Report, Charge)> {
    let (recorded, report, charge, group) = charged(&Recorder::new(), words)?;
    assert_eq!(
        (charge.scope.as_deref(), charge.group.as_deref()),
        (Some("own"), Some(group.as_str())),
        "{charge:?}"
    );
    assert_eq!(charge.version, Some(if is_v1() { 1 } else { 2 }));
    assert_eq!(charge.processes_at_end, Some(0));
    ensure!(group.contains("/rtrace."), "{group}");
    ensure!(!folder_of(&group).exists(), "{group} is still there");
    Ok((recorded, report, charge))
}

fn is_about(bytes: Option<u64>, mib: u64) -> anyhow::Result<()> {
    let bytes = bytes.context("not known")?;
    let (least, most) = (mib * MIB, mib * MIB + slack()?);
    ensure!(
        (least..=most).contains(&bytes),
        "{bytes} bytes are not {mib} MiB and a little"
    );
    Ok(())
}

/// The kernel's own peak, where it tells one: version 2 since 5.19.
fn peak_is_about(charge: &Charge, mib: u64) -> anyhow::Result<()> {
    is_about(charge.peak_seen_bytes, mib)?;
    ensure!(charge.peak_bytes.is_none() || charge.peak_bytes >= charge.peak_seen_bytes);
    if is_v1() || charge.peak_bytes.is_some() {
        is_about(charge.peak_bytes, mib)?;
    }
    Ok(())
}

/// Kinds are told with an error of up to 64 pages for each CPU, either way.
fn kind_is_about(bytes: Option<u64>, mib: u64) -> anyhow::Result<()> {
    is_about(bytes.map(|bytes| bytes + 2 * MIB), mib)
}

fn at_peak(charge: &Charge) -> anyhow::Result<ChargeSplit> {
    charge.at_peak.context("no look")
}

#[test]
fn private_memory_is_charged_and_the_group_is_removed() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (recorded, _, charge) = own(&["anon", "300"])?;
    peak_is_about(&charge, 300)?;
    let split = at_peak(&charge)?;
    kind_is_about(split.anon_bytes, 300)?;
    ensure!(split.file_bytes < Some(4 * MIB) && split.shmem_bytes < Some(2 * MIB));
    let end = charge.at_end.context("no look at the end")?;
    ensure!(
        end.total_bytes < Some(8 * MIB) && end.anon_bytes < Some(2 * MIB),
        "{end:?}"
    );
    let mut highest = None;
    for event in Trace::open(&recorded.trace)?.events() {
        if let What::Memory { charge, .. } = event?.what {
            ensure!(charge.is_some(), "a row without a charge");
            highest = highest.max(charge);
        }
    }
    is_about(highest, 300)?;
    ensure!(highest <= charge.peak_seen_bytes, "{highest:?} {charge:?}");
    let text = harness::text_report(&recorded.trace)?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        words.contains("charged by the memory controller, each page once: at most 30"),
        "{text}"
    );
    Ok(())
}

#[test]
fn pages_that_forks_share_are_charged_once() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (_, report, charge) = own(&["forks", "400", "8"])?;
    // Nine processes' page tables and stacks come on top.
    let bytes = charge.peak_seen_bytes.context("no peak")?;
    ensure!(
        (400 * MIB..430 * MIB).contains(&bytes),
        "{bytes} bytes are charged"
    );
    let sum = report.tree.peak_rss_sum_bytes.context("no sum")?;
    ensure!(sum > 9 * 400 * MIB, "{sum} bytes of RSS");
    kind_is_about(at_peak(&charge)?.anon_bytes, 400)?;
    Ok(())
}

#[test]
fn page_cache_is_told_apart_from_memory_of_processes() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    if std::env::var_os("RTRACE_EMULATED").is_some() {
        // There is no disk there whose files are cached.
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("data");
    fs::write(&file, vec![1_u8; 100 << 20])?;
    // Pages are charged to who brought them in: they must go out first.
    let sync = Command::new("dd")
        .arg(format!("of={}", file.display()))
        .args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0"])
        .stderr(Stdio::null())
        .status()?;
    ensure!(sync.success());
    let (_, _, charge) = own(&["read", &file.to_string_lossy()])?;
    let split = charge.at_end.context("no look at the end")?;
    kind_is_about(split.file_bytes, 100)?;
    ensure!(
        split.anon_bytes < Some(2 * MIB) && split.shmem_bytes < Some(2 * MIB),
        "{split:?}"
    );
    Ok(())
}

/// A file that is removed at the end.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

#[test]
fn what_outlasts_all_processes_is_named() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let file = File(format!("/dev/shm/rtrace-test-{}", std::process::id()).into());
    let (recorded, _, charge) = own(&["shm", &file.0.to_string_lossy(), "50"])?;
    ensure!(file.0.metadata()?.len() == 50 * MIB);
    let split = charge.at_end.context("no look at the end")?;
    kind_is_about(split.shmem_bytes, 50)?;
    ensure!(
        split.anon_bytes < Some(2 * MIB) && split.file_bytes < Some(4 * MIB),
        "{split:?}"
    );
    let text = harness::text_report(&recorded.trace)?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Before 5.13 CPUs keep some of the counted pages to themselves: 49.9 MiB.
    let is_named = ["50.", "49."]
        .iter()
        .any(|mib| words.contains(&format!("still charged after the last process: {mib}")));
    ensure!(
        is_named && words.contains("MiB in files in memory"),
        "{text}"
    );
    Ok(())
}

#[test]
fn off_is_off() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .option("--charge")
        .option("off")
        .record(&command(&["anon", "10"]))?;
    let report = recorded.complete_report()?;
    ensure!(report.tree.charge.is_none(), "{:?}", report.tree.charge);
    ensure!(!recorded.stdout.contains("rtrace."), "{}", recorded.stdout);
    ensure!(!harness::text_report(&recorded.trace)?.contains("charged"));
    Ok(())
}

/// Starts a recorder whose command says in which group it is, and waits.
fn started(folder: &Path) -> anyhow::Result<(Child, String)> {
    let mut call = Recorder::new().call(&folder.join("t.parquet"), &command(&["forever"]))?;
    let mut recorder = call.stdout(Stdio::piped()).spawn()?;
    let stdout = recorder.stdout.take().context("stdout")?;
    let line = BufReader::new(stdout).lines().next().context("no line")??;
    Ok((recorder, line))
}

fn processes_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let list = fs::read_to_string(folder.join("cgroup.procs"))?;
    Ok(list.lines().map(str::to_owned).collect())
}

#[test]
fn what_a_killed_recorder_leaves_the_next_one_removes() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let (mut recorder, name) = started(folder.path())?;
    let group = folder_of(&name);
    let [command] = processes_in(&group)?.try_into().ok().context("not one")?;
    recorder.kill()?;
    recorder.wait()?;
    // Somebody is still in it.
    own(&["anon", "1"])?;
    assert_eq!(processes_in(&group)?, [command.as_str()]);
    ensure!(
        Command::new("kill")
            .args(["-9", &command])
            .status()?
            .success()
    );
    harness::eventually(
        "the group is empty",
        || Ok(processes_in(&group)?.is_empty()),
    )?;
    ensure!(group.exists(), "it is gone already");
    own(&["anon", "1"])?;
    ensure!(!group.exists(), "{name} is still there");
    Ok(())
}

#[test]
fn an_interrupted_recording_removes_its_group() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let (mut recorder, name) = started(folder.path())?;
    let pid = recorder.id().to_string();
    ensure!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()?
            .success()
    );
    recorder.wait()?;
    ensure!(!folder_of(&name).exists(), "{name} is still there");
    Ok(())
}

#[test]
fn a_group_that_cannot_be_made_leaves_the_charge_of_the_present_one() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let present = Group::new("shared")?;
    // In a mount namespace of its own, the groups can't be written to.
    let read_only = format!("mount -o bind,remount,ro {};", top().display());
    let how = Recorder::new().under(&present.shell(&read_only));
    let (recorded, _, charge, group) = charged(&how, &["anon", "100"])?;
    assert_eq!(charge.scope.as_deref(), Some("shared"));
    assert_eq!(charge.group, Some(present.name()));
    assert_eq!(group, present.name());
    let why = charge.why_shared.clone().context("no reason")?;
    // Version 2 is refused before: the recorder itself is in the group. So is version 1 before 5.11.
    let expected = if !is_v1() {
        "has processes"
    } else if present.is_without_hierarchy() {
        "use_hierarchy"
    } else {
        "read-only"
    };
    ensure!(why.contains(expected), "{why}");
    let start = charge.start_bytes.context("no start")?;
    let bytes = charge.peak_seen_bytes.context("no peak")?;
    // What is charged ahead at the start is used up later.
    let least = 100 * MIB - charged_ahead()?;
    ensure!(
        (least..100 * MIB + slack()?).contains(&(bytes - start)),
        "{start} to {bytes}"
    );
    let text = harness::text_report(&recorded.trace)?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        words.contains(&format!(
            "to the control group {}, which others share",
            present.name()
        )),
        "{text}"
    );
    Ok(())
}

#[test]
fn without_control_groups_for_memory_the_rest_is_recorded() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let hidden = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        "umount -R -l /sys/fs/cgroup; exec \"$@\"",
        "sh",
    ];
    let how = Recorder::new().under(&hidden);
    let recorded = how.record(&command(&["anon", "10"]))?;
    let report = recorded.complete_report()?;
    let charge = report.tree.charge.context("no charge")?;
    ensure!(
        charge.scope.is_none() && charge.peak_seen_bytes.is_none(),
        "{charge:?}"
    );
    ensure!(
        charge
            .why_shared
            .context("no reason")?
            .contains("not mounted here")
    );
    ensure!(harness::text_report(&recorded.trace)?.contains("controller: not known"));
    Ok(())
}

#[test]
fn limits_of_the_present_group_hold_for_the_command() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let present = Group::new("limited")?;
    // The recorder's own maps are charged to it too.
    present.limit(200)?;
    let how = Recorder::new().under(&present.shell(""));
    let recorded = how.record(&command(&["anon", "600"]))?;
    let report = recorded.complete_report()?;
    assert_eq!(report.root()?.signal(), Some(9));
    let charge = report.tree.charge.context("no charge")?;
    let expected = if is_v1() { "own" } else { "shared" };
    let is_old = present.is_without_hierarchy();
    let expected = if is_old { "shared" } else { expected };
    assert_eq!(charge.scope.as_deref(), Some(expected), "{charge:?}");
    ensure!(charge.peak_seen_bytes <= Some(200 * MIB), "{charge:?}");
    if is_old {
        ensure!(
            charge
                .why_shared
                .context("no reason")?
                .contains("use_hierarchy")
        );
    }
    Ok(())
}

#[test]
fn a_named_group_is_used_unless_a_limit_would_be_left_behind() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (given, limited) = (Group::new("given")?, Group::new("limited")?);
    let to = |how: Recorder, path: &OsStr| how.option("--charge").option(path);
    let how = to(Recorder::new(), given.folder.as_os_str());
    let (_, _, charge, group) = charged(&how, &["anon", "100"])?;
    assert_eq!(
        (charge.scope.as_deref(), group),
        (Some("given"), given.name())
    );
    assert_eq!(charge.group, Some(given.name()));
    peak_is_about(&charge, 100)?;
    ensure!(given.folder.exists(), "it isn't rtrace's to remove");
    limited.limit(60)?;
    let escaping = to(
        Recorder::new().under(&limited.shell("")),
        given.folder.as_os_str(),
    );
    for (how, words) in [
        (escaping, "would leave a limit behind"),
        (
            to(Recorder::new(), OsStr::new("/etc")),
            "not the folder of a control group",
        ),
        (to(Recorder::new(), OsStr::new("/nowhere")), "no such file"),
    ] {
        let recorded = how.record(&command(&["anon", "1"]))?;
        assert_eq!(recorded.status.code(), Some(125), "{}", recorded.stderr);
        ensure!(recorded.stderr.contains(words), "{}", recorded.stderr);
        ensure!(
            recorded.stderr.contains("cannot use the control group"),
            "{}",
            recorded.stderr
        );
        ensure!(recorded.stdout.is_empty(), "the command ran");
    }
    Ok(())
}

#[test]
fn the_doctor_tells_whether_a_group_can_be_made() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let before = fs::read_dir(top())?.count();
    let output = Command::new(harness::binary()?).arg("doctor").output()?;
    let text = String::from_utf8(output.stdout)?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        words.contains("a memory control group can be made for the command"),
        "{text}"
    );
    assert_eq!(fs::read_dir(top())?.count(), before);
    Ok(())
}
