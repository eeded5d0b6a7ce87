//! Tests against the running kernel: built as the user, run as root, one at a time.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};

use super::{Options, Outcome, libtest, stream};
use crate::{build, output, process, run, workspace::Workspace};

/// Where the kernel describes its own types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

pub(super) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<Outcome> {
    if let Some(reason) = hindrance() {
        return Ok(Outcome::NotRun(reason));
    }
    build::rtrace(workspace)?;
    let programs = programs(workspace)?;
    if programs.is_empty() {
        bail!("the package rtrace-tests has no test programs");
    }
    let mut sum = libtest::Counts::default();
    for program in &programs {
        output::result(&format!(
            "-- {}",
            Path::new(program).file_name().unwrap_or_default().display()
        ));
        sum += stream::run(&mut as_root(workspace, options, program))?;
    }
    if sum.passed + sum.failed == 0 {
        return Ok(Outcome::NotRun("not one test ran".to_owned()));
    }
    Ok(Outcome::Ran(sum))
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

fn programs(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut command = build::cargo(workspace);
    command
        .args([
            "test",
            "--release",
            "--locked",
            "--no-run",
            "--package",
            "rtrace-tests",
        ])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the kernel tests don't build (cargo's messages are above)");
    }
    Ok(libtest::programs(&String::from_utf8_lossy(&output.stdout)))
}

/// A test program as root, in the user's environment and in its package's folder, as cargo would run it.
fn as_root(workspace: &Workspace, options: &Options, program: &str) -> Command {
    let mut settings = vec![format!("RTRACE_BIN={}", workspace.rtrace().display())];
    if let Some(hook) = &options.without {
        settings.push(format!("RTRACE_WITHOUT={hook}"));
    }
    if options.all {
        settings.push("RTRACE_LONG=1".to_owned());
    }
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
