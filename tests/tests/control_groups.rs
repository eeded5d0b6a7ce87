//! Recording a control group: who is in it, who comes, and nobody else.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rtrace_tests::{
    groups::{self, Group},
    harness::{self, Recorder, eventually, tail_of},
    lone_surrogates::Text,
    report::{Process, Report},
};

/// A started program that is killed when the test ends.
struct Victim(Child);

impl Victim {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        Ok(Self(command.stdin(Stdio::null()).spawn()?))
    }

    fn shell(line: &str) -> anyhow::Result<Self> {
        Self::start(Command::new("/bin/sh").args(["-c", line]))
    }

    fn ended(&mut self) -> anyhow::Result<i32> {
        self.0.wait()?.code().context("a signal")
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

struct Recording {
    rtrace: Victim,
    trace: PathBuf,
}

impl Recording {
    /// Starts it; when this comes back, the kernel side is at work and all who are there have been found.
    fn start(folder: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let trace = folder.join("t.parquet");
        let recorder = options.iter().fold(Recorder::new(), |r, o| r.option(*o));
        let mut rtrace = Victim::start(&mut recorder.call::<&str>(&trace, &[])?)?;
        eventually("the trace", || {
            ensure!(rtrace.0.try_wait()?.is_none(), "rtrace has ended");
            Ok(tail_of(&trace).exists())
        })?;
        Ok(Self { rtrace, trace })
    }

    fn of(folder: &Path, group: &Group) -> anyhow::Result<Self> {
        Self::start(folder, &["--cgroup", &group.folder.to_string_lossy()])
    }

    fn interrupt(&self) -> anyhow::Result<()> {
        let pid = self.rtrace.0.id().try_into()?;
        Ok(kill(Pid::from_raw(pid), Signal::SIGINT)?)
    }

    fn report(&mut self) -> anyhow::Result<Report> {
        assert_eq!(self.rtrace.ended()?, 0);
        let report = harness::report(&self.trace)?;
        ensure!(report.trust.complete, "{:?}", report.trust);
        Ok(report)
    }
}

fn pids(report: &Report) -> BTreeSet<u32> {
    report.processes.iter().map(|process| process.pid).collect()
}

fn text(of: &Text) -> String {
    String::from_utf8_lossy(&of.0).into_owned()
}

fn moves(process: &Process) -> Vec<String> {
    let moves = process.moves.iter();
    moves.map(|moved| text(&moved.cgroup)).collect()
}

#[test]
fn it_begins_with_the_first_process_of_a_group_that_is_yet_to_be_made() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let group = Group::planned(groups::top(), "later");
    let mut recording = Recording::of(folder.path(), &group)?;
    let mut before = Victim::shell("exit 9")?;
    assert_eq!(before.ended()?, 9);
    group.begin()?;
    // Long enough for the recorder to look at its arguments, of which no exec tells.
    let line = format!("{}; (exit 5); /bin/sleep 0.5; exit 3", group.enter());
    let mut inside = Victim::shell(&line)?;
    assert_eq!(inside.ended()?, 3);
    // It ends by itself.
    let report = recording.report()?;
    assert_eq!(report.processes.len(), 3, "{:?}", pids(&report));
    let shell = report.by_pid(inside.0.id())?;
    assert_eq!((shell.code(), &shell.created_by), (Some(3), &None));
    assert!(shell.found_ns > report.recording.attached_ns);
    let argv = shell.image()?.argv.as_ref().context("no arguments")?;
    assert_eq!(argv.last().map(text), Some(line));
    let children = || report.processes.iter().filter(|p| p.pid != shell.pid);
    for child in children() {
        assert_eq!(child.creator.map(|id| id.pid), Some(shell.pid));
    }
    let codes: BTreeSet<_> = children().map(Process::code).collect();
    assert_eq!(codes, BTreeSet::from([Some(5), Some(0)]));
    let name = group.folder.file_name().context("name")?.to_string_lossy();
    assert_eq!(moves(shell), [format!("/{name}")]);
    let told = report.recording.group.context("no group")?;
    assert_eq!(told.wanted, group.folder.to_string_lossy());
    assert_eq!(told.path, Some(format!("/{name}")));
    assert!(told.hierarchy.is_some());
    assert_eq!(told.first_ns, Some(report.recording.start_ns));
    let shown = harness::text_report(&recording.trace)?;
    assert!(shown.starts_with("control group /rtrace_test_"), "{shown}");
    assert!(
        shown.contains("1 process came into the control group"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn exactly_those_in_it_and_below_are_recorded() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let group = Group::make(groups::top(), "there")?;
    let below = Group {
        folder: group.folder.join("below"),
    };
    below.begin()?;
    let beside = Group::make(groups::top(), "there_not")?;
    let sleeps = |group: &Group| Victim::shell(&format!("{}; exec sleep 1000", group.enter()));
    let inside = [sleeps(&group)?, sleeps(&below)?];
    let outside = [sleeps(&beside)?, Victim::shell("exec sleep 1000")?];
    let listed = |group: &Group| -> anyhow::Result<BTreeSet<u32>> {
        let text = fs::read_to_string(group.folder.join("cgroup.procs"))?;
        Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?)
    };
    eventually("all are where they belong", || {
        let there = [&group, &below, &beside].map(listed);
        Ok(there
            .into_iter()
            .all(|pids| pids.is_ok_and(|pids| pids.len() == 1)))
    })?;
    let mut recording = Recording::of(folder.path(), &group)?;
    // Others do something meanwhile, and one comes.
    let mut others = Victim::shell(&format!("{}; (exit 0); exit 0", beside.enter()))?;
    assert_eq!(others.ended()?, 0);
    let comes = format!(
        "echo {} > {}/cgroup.procs",
        outside[1].0.id(),
        below.folder.display()
    );
    assert_eq!(Victim::shell(&comes)?.ended()?, 0);
    recording.interrupt()?;
    let report = recording.report()?;
    let expected = [&inside[0], &inside[1], &outside[1]].map(|victim| victim.0.id());
    assert_eq!(pids(&report), BTreeSet::from(expected));
    let both: BTreeSet<u32> = listed(&group)?.union(&listed(&below)?).copied().collect();
    assert_eq!(pids(&report), both);
    drop((inside, outside));
    Ok(())
}

#[test]
fn who_leaves_stays_recorded_with_what_it_creates() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let group = Group::make(groups::top(), "left")?;
    let other = Group::make(groups::top(), "left_for")?;
    let mut recording = Recording::of(folder.path(), &group)?;
    let line = format!("{}; {}; (exit 6); exit 2", group.enter(), other.enter());
    let mut inside = Victim::shell(&line)?;
    assert_eq!(inside.ended()?, 2);
    let report = recording.report()?;
    assert_eq!(report.processes.len(), 2);
    let shell = report.by_pid(inside.0.id())?;
    let names = [&group, &other].map(|group| {
        let name = group.folder.file_name().unwrap_or_default();
        format!("/{}", name.to_string_lossy())
    });
    assert_eq!(moves(shell), names);
    let child = report.processes.iter().find(|p| p.pid != shell.pid);
    assert_eq!(child.and_then(Process::code), Some(6));
    Ok(())
}

#[test]
fn without_its_hook_a_group_that_is_made_later_is_not_recorded() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let group = Group::planned(groups::top(), "unseen");
    let path = group.folder.to_string_lossy();
    let options = ["--without", "cgroup_mkdir", "--cgroup", &path];
    let mut recording = Recording::start(folder.path(), &options)?;
    group.begin()?;
    let mut inside = Victim::shell(&format!("{}; (exit 5); exit 3", group.enter()))?;
    assert_eq!(inside.ended()?, 3);
    recording.interrupt()?;
    assert_eq!(recording.rtrace.ended()?, 0);
    let report = harness::report(&recording.trace)?;
    assert_eq!(report.processes.len(), 0);
    assert!(!report.trust.complete);
    let is_told = |note: &String| note.contains("cgroup_mkdir");
    assert!(report.trust.notes.iter().any(is_told), "{:?}", report.trust);
    Ok(())
}

/// clone3 with `CLONE_INTO_CGROUP`; the child ends with 4.
const INTO: &str = "
import ctypes, os, struct, sys
group = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
arguments = struct.pack('11Q', 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, group)
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall(435, ctypes.c_char_p(arguments), ctypes.c_size_t(len(arguments)))
if pid == 0:
    os._exit(4)
if pid < 0:
    sys.exit('clone3: ' + os.strerror(ctypes.get_errno()))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
print(pid)
";

#[test]
fn who_is_created_in_it_from_outside_is_recorded() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let Some(top) = groups::top_of_version_2() else {
        println!("NOT RUN: version 2 of control groups is not mounted here");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let group = Group::make(top, "into")?;
    let mut recording = Recording::of(folder.path(), &group)?;
    let output = Command::new("/usr/bin/python3")
        .args(["-c", INTO])
        .arg(&group.folder)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let pid: u32 = String::from_utf8(output.stdout)?.trim().parse()?;
    let report = recording.report()?;
    assert_eq!(pids(&report), BTreeSet::from([pid]));
    let child = report.by_pid(pid)?;
    assert_eq!((child.code(), &child.created_by), (Some(4), &None));
    let told = report.recording.group.context("no group")?;
    assert_eq!(told.hierarchy.as_deref(), Some("version 2"));
    Ok(())
}

#[test]
fn a_container_made_by_hand_is_seen_from_outside_with_both_pids() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let group = Group::make(groups::top(), "box")?;
    let mut recording = Recording::of(folder.path(), &group)?;
    let inner = folder.path().join("inner");
    let line = format!(
        "{}; exec unshare --pid --fork --mount-proc --uts --ipc /bin/sh -c \
         '(exit 7); cat /proc/self/stat > {}; exit 8'",
        group.enter(),
        inner.display()
    );
    let mut outer = Victim::shell(&line)?;
    assert_eq!(outer.ended()?, 8);
    let report = recording.report()?;
    let own = report.by_pid(outer.0.id())?;
    assert_eq!(
        own.pid_ns_level,
        Some(0).filter(|_| own.pid_ns_level.is_some())
    );
    let within = |process: &&Process| process.pid_ns_level == Some(1);
    let inside: Vec<&Process> = report.processes.iter().filter(within).collect();
    assert_eq!(inside.len(), 3, "{:?}", report.processes);
    assert_eq!(report.processes.len(), 4);
    let numbers: BTreeSet<_> = inside.iter().map(|process| process.pid_ns).collect();
    assert_eq!(numbers, BTreeSet::from([Some(1), Some(2), Some(3)]));
    let first = inside.iter().find(|process| process.pid_ns == Some(1));
    assert_eq!(first.and_then(|process| process.code()), Some(8));
    // What cat has read of itself, in there.
    let stat = fs::read_to_string(inner)?;
    let cat = inside.iter().find(|process| process.pid_ns == Some(3));
    assert!(stat.starts_with("3 (cat) "), "{stat}");
    assert_eq!(cat.and_then(|process| process.code()), Some(0));
    Ok(())
}

#[test]
fn with_a_duration_it_goes_on_while_nobody_is_there() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let group = Group::make(groups::top(), "stays")?;
    let path = group.folder.to_string_lossy();
    let mut recording = Recording::start(folder.path(), &["--duration=1h", "--cgroup", &path])?;
    let enters = format!("{}; exit 1", group.enter());
    assert_eq!(Victim::shell(&enters)?.ended()?, 1);
    // Longer than it would take for the recording to end by itself.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(Victim::shell(&enters)?.ended()?, 1);
    recording.interrupt()?;
    let report = recording.report()?;
    assert_eq!(report.processes.len(), 2);
    Ok(())
}

#[test]
fn what_is_no_group_is_refused() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    // The top of whichever hierarchy there is.
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let line = own.lines().next().context("no control group")?;
    let end = line.rfind(':').context("no path")?;
    let top = format!("{}:/", &line[..end]);
    for (name, why) in [
        ("relative", "its path must begin with /"),
        (
            top.as_str(),
            "it is the top one, which has the whole host: use -a",
        ),
        ("1:nonsense:/a", "there is no hierarchy 'nonsense' here"),
    ] {
        let recorder = Recorder::new().option("--cgroup").option(name);
        let output = recorder.call::<&str>(&trace, &[])?.output()?;
        assert_eq!(output.status.code(), Some(125), "{name}");
        let said = String::from_utf8(output.stderr)?;
        let expected = format!("cannot use the control group {name}: {why}");
        assert!(said.contains(&expected), "{said}");
        assert!(!trace.exists());
    }
    Ok(())
}
