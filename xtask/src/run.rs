//! `cargo xtask run`: rtrace in the user's own environment.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        process::{CommandExt, parent_id},
    },
    path::Path,
    process::Command,
};

use anyhow::{Context, anyhow};

use crate::{
    build, output, process,
    user_env::{self, Caller, Env},
    workspace::Workspace,
};

/// Builds rtrace and becomes it. Returns only if that fails.
pub(crate) fn rtrace(workspace: &Workspace, arguments: &[OsString]) -> anyhow::Error {
    match build::rtrace(workspace) {
        Ok(()) => become_root(workspace, &workspace.rtrace(), arguments),
        Err(error) => error,
    }
}

/// Becomes any program in the same way.
pub(crate) fn program(workspace: &Workspace, command: Vec<OsString>) -> anyhow::Error {
    let mut words = command.into_iter();
    match words.next() {
        Some(program) => become_root(workspace, Path::new(&program), &words.collect::<Vec<_>>()),
        None => anyhow!("run-as needs a program"),
    }
}

fn become_root(workspace: &Workspace, program: &Path, arguments: &[OsString]) -> anyhow::Error {
    let mut command = if process::is_root() {
        Command::new(program)
    } else {
        let Some(sudo) = process::find("sudo") else {
            return anyhow!(
                "rtrace needs root and there is no sudo here; as root run: {} {}",
                program.display(),
                arguments.join(OsStr::new(" ")).display()
            );
        };
        output::note("xtask: rtrace needs root; running it through sudo");
        let mut command = Command::new(sudo);
        command.arg("--").arg(program);
        command
    };
    // rtrace under sudo reads the environment that sudo got, so this is right for both.
    command
        .args(arguments)
        .env_clear()
        .envs(user_environment(workspace));
    let error = command.exec();
    anyhow::Error::new(error).context(format!("cannot start {}", program.display()))
}

/// The environment in which the user called cargo.
pub(crate) fn user_environment(workspace: &Workspace) -> Env {
    let caller = caller(parent_id()).ok();
    user_env::restore(
        &env::vars_os().collect(),
        caller.as_ref(),
        &workspace.target,
        &|path| path.exists(),
    )
}

fn caller(pid: u32) -> anyhow::Result<Caller> {
    let folder = Path::new("/proc").join(pid.to_string());
    let bytes = fs::read(folder.join("environ")).context("environment of the calling process")?;
    let env = bytes
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            let (name, value) = entry.split_at(equals);
            Some((
                OsStr::from_bytes(name).to_owned(),
                OsString::from_vec(value[1..].to_vec()),
            ))
        })
        .collect();
    let program = fs::read_link(folder.join("exe")).context("program of the calling process")?;
    let program = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(Caller { env, program })
}
