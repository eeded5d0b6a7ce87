//! Readers in Python open a trace that rtrace has just recorded.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use super::{Outcome, libtest::Counts, venv};
use crate::{output, process, run, workspace::Workspace};

pub(super) fn run(workspace: &Workspace) -> anyhow::Result<Outcome> {
    let folder = workspace.root.join("tests/python");
    let readers = readers(&folder)?;
    let requirements = folder.join("requirements.txt");
    if readers.is_empty() || !requirements.is_file() {
        return Ok(Outcome::NotRun(
            "there are no readers in tests/python".to_owned(),
        ));
    }
    let scratch = workspace.target.join("python");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let trace = scratch.join("sample.parquet");
    if let Err(error) = record(workspace, &trace) {
        return Ok(Outcome::NotRun(format!("no trace to read: {error:#}")));
    }
    let python = match venv::environment(&scratch, std::slice::from_ref(&requirements)) {
        Ok(python) => python,
        Err(error) => {
            return Ok(Outcome::NotRun(format!(
                "the packages can't be installed: {error:#}"
            )));
        }
    };
    let mut counts = Counts::default();
    for reader in readers {
        output::result(&format!("-- {}", reader.display()));
        let mut command = Command::new(&python);
        command.arg(&reader).arg(&trace).current_dir(&scratch);
        match process::run(&mut command) {
            Ok(()) => counts.passed += 1,
            Err(error) => {
                output::result(&format!("{error:#}"));
                counts.failed += 1;
            }
        }
    }
    Ok(Outcome::Ran(counts))
}

fn readers(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "py"));
    files.sort();
    Ok(files)
}

/// Records a command with children, so that every column has something in it.
fn record(workspace: &Workspace, trace: &Path) -> anyhow::Result<()> {
    let script = "for i in 1 2 3; do /bin/true; done; (sleep 0.1; exit 3); no-such-program; exit 0";
    let mut command = if process::is_root() {
        Command::new(workspace.rtrace())
    } else {
        Command::new("sudo")
    };
    if !process::is_root() {
        command.arg("--").arg(workspace.rtrace());
    }
    command.env_clear().envs(run::user_environment(workspace));
    command
        .args(["record", "--quiet", "-o"])
        .arg(trace)
        .args(["--", "/bin/sh", "-c", script]);
    process::run(&mut command)
}
