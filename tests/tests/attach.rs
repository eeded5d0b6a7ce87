//! Recording processes that run already: nobody is missing, nobody is there twice, and nobody is disturbed.
//!
//! 5 storms by default, 50 with `RTRACE_LONG=1`, or `RTRACE_STORMS=N`.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use anyhow::{Context, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rtrace::{
    event::{Event, What},
    trace::Trace,
};
use rtrace_tests::{
    groups::{self, Group},
    harness::{self, Recorder, eventually, tail_of},
    lone_surrogates::Text,
    report::{Process, Report},
    victims::script,
};

/// A started program that is killed when the test ends, whatever comes of it.
struct Victim(Child);

impl Victim {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        Ok(Self(command.stdin(Stdio::null()).spawn()?))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn is_alive(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// A recording of processes that run already.
struct Recording {
    rtrace: Victim,
    trace: PathBuf,
}

impl Recording {
    /// Starts it; when this comes back, everybody has been found.
    fn start(folder: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let trace = folder.join("t.parquet");
        let recorder = options
            .iter()
            .fold(Recorder::new(), |recorder, option| recorder.option(*option));
        let mut rtrace = Victim::start(&mut recorder.call::<&str>(&trace, &[])?)?;
        eventually("the trace", || {
            ensure!(rtrace.is_alive()?, "rtrace has ended");
            Ok(tail_of(&trace).exists())
        })?;
        Ok(Self { rtrace, trace })
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill(Pid::from_raw(self.rtrace.pid().try_into()?), signal)?;
        Ok(())
    }

    /// Waits for its end.
    fn report(&mut self) -> anyhow::Result<Report> {
        let status = self.rtrace.0.wait()?;
        assert_eq!(status.code(), Some(0));
        harness::report(&self.trace)
    }
}

/// What a process of the storm says of itself.
#[derive(Debug, Default)]
struct Logged {
    creator: u32,
    ends_ns: Option<u64>,
}

/// By pid and start in ticks.
type Log = BTreeMap<(u32, u64), Logged>;

fn read_log(path: &Path) -> anyhow::Result<Log> {
    let mut log = Log::new();
    for line in fs::read_to_string(path)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, pid, start, number] = words[..] else {
            anyhow::bail!("log: {line}");
        };
        let key = (pid.parse()?, start.parse()?);
        if what == "born" {
            let creator = number.parse()?;
            let logged = Logged {
                creator,
                ends_ns: None,
            };
            ensure!(
                log.insert(key, logged).is_none(),
                "twice in the log: {line}"
            );
        } else {
            let logged = log.get_mut(&key).with_context(|| line.to_owned())?;
            logged.ends_ns = Some(number.parse()?);
        }
    }
    Ok(log)
}

/// Field 22 of `/proc/PID/stat` from ns since boot: hundredths of a second.
fn ticks(process: &Process) -> u64 {
    process.start_ns / 10_000_000
}

fn storms() -> anyhow::Result<u32> {
    let long = env::var_os("RTRACE_LONG").is_some_and(|value| value == "1");
    Ok(match env::var("RTRACE_STORMS") {
        Ok(count) => count.parse()?,
        Err(_) if long => 50,
        Err(_) => 5,
    })
}

#[test]
fn a_storm_is_recorded_whole_from_its_midst_on() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for storm in 0..storms()? {
        let (found, all) = until_seen(None).with_context(|| format!("storm {storm}"))?;
        println!("storm {storm}: {all} processes, {found} of them were there before");
    }
    Ok(())
}

#[test]
fn a_storm_in_a_control_group_is_recorded_whole_from_its_midst_on() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let group = Group::make(groups::top(), "storm")?;
    for storm in 0..storms()? {
        let (found, all) = until_seen(Some(&group)).with_context(|| format!("storm {storm}"))?;
        println!("storm {storm}: {all} processes, {found} of them were there before");
    }
    Ok(())
}

/// Most storms of which the kernel skips something, one after the other; see [`harness::record_and_check`].
const MOST_TRIES: u32 = 8;

#[expect(clippy::print_stdout, reason = "a test's own figures")]
fn until_seen(group: Option<&Group>) -> anyhow::Result<(usize, usize)> {
    for _ in 0..MOST_TRIES {
        let folder = tempfile::tempdir()?;
        if let Some(counts) = one_storm(folder.path(), group)? {
            return Ok(counts);
        }
        println!("the kernel skipped runs: another storm");
    }
    anyhow::bail!("the kernel skipped runs in {MOST_TRIES} storms")
}

/// How many were there before, and how many in all; `None` if an emulated machine's kernel has skipped runs and said so.
/// It is recorded by its pid, or as what is in a control group.
fn one_storm(folder: &Path, group: Option<&Group>) -> anyhow::Result<Option<(usize, usize)>> {
    let (log, stop) = (folder.join("log"), folder.join("stop"));
    let enter = group.map_or_else(|| "true".to_owned(), Group::enter);
    let mut command = Command::new("/bin/sh");
    let line = format!("{enter} && exec /usr/bin/python3 \"$@\"");
    command.args(["-c", &line, "sh"]);
    command.arg(script("storm.py")).args([&log, &stop]);
    let storm = Victim::start(&mut command)?;
    let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    eventually("a storm", || Ok(lines() > 200))?;
    let pid = storm.pid().to_string();
    let mut recording = match group {
        Some(group) => Recording::start(folder, &["--cgroup", &group.folder.to_string_lossy()])?,
        None => Recording::start(folder, &["-p", &pid])?,
    };
    let before = lines();
    eventually("more of it", || Ok(lines() > before + 400))?;
    fs::write(&stop, "")?;
    let report = recording.report()?;
    if harness::is_emulated() && report.has_skipped_runs() {
        return Ok(None);
    }
    ensure!(report.trust.complete, "{:?}", report.trust);
    let log = read_log(&log)?;
    compare(&report, &log, group.is_some())?;
    each_once(&recording.trace)?;
    let found = report.processes.iter().filter(|p| p.found_ns.is_some());
    Ok(Some((found.count(), report.processes.len())))
}

/// Against what the storm itself says. An orphan is no descendant, but stays in its control group.
fn compare(report: &Report, log: &Log, is_group: bool) -> anyhow::Result<()> {
    let attached_ns = report
        .recording
        .attached_ns
        .context("nobody was looked for")?;
    let by_key: BTreeMap<(u32, u64), &Process> = report
        .processes
        .iter()
        .map(|process| ((process.pid, ticks(process)), process))
        .collect();
    ensure!(by_key.len() == report.processes.len(), "one is there twice");
    for (key, process) in &by_key {
        let logged = log.get(key);
        let logged = logged.with_context(|| format!("nobody of the storm: {process:?}"))?;
        ensure!(process.end_ns.is_some(), "no end: {process:?}");
        if process.found_ns.is_none() {
            let creator = process.creator.map(|creator| creator.pid);
            ensure!(creator == Some(logged.creator), "{logged:?}: {process:?}");
            ensure!(process.created_by.as_deref() == Some("fork"), "{process:?}");
        } else {
            ensure!(process.created_by.is_none(), "{process:?}");
        }
    }
    // Whose creator had ended before anybody was looked for was no descendant any more.
    let start_ns = report.recording.start_ns;
    let had_ended = |pid: u32, before: u64| {
        let mut creators = log.iter().filter(|((other, _), _)| *other == pid);
        creators.any(|((_, start), creator)| {
            *start <= before && creator.ends_ns.is_some_and(|at| at < start_ns)
        })
    };
    for (key, logged) in log {
        let ends_ns = logged
            .ends_ns
            .with_context(|| format!("no end in the log: {key:?}"))?;
        ensure!(
            ends_ns < attached_ns
                || !is_group && had_ended(logged.creator, key.1)
                || by_key.contains_key(key),
            "missing: {key:?} {logged:?}, looked for from {start_ns} to {attached_ns}"
        );
    }
    Ok(())
}

/// Rows of the trace: each process was either created or found, once.
fn each_once(trace: &Path) -> anyhow::Result<()> {
    let mut came = BTreeMap::new();
    for event in Trace::open(trace)?.events() {
        let Event { subject, what, .. } = event?;
        let has_come = match &what {
            What::Fork(_) => true,
            What::Snapshot(snapshot) => snapshot.found.is_some(),
            _ => false,
        };
        if has_come {
            let key = subject.context("a process without a name")?.process;
            *came.entry((key.pid, key.start_ns)).or_insert(0) += 1;
        }
    }
    let twice: Vec<_> = came.iter().filter(|(_, n)| **n != 1).collect();
    ensure!(twice.is_empty(), "{twice:?}");
    Ok(())
}

/// Holds 64 MiB and three more threads, says that it is ready, and sleeps.
const HOLDER: &str = "
import threading, time
held = bytearray(64 << 20)
for _ in range(3):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print('ready', flush=True)
time.sleep(1000)
";

fn holder() -> anyhow::Result<Victim> {
    use std::io::{BufRead, BufReader};
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", HOLDER]).stdout(Stdio::piped());
    let mut holder = Victim::start(&mut command)?;
    let mut line = String::new();
    let stdout = holder.0.stdout.take().context("stdout")?;
    BufReader::new(stdout).read_line(&mut line)?;
    assert_eq!(line, "ready\n");
    Ok(holder)
}

#[test]
fn what_a_process_is_and_has_is_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let mut holder = holder()?;
    let folder = tempfile::tempdir()?;
    let mut recording = Recording::start(folder.path(), &["-p", &holder.pid().to_string()])?;
    let status = fs::read_to_string(format!("/proc/{}/status", holder.pid()))?;
    let rss = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    let rss = rss.context("VmRSS")?.parse::<u64>()? * 1024;
    recording.signal(Signal::SIGINT)?;
    let report = recording.report()?;
    assert!(holder.is_alive()?, "it was disturbed");
    assert!(report.trust.complete, "{:?}", report.trust);
    assert_eq!(report.root.pid, 0);
    let process = report.by_pid(holder.pid())?;
    assert_eq!(report.processes.len(), 1);
    assert_eq!(
        (
            process.creator,
            &process.created_by,
            process.threads_created
        ),
        (None, &None, None)
    );
    assert_eq!((process.threads_max, process.end_ns), (Some(4), None));
    let image = process.image()?;
    assert_eq!((image.how.as_str(), process.images.len()), ("exec", 1));
    let argv = ["/usr/bin/python3", "-c", HOLDER].map(Text::from);
    assert_eq!(image.argv, Some(argv.to_vec()));
    let peak = image.peak_rss_bytes.context("no memory")?;
    let bound = image.peak_rss_bound_bytes.context("no bound")?;
    assert!(peak.abs_diff(rss) <= bound, "{peak} +-{bound}, VmRSS {rss}");
    let notes = report.trust.notes.join("\n");
    assert!(
        notes.contains("1 process was there before the recording began"),
        "{notes}"
    );
    let text = harness::text_report(&recording.trace)?;
    let heading = format!("process {} with all descendants\n", holder.pid());
    assert!(text.starts_with(&heading), "{text}");
    assert!(text.contains("1 is still alive"), "{text}");
    Ok(())
}

#[test]
fn memory_that_comes_after_is_seen() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let go = folder.path().join("go");
    let program = "
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
held = bytearray(64 << 20)
";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", program]).arg(&go);
    let grower = Victim::start(&mut command)?;
    let mut recording = Recording::start(folder.path(), &["-p", &grower.pid().to_string()])?;
    fs::write(&go, "")?;
    // The recording ends with it.
    let mut grower = grower;
    assert_eq!(grower.0.wait()?.code(), Some(0));
    let report = recording.report()?;
    let process = report.by_pid(grower.pid())?;
    assert_eq!(process.code(), Some(0));
    let peak = process.image()?.peak_rss_bytes.context("no memory")?;
    assert!(peak > 64 << 20, "{peak}");
    assert!(process.cpu_ns.is_some(), "{process:?}");
    Ok(())
}

#[test]
fn it_ends_when_time_is_up() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let mut holder = holder()?;
    let folder = tempfile::tempdir()?;
    let pid = holder.pid().to_string();
    let mut recording = Recording::start(folder.path(), &["--duration=300ms", "-p", &pid])?;
    let report = recording.report()?;
    assert!(holder.is_alive()?);
    assert_eq!(report.by_pid(holder.pid())?.end_ns, None);
    Ok(())
}

fn refused(pid: &str) -> anyhow::Result<Output> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let output = Recorder::new()
        .option("-p")
        .option(pid)
        .call::<&str>(&trace, &[])?
        .output()?;
    assert_eq!(output.status.code(), Some(125));
    assert!(!trace.exists());
    Ok(output)
}

#[test]
fn who_is_no_process_is_refused() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let holder = holder()?;
    let said =
        |pid: &str| -> anyhow::Result<String> { Ok(String::from_utf8(refused(pid)?.stderr)?) };
    // Above the highest that a kernel gives.
    assert!(said("5000000")?.contains("cannot record process 5000000: there is none"));
    let mut threads = fs::read_dir(format!("/proc/{}/task", holder.pid()))?;
    let thread = threads.find_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        (name != holder.pid().to_string()).then_some(name)
    });
    let thread = thread.context("no thread")?;
    let why = format!("it is a thread of process {}", holder.pid());
    assert!(said(&thread)?.contains(&why));
    Ok(())
}

#[test]
fn a_whole_host_is_recorded_without_the_recorder() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let holder = holder()?;
    let folder = tempfile::tempdir()?;
    let mut recording = Recording::start(folder.path(), &["-a"])?;
    let mut newcomer = Victim::start(Command::new("/bin/sh").args(["-c", "exit 7"]))?;
    assert_eq!(newcomer.0.wait()?.code(), Some(7));
    let rtrace = recording.rtrace.pid();
    recording.signal(Signal::SIGTERM)?;
    let report = recording.report()?;
    ensure!(report.trust.complete, "{:?}", report.trust);
    let process = report.by_pid(holder.pid())?;
    assert!(process.found_ns.is_some() && process.end_ns.is_none());
    assert_eq!(process.creator.map(|id| id.pid), Some(std::process::id()));
    let process = report.by_pid(newcomer.pid())?;
    assert_eq!((process.code(), process.found_ns), (Some(7), None));
    assert_eq!(process.creator.map(|id| id.pid), Some(std::process::id()));
    // Neither the recorder nor what runs in the kernel alone.
    for pid in [rtrace, 2] {
        assert!(report.processes.iter().all(|p| p.pid != pid), "{pid}");
    }
    let own = report.by_pid(std::process::id())?;
    assert!(
        own.found_ns.is_some() && own.threads_max > Some(1),
        "{own:?}"
    );
    Ok(())
}

#[test]
fn a_whole_host_is_recorded_while_a_command_runs() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let holder = holder()?;
    let recorded = Recorder::new()
        .option("-a")
        .record(&["/bin/sh", "-c", "true; exit 6"])?;
    assert_eq!(recorded.status.code(), Some(6));
    let report = recorded.complete_report()?;
    let root = report.root()?;
    assert_eq!(
        (root.code(), root.created_by.as_deref()),
        (Some(6), Some("root"))
    );
    let other = report.by_pid(holder.pid())?;
    assert_eq!((other.survived_root, other.end_ns), (Some(false), None));
    Ok(())
}
