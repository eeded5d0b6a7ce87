//! The groups that need neither root nor a trace.

use std::process::{Command, ExitCode};

use super::{Options, Outcome, stream};
use crate::{build, layers, output, process, workspace::Workspace};

pub(super) fn format(workspace: &Workspace) -> Outcome {
    if let Some(reason) = lacks(workspace, "fmt") {
        return reason;
    }
    one(build::cargo(workspace).args(["fmt", "--all", "--check"]))
}

pub(super) fn lint(workspace: &Workspace) -> Outcome {
    if let Some(reason) = lacks(workspace, "clippy") {
        return reason;
    }
    one(build::cargo(workspace).args([
        "clippy",
        "--release",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

pub(super) fn docs(workspace: &Workspace) -> Outcome {
    one(build::cargo(workspace)
        .args([
            "doc",
            "--release",
            "--locked",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ])
        .env("RUSTDOCFLAGS", "-D warnings"))
}

pub(super) fn layers(workspace: &Workspace) -> anyhow::Result<Outcome> {
    let code = layers::command(&workspace.root.join("monitor-user/src"))?;
    Ok(Outcome::one(code == ExitCode::SUCCESS))
}

pub(super) fn unit(workspace: &Workspace, options: &Options) -> anyhow::Result<Outcome> {
    let mut command = build::cargo(workspace);
    command.args(["test", "--release", "--locked", "--no-fail-fast"]);
    command.args([
        "--package",
        "rtrace",
        "--package",
        "monitor-ebpf",
        "--package",
        "xtask",
    ]);
    if options.all {
        command.env("RTRACE_LONG", "1");
    }
    Ok(Outcome::Ran(stream::run(&mut command)?))
}

fn one(command: &mut Command) -> Outcome {
    match process::run(command) {
        Ok(()) => Outcome::one(true),
        Err(error) => {
            output::result(&format!("{error:#}"));
            Outcome::one(false)
        }
    }
}

/// A reason not to run, if this cargo doesn't have the subcommand.
fn lacks(workspace: &Workspace, subcommand: &str) -> Option<Outcome> {
    // Asked, not looked for: rustup has a stand-in for components that aren't installed too.
    let version = process::answer(build::cargo(workspace).args([subcommand, "--version"]));
    version
        .is_none()
        .then(|| Outcome::NotRun(format!("this toolchain has no `cargo {subcommand}`")))
}
