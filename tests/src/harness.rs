//! Records a command with the finished binary, in a fresh folder.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::{clock::boot_ns, report::Report};

/// Name of a hook that every recording leaves out: `cargo xtask test --without HOOK`.
const WITHOUT: &str = "RTRACE_WITHOUT";

/// Held while a test runs: tests of one program run one at a time.
pub type Alone = MutexGuard<'static, ()>;

/// Waits for its turn and checks that this machine can run the test at all.
///
/// # Errors
/// Not root, or a kernel without BTF.
pub fn alone() -> anyhow::Result<Alone> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(
        nix::unistd::geteuid().is_root(),
        "tests against the kernel need root: run `cargo xtask test`"
    );
    ensure!(
        Path::new("/sys/kernel/btf/vmlinux").exists(),
        "this kernel has no BTF (/sys/kernel/btf/vmlinux)"
    );
    Ok(turn)
}

/// Path of the binary: `RTRACE_BIN`, or the one beside this test's own program.
///
/// # Errors
/// There is none.
pub fn binary() -> anyhow::Result<PathBuf> {
    let path = if let Some(path) = env::var_os("RTRACE_BIN") {
        PathBuf::from(path)
    } else {
        let own = env::current_exe().context("own path")?;
        let profile = own
            .parent()
            .and_then(Path::parent)
            .context("folder of the test program")?;
        profile.join("rtrace")
    };
    ensure!(
        path.exists(),
        "{} isn't there: run `cargo xtask build`",
        path.display()
    );
    Ok(path)
}

/// How to record.
#[derive(Debug, Default)]
pub struct Recorder {
    options: Vec<OsString>,
    wrapper: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
}

/// A finished recording.
#[derive(Debug)]
pub struct Recorded {
    /// Where it happened; removed at the end.
    pub folder: TempDir,
    /// The trace.
    pub trace: PathBuf,
    /// How `rtrace record` ended.
    pub status: ExitStatus,
    /// Standard output of rtrace and the command.
    pub stdout: String,
    /// Standard error of rtrace and the command.
    pub stderr: String,
    /// Ended before, ns since boot.
    pub ended_ns: u64,
}

impl Recorder {
    /// Records with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an option of `rtrace record`.
    #[must_use]
    pub fn option(mut self, option: impl Into<OsString>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Leaves out a hook.
    #[must_use]
    pub fn without(self, hook: &str) -> Self {
        self.option("--without").option(hook)
    }

    /// Runs rtrace itself under another program, given with its arguments.
    #[must_use]
    pub fn under<S: AsRef<OsStr>>(mut self, wrapper: &[S]) -> Self {
        self.wrapper = wrapper
            .iter()
            .map(|part| part.as_ref().to_owned())
            .collect();
        self
    }

    /// Sets a variable of rtrace's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Runs rtrace, and so the command, in a folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// The call `rtrace record --quiet -o TRACE -- COMMAND`, not yet started; of no words, without a command.
    ///
    /// # Errors
    /// The binary isn't there.
    pub fn call<S: AsRef<OsStr>>(&self, trace: &Path, command: &[S]) -> anyhow::Result<Command> {
        let mut line = self.wrapper.clone();
        line.push(binary()?.into());
        let (program, rest) = line.split_first().context("empty command line")?;
        let mut call = Command::new(program);
        call.args(rest)
            .args(["record", "--quiet", "-o"])
            .arg(trace)
            .args(&self.options);
        if let Some(hook) = env::var_os(WITHOUT) {
            call.arg("--without").arg(hook);
        }
        if !command.is_empty() {
            call.arg("--").args(command.iter().map(AsRef::as_ref));
        }
        call.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            call.current_dir(folder);
        }
        Ok(call)
    }

    /// Records a command to its end; see [`record_and_check`]. It may run more than once.
    ///
    /// # Errors
    /// rtrace can't be started.
    pub fn record<S: AsRef<OsStr>>(&self, command: &[S]) -> anyhow::Result<Recorded> {
        record_and_check(|| self.record_in(tempfile::tempdir()?, command), Ok)
    }

    /// The same in a folder that is there already, and once only.
    ///
    /// # Errors
    /// rtrace can't be started.
    pub fn record_in<S: AsRef<OsStr>>(
        &self,
        folder: TempDir,
        command: &[S],
    ) -> anyhow::Result<Recorded> {
        let trace = folder.path().join("t.parquet");
        let mut call = self.call(&trace, command)?;
        let output = call
            .output()
            .with_context(|| format!("can't run {call:?}"))?;
        Ok(Recorded {
            folder,
            trace,
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            ended_ns: boot_ns()?,
        })
    }
}

/// Most recordings of one thing on an emulated machine.
const MOST_TRIES: u32 = 8;

/// Records something and checks it.
///
/// An emulated machine's BPF programs take a hundred times longer than a real one's, and kernels that can
/// preempt them (7.0 and newer) do so that much more often, down to skipping an event altogether. The report
/// says that it may have happened, which is all that it promises, and there is nothing to check then:
/// so there, and only there, what the kernel skipped is recorded again, and that is printed.
///
/// # Errors
/// Those of both, or every recording has skipped runs.
#[expect(clippy::print_stdout, reason = "a test's own figures")]
pub fn record_and_check<T>(
    mut record: impl FnMut() -> anyhow::Result<Recorded>,
    check: impl Fn(Recorded) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    for turn in 1.. {
        let recorded = record()?;
        let is_hidden = is_emulated()
            && recorded
                .report()
                .is_ok_and(|report| report.has_skipped_runs());
        if !is_hidden || turn == MOST_TRIES {
            return check(recorded);
        }
        println!("the kernel skipped runs: recorded again");
    }
    unreachable!("the last turn returns")
}

/// Whether this is one of the virtual machines of `cargo xtask vm`.
pub fn is_emulated() -> bool {
    env::var_os("RTRACE_EMULATED").is_some()
}

/// Records a command with the defaults.
///
/// # Errors
/// rtrace can't be started.
pub fn record<S: AsRef<OsStr>>(command: &[S]) -> anyhow::Result<Recorded> {
    Recorder::new().record(command)
}

impl Recorded {
    /// The JSON report.
    ///
    /// # Errors
    /// There is no readable trace; the error shows what rtrace said.
    pub fn report(&self) -> anyhow::Result<Report> {
        report(&self.trace)
            .with_context(|| format!("record ended with {}, stderr: {}", self.status, self.stderr))
    }

    /// The report, after a check that nothing was lost.
    ///
    /// # Errors
    /// There is no readable trace, or events were lost.
    pub fn complete_report(&self) -> anyhow::Result<Report> {
        let report = self.report()?;
        ensure!(
            report.trust.lost_events == 0,
            "lost events: {:?}",
            report.trust
        );
        Ok(report)
    }

    /// Keeps the folder for who looks into a failure, and says where it is.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// The JSON report of a trace.
///
/// # Errors
/// rtrace can't read the trace, or doesn't keep to the contract.
pub fn report(trace: &Path) -> anyhow::Result<Report> {
    Report::parse(&read(trace, &["--json"])?)
}

/// The text report of a trace.
///
/// # Errors
/// rtrace can't read the trace.
pub fn text_report(trace: &Path) -> anyhow::Result<String> {
    read(trace, &[])
}

/// The text report of a trace in lines that nothing has to be shortened for.
///
/// # Errors
/// rtrace can't read the trace.
pub fn wide_report(trace: &Path) -> anyhow::Result<String> {
    read(trace, &["--width", "1000"])
}

fn read(trace: &Path, options: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(binary()?)
        .arg("report")
        .arg(trace)
        .args(options)
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "report of {} ended with {}: {stderr}",
        trace.display(),
        output.status
    );
    String::from_utf8(output.stdout).context("the report isn't UTF-8")
}

/// Gives a copy of rtrace the capabilities that it asks an administrator for, by the line that it says itself.
///
/// # Errors
/// It says none, or the line fails.
pub fn as_asked_for(rtrace: &Path) -> anyhow::Result<()> {
    let letter = Command::new(rtrace)
        .args(["doctor", "--for-admin"])
        .output()?;
    let letter = String::from_utf8(letter.stdout)?;
    let line = letter
        .lines()
        .find_map(|line| line.trim().strip_prefix("sudo "));
    let line = line.context("no line for an administrator")?;
    ensure!(
        line.starts_with("setcap cap_bpf,cap_perfmon,cap_kill"),
        "{line}"
    );
    let status = Command::new("/bin/sh").args(["-c", line]).status()?;
    ensure!(
        status.success(),
        "{line}: {status} (apt-get install libcap2-bin)"
    );
    Ok(())
}

/// Path of a trace's tail, which is there while it is being written.
pub fn tail_of(trace: &Path) -> PathBuf {
    let mut path = trace.as_os_str().to_owned();
    path.push(".tail");
    path.into()
}

/// Looks until something holds, for at most 30 s, or 300 s on an emulated machine (far longer than it ever takes: only
/// a failure waits).
///
/// # Errors
/// It never held, or looking failed.
pub fn eventually(
    what: &str,
    mut holds: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let seconds = if is_emulated() { 300 } else { 30 };
    for _ in 0..100 * seconds {
        if holds()? {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    anyhow::bail!("waited {seconds} s in vain: {what}")
}

/// Names of the files in a folder, sorted.
///
/// # Errors
/// The folder can't be read.
pub fn files_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
