//! Tests against the running kernel: built as the user, run as root, one at a time.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};

use super::{Counts, Options, Outcome, libtest, programs, stream};
use crate::{build, output, process, run, workspace::Workspace};

/// The package of the tests.
const PACKAGE: &str = "rtrace-tests";
/// Where the kernel describes its own types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The test programs, built.
#[derive(Debug)]
pub(crate) struct Built {
    programs: Vec<PathBuf>,
    /// Folder of the programs that the tests record.
    pub(crate) victims: PathBuf,
}

impl Built {
    /// Names of the test programs, in the order in which they run.
    pub(crate) fn names(&self) -> Vec<String> {
        self.programs.iter().map(|path| name(path)).collect()
    }

    /// The file of one.
    pub(crate) fn program(&self, wanted: &str) -> Option<&Path> {
        let mut programs = self.programs.iter();
        programs
            .find(|path| name(path) == wanted)
            .map(PathBuf::as_path)
    }
}

/// A test program's name: its file's without what cargo adds.
fn name(program: &Path) -> String {
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    file.rsplit_once('-')
        .map_or(file.as_ref(), |(name, _)| name)
        .to_owned()
}

pub(super) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<Outcome> {
    if let Some(reason) = hindrance() {
        return Ok(Outcome::NotRun(reason));
    }
    programs::install(workspace, options.all);
    let built = build_kernel_tests(workspace)?;
    let mut sum = Counts::default();
    for program in &built.programs {
        output::result(&format!("-- {}", name(program)));
        let mut settings = Vec::new();
        if let Some(hook) = &options.without {
            settings.push(format!("RTRACE_WITHOUT={hook}"));
        }
        if options.all {
            settings.push("RTRACE_LONG=1".to_owned());
        }
        sum += stream::run(&mut as_root(workspace, settings, program))?;
    }
    if sum.passed + sum.failed == 0 {
        return Ok(Outcome::NotRun("not one test ran".to_owned()));
    }
    Ok(Outcome::Ran(sum))
}

/// Runs one test program on this kernel, as root.
///
/// # Errors
/// It can't be started.
pub(crate) fn run_as_root(workspace: &Workspace, program: &Path) -> anyhow::Result<Counts> {
    stream::run(&mut as_root(workspace, Vec::new(), program))
}

/// Why these tests can't run on this machine.
fn hindrance() -> Option<String> {
    if !Path::new(BTF).exists() {
        return Some(format!(
            "this kernel doesn't describe its types ({BTF} isn't there)"
        ));
    }
    if !process::is_root() && !may_be_root() {
        return Some("not root, and sudo isn't there or refuses".to_owned());
    }
    None
}

/// Asks sudo, which may ask the user for the password.
fn may_be_root() -> bool {
    Command::new("sudo")
        .args(["--validate"])
        .status()
        .is_ok_and(|status| status.success())
}

/// Builds rtrace and the test programs.
///
/// # Errors
/// They don't build.
pub(crate) fn build_kernel_tests(workspace: &Workspace) -> anyhow::Result<Built> {
    build::rtrace(workspace)?;
    let mut command = build::cargo(workspace);
    command
        .args([
            "test",
            "--release",
            "--locked",
            "--no-run",
            "--package",
            PACKAGE,
        ])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the kernel tests don't build (cargo's messages are above)");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let programs = libtest::programs(&messages);
    if programs.is_empty() {
        bail!("the package {PACKAGE} has no test programs");
    }
    let victims = libtest::out_dir(&messages, PACKAGE);
    Ok(Built {
        programs: programs.into_iter().map(PathBuf::from).collect(),
        victims: victims
            .context("cargo doesn't tell where the victims are")?
            .into(),
    })
}

/// A test program as root, in the user's environment and in its package's folder, as cargo would run it.
fn as_root(workspace: &Workspace, mut settings: Vec<String>, program: &Path) -> Command {
    settings.push(format!("RTRACE_BIN={}", workspace.rtrace().display()));
    let mut command = Command::new(if process::is_root() { "env" } else { "sudo" });
    if !process::is_root() {
        command.args(["--", "env"]);
    }
    // A shell that starts something in the background without job control lets it ignore these two for good, and
    // programs that are started so pass that on: tests of Ctrl-C would test nothing.
    command.arg("--default-signal=INT,QUIT");
    command.args(settings).arg(program).arg("--test-threads=1");
    command
        .env_clear()
        .envs(run::user_environment(workspace))
        .current_dir(workspace.root.join("tests"));
    command
}
