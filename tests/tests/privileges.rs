//! What rtrace needs to record, and what it keeps of that once it does.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rtrace_tests::{
    harness::{self, Recorder},
    victims::victim,
};

/// User and group that own nothing.
const NOBODY: u32 = 65534;
/// Numbers of capabilities (include/uapi/linux/capability.h).
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const KILL: u64 = 1 << 5;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_RESOURCE: u64 = 1 << 24;
const BPF: u64 = 1 << 39;

/// A folder that anybody may use, with copies of rtrace, which has the three capabilities, and of a victim.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let installed = Self { folder };
        fs::set_permissions(installed.path(""), fs::Permissions::from_mode(0o777))?;
        fs::copy(harness::binary()?, installed.path("rtrace"))?;
        fs::copy(victim("actor"), installed.path("actor"))?;
        harness::as_asked_for(&installed.path("rtrace"))?;
        Ok(installed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// rtrace as a user without rights.
    fn record(&self, act: &[&str]) -> Command {
        let mut call = as_nobody(&self.path("rtrace"));
        call.args(["record", "--quiet", "-o"])
            .arg(self.path("t.parquet"))
            .arg("--")
            .arg(self.path("actor"))
            .args(act);
        call.current_dir(self.folder.path());
        call
    }
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(program);
    command
}

/// Starts a command that waits, and waits until it does.
fn started(mut call: Command) -> anyhow::Result<Child> {
    let mut child = call.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.as_mut().context("stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let is_ready = lines.any(|line| line.is_ok_and(|line| line == "ready"));
    ensure!(is_ready, "never ready");
    Ok(child)
}

/// A field of `/proc/PID/status` as a number of base 16.
fn set_of(pid: u32, name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    Ok(u64::from_str_radix(
        line.context("no such field")?.trim(),
        16,
    )?)
}

fn child_of(pid: u32) -> anyhow::Result<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(children
        .split_whitespace()
        .next()
        .context("no child")?
        .parse()?)
}

/// What the recorder holds is no more than `most`, in effect or to be had back; the command has none of it.
fn holds_at_most(recorder: u32, most: u64) -> anyhow::Result<()> {
    for field in ["CapPrm:", "CapEff:"] {
        let held = set_of(recorder, field)?;
        ensure!(held & !most == 0, "{field} {held:x} is more than {most:x}");
        ensure!(held & KILL != 0, "signals couldn't be passed on: {held:x}");
    }
    ensure!(set_of(recorder, "CapInh:")? == 0);
    ensure!(set_of(recorder, "CapAmb:")? == 0);
    Ok(())
}

fn score(pid: u32) -> anyhow::Result<i32> {
    let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))?;
    Ok(score.trim().parse()?)
}

#[test]
fn three_capabilities_are_enough() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let installed = Installed::new()?;
    let output = installed.record(&["forks", "20"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", output.status);
    let trace = installed.path("t.parquet");
    let report = harness::report(&trace)?;
    ensure!(report.trust.complete, "{:?}", report.trust);
    assert_eq!(report.codes().get(&Some(7)), Some(&20));
    let metadata = fs::metadata(&trace)?;
    assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY));
    assert_eq!(metadata.mode() & 0o777, 0o600, "nobody else may read it");
    Ok(())
}

#[test]
fn of_three_capabilities_what_is_not_needed_is_given_up() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let installed = Installed::new()?;
    // `setpriv` and rtrace are one process after the other.
    let mut rtrace = started(installed.record(&["wait_for_input", "1"]))?;
    holds_at_most(rtrace.id(), KILL | BPF)?;
    let command = child_of(rtrace.id())?;
    assert_eq!(set_of(command, "CapPrm:")?, 0);
    drop(rtrace.stdin.take());
    ensure!(rtrace.wait()?.success());
    Ok(())
}

#[test]
fn without_capabilities_nothing_is_left_behind() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let installed = Installed::new()?;
    // A copy of the file has none.
    fs::copy(installed.path("rtrace"), installed.path("plain"))?;
    let before = harness::files_in(installed.folder.path())?;
    let mut call = as_nobody(&installed.path("plain"));
    call.args(["record", "-o"])
        .arg(installed.path("t.parquet"))
        .args(["--", "/bin/true"]);
    let output = call.output()?;
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("sudo"), "{said}");
    assert_eq!(harness::files_in(installed.folder.path())?, before);
    Ok(())
}

/// A command that waits until its input ends.
fn waiting() -> [std::ffi::OsString; 3] {
    let actor = victim("actor").into_os_string();
    [actor, "wait_for_input".into(), "1".into()]
}

#[test]
fn root_keeps_what_writes_and_signals_need() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let call = Recorder::new().call(&folder.path().join("t.parquet"), &waiting())?;
    let mut rtrace = started(call)?;
    holds_at_most(rtrace.id(), KILL | BPF | DAC_OVERRIDE | CHOWN)?;
    let own = score(std::process::id())?;
    assert_eq!(
        score(child_of(rtrace.id())?)?,
        own,
        "the command's is its own"
    );
    // Not where root itself may not: some hosts withhold the capability.
    let may_lower = set_of(std::process::id(), "CapEff:")? & SYS_RESOURCE != 0;
    let expected = if may_lower { own.min(-900) } else { own };
    assert_eq!(score(rtrace.id())?, expected, "the recorder is spared");
    drop(rtrace.stdin.take());
    ensure!(rtrace.wait()?.success());
    Ok(())
}

#[test]
fn what_looks_into_other_processes_is_kept_only_to_verify() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let recorder = Recorder::new().option("--verify");
    let call = recorder.call(&folder.path().join("t.parquet"), &waiting())?;
    let mut rtrace = started(call)?;
    let most = KILL | BPF | DAC_OVERRIDE | CHOWN | SYS_PTRACE;
    holds_at_most(rtrace.id(), most)?;
    ensure!(set_of(rtrace.id(), "CapEff:")? & SYS_PTRACE != 0);
    // The thread that compares has no more than that.
    for thread in fs::read_dir(format!("/proc/{}/task", rtrace.id()))? {
        let tid = thread?.file_name().to_string_lossy().parse()?;
        holds_at_most(tid, most)?;
    }
    let own = set_of(std::process::id(), "CapEff:")?;
    assert_eq!(
        set_of(child_of(rtrace.id())?, "CapEff:")?,
        own,
        "the command's are its own"
    );
    drop(rtrace.stdin.take());
    ensure!(rtrace.wait()?.success());
    Ok(())
}

#[test]
fn sigterm_reaches_a_command_of_another_user() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let installed = Installed::new()?;
    let line = [
        "setpriv".into(),
        "--reuid=65534".into(),
        "--regid=65534".into(),
        "--clear-groups".into(),
        installed.path("actor").into_os_string(),
        "wait_for_input".into(),
        "1".into(),
    ];
    let call = Recorder::new().call(&installed.path("t.parquet"), &line)?;
    let mut rtrace = started(call)?;
    let command = child_of(rtrace.id())?;
    assert_eq!(fs::metadata(format!("/proc/{command}"))?.uid(), NOBODY);
    // Held: the end of its input would end the command too.
    let _input = rtrace.stdin.take();
    kill(Pid::from_raw(i32::try_from(rtrace.id())?), Signal::SIGTERM)?;
    assert_eq!(rtrace.wait()?.code(), Some(128 + 15));
    Ok(())
}

#[test]
fn no_new_privileges_only_if_asked_for() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let look = ["/bin/grep", "^NoNewPrivs", "/proc/self/status"];
    let plain = harness::record(&look)?;
    assert_eq!(plain.stdout, "NoNewPrivs:\t0\n");
    let asked = Recorder::new().option("--no-new-privs").record(&look)?;
    assert_eq!(asked.stdout, "NoNewPrivs:\t1\n");
    Ok(())
}

#[test]
fn secrets_in_arguments_are_hidden_unless_they_are_to_be_kept() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let line = ["/bin/sh", "-c", "exec /bin/true --token=abc --user=me"];
    let words = |recorder: &Recorder| -> anyhow::Result<Vec<String>> {
        let report = recorder.record(&line)?.report()?;
        let root = report.root()?;
        let last = root.images.last().context("no image")?;
        let argv = last.argv.as_ref().context("no arguments")?;
        Ok(argv.iter().map(|word| format!("{word:?}")).collect())
    };
    let hidden = words(&Recorder::new())?.join(" ");
    assert!(
        hidden.contains("--token=[hidden]") && hidden.contains("--user=me"),
        "{hidden}"
    );
    let kept = words(&Recorder::new().option("--keep-args"))?.join(" ");
    assert!(kept.contains("--token=abc"), "{kept}");
    Ok(())
}

#[test]
fn without_root_only_processes_of_ones_own_are_attached_to() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let installed = Installed::new()?;
    let attach = |options: &[&str]| {
        let mut call = as_nobody(&installed.path("rtrace"));
        call.args(["record", "--quiet", "--duration=300ms", "-o"])
            .arg(installed.path("t.parquet"))
            .args(options)
            .current_dir(installed.folder.path());
        call.output()
    };
    let sleep = |call: &mut Command| call.arg("1000").spawn();
    let mut own = sleep(&mut as_nobody(Path::new("/bin/sleep")))?;
    let mut others = sleep(&mut Command::new("/bin/sleep"))?;
    harness::eventually("the user's own process", || {
        let owner = fs::metadata(format!("/proc/{}", own.id()))?.uid();
        let name = fs::read_to_string(format!("/proc/{}/comm", own.id()))?;
        Ok(owner == NOBODY && name == "sleep\n")
    })?;
    let (mine, theirs) = (own.id().to_string(), others.id().to_string());
    let recorded = attach(&["-p", &mine])?;
    let refused = attach(&["-p", &theirs])?;
    let all = attach(&["-a"])?;
    for child in [&mut own, &mut others] {
        child.kill()?;
        child.wait()?;
    }
    ensure!(recorded.status.success(), "{recorded:?}");
    let report = harness::report(&installed.path("t.parquet"))?;
    let process = report.by_pid(mine.parse()?)?;
    assert!(process.found_ns.is_some() && process.image()?.argv.is_some());
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (refused.status.code(), all.status.code()),
        (Some(125), Some(125))
    );
    let why = "only root may record the processes of others";
    assert!(said(&refused).contains(why), "{}", said(&refused));
    assert!(
        said(&all).contains("only root may record all processes"),
        "{}",
        said(&all)
    );
    Ok(())
}
