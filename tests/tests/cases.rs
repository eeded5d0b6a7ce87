//! The acceptance cases of `cases/`, each recorded and checked with `cases/check.py`.
//!
//! This program has a `main` of its own, so that every case is a test by name and one that skips itself (exit 77)
//! counts as ignored, not as passed. Arguments that aren't options select cases by a part of their names.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorder},
    runner::{self, Outcome, Test},
};

const PYTHON: &str = "/usr/bin/python3";
/// Names a folder with the programs of the cases in C.
const PREPARED: &str = "RTRACE_PREPARED";

/// Facts that chance decides: case, beginnings of field names, and why. That one holds is no reason to fail.
const BY_CHANCE: &[(&str, &[&str], &str)] = &[
    (
        "02",
        &["peak_rss_sum"],
        "200 address spaces at once, and each counter lacks what CPUs keep to themselves: the report's bound is wider",
    ),
    (
        "51",
        &["creator_threads"],
        "Python's join returns before the thread has left the kernel, where it may still be alive at the next fork",
    ),
];

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Facts about memory that rest on where files are: those of a virtual machine are in memory themselves, so that
/// mapped ones count as shared memory and not as files.
const ON_A_DISK: &[(&str, &[&str])] = &[
    ("03", &["peak_rss_bytes"]),
    ("30", &["peak_rss_shmem_bytes"]),
    ("33", &["peak_rss_file_bytes"]),
];

/// Case folders, in order.
fn names() -> anyhow::Result<Vec<String>> {
    let mut names = harness::files_in(&cases())?;
    names.retain(|name| cases().join(name).join("run").exists());
    Ok(names)
}

fn one_case(name: &str) -> anyhow::Result<Outcome> {
    let case = cases().join(name);
    let folder = tempfile::tempdir()?;
    // Where there is no compiler, the programs were compiled before (`cargo xtask vm`).
    let prepared = env::var_os(PREPARED).map(PathBuf::from);
    // Files of the cases themselves don't go where the programs are, which may have no room for them.
    let temporary = folder.path().join("tmp");
    fs::create_dir_all(&temporary)?;
    if let Some(prepared) = &prepared {
        const PROGRAMS: &str = "rtrace-cases";
        symlink(prepared.join(PROGRAMS), temporary.join(PROGRAMS))?;
    }
    if prepared.is_none() && case.join("w.c").exists() {
        let status = Command::new(case.join("run"))
            .arg("--prep")
            .env("TMPDIR", &temporary)
            .status()?;
        ensure!(status.success(), "--prep ended with {status}");
    }
    // Python hands its options on to its workers, and the facts count their arguments with this one.
    let in_folder = Recorder::new()
        .env("TMPDIR", &temporary)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let recorded = in_folder.record(&[case.join("run")])?;
    let json = recorded.folder.path().join("report.json");
    let output = Command::new(harness::binary()?)
        .arg("report")
        .arg(&recorded.trace)
        .arg("--json")
        .output()?;
    ensure!(
        output.status.success(),
        "report: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::write(&json, &output.stdout)?;

    let by_chance = BY_CHANCE
        .iter()
        .find(|(prefix, ..)| name.starts_with(prefix));
    let left_out = by_chance.map_or(&[][..], |(_, fields, _)| fields);
    let on_a_disk = ON_A_DISK
        .iter()
        .find(|(prefix, _)| harness::is_emulated() && name.starts_with(prefix));
    let elsewhere = on_a_disk.map_or(&[][..], |(_, fields)| fields);
    let skipped = [left_out, elsewhere].concat();
    let (status, said) = check(&case, &json, &skipped)?;
    Ok(match status {
        77 => Outcome::Skipped(recorded.stderr.trim().to_owned()),
        0 => Outcome::Passed,
        _ => Outcome::Failed(format!(
            "{said}{}files kept in {}",
            recorded.stderr.clone(),
            recorded.keep().display()
        )),
    })
}

/// Runs check.py; its exit status and what it said of failures.
fn check(case: &Path, json: &Path, skip: &[&str]) -> anyhow::Result<(i32, String)> {
    let output = Command::new(PYTHON)
        .arg(cases().join("check.py"))
        .args([case, json])
        .args([
            "-q",
            "--skip",
            &skip.join(","),
            "--python",
            &python_version()?,
        ])
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Ok((
        output.status.code().context("check.py was killed")?,
        said.into_owned(),
    ))
}

/// The version of the interpreter that the cases' first lines name.
fn python_version() -> anyhow::Result<String> {
    let output = Command::new(PYTHON)
        .args(["-c", "import platform; print(platform.python_version())"])
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn tests() -> anyhow::Result<Vec<Test<'static>>> {
    let of = |name: String| Test {
        name: format!("case_{name}"),
        run: Box::new(move || one_case(&name)),
    };
    Ok(names()?.into_iter().map(of).collect())
}

fn main() -> ExitCode {
    runner::main(tests)
}
