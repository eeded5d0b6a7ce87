//! Real programs of real packages under `rtrace record`: their reports tell their story as the files of `golden/` do, and
//! none of them has a warning, since nothing is wrong with any.
//!
//! A program that isn't installed is told as ignored, "NOT RUN". `cargo xtask test` installs the light ones, with `--all`
//! all. With `RTRACE_WRITE_GOLDEN` the files are written instead of compared.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::Report,
    runner::{self, Outcome, Test},
    story::{Leave, story},
};

/// A program and how it is told of.
struct Program {
    /// Name of its golden file.
    name: &'static str,
    /// What has to be installed: `python:MODULE`, or the name of an executable.
    needs: &'static [&'static str],
    /// The command; `PYTHON` stands for the interpreter with the packages.
    command: &'static [&'static str],
    /// Findings that come and go with sizes and times of this machine.
    varies: &'static [&'static str],
    /// It runs jobs or threads one after the other, so that how many are there at once is chance.
    jobs: bool,
}

const fn python(name: &'static str, command: &'static [&'static str]) -> Program {
    Program {
        name,
        needs: &[],
        command,
        varies: &[],
        jobs: false,
    }
}

const fn packaged(
    name: &'static str,
    needs: &'static [&'static str],
    command: &'static [&'static str],
) -> Program {
    Program {
        needs,
        ..python(name, command)
    }
}

const PIPELINE: &str = "seq 1 200000 | sort -rn | uniq | tail -n 1000 | wc -l";
/// Large processes that fork: how large decides.
const OF_SIZES: &[&str] = &[
    "fork.storm",
    "image.peak_inherited",
    "memory.shared_counted_twice",
    "vms.inherited",
];

const PROGRAMS: &[Program] = &[
    python("pool-fork", &["PYTHON", "pool.py", "fork"]),
    python("pool-spawn", &["PYTHON", "pool.py", "spawn"]),
    python("pool-forkserver", &["PYTHON", "pool.py", "forkserver"]),
    python("executor-fork", &["PYTHON", "executor.py", "fork"]),
    python("executor-spawn", &["PYTHON", "executor.py", "spawn"]),
    python(
        "executor-forkserver",
        &["PYTHON", "executor.py", "forkserver"],
    ),
    python("executor-threads", &["PYTHON", "executor.py", "threads"]),
    packaged(
        "joblib-loky",
        &["python:joblib"],
        &["PYTHON", "with_joblib.py", "loky", "12"],
    ),
    packaged(
        "joblib-loky-idle",
        &["python:joblib"],
        &["PYTHON", "with_joblib.py", "loky", "1"],
    ),
    // Not joblib's multiprocessing: it closes its pool and at once kills who hasn't left yet, so how many is chance.
    packaged(
        "fastcore",
        &["python:fastcore"],
        &["PYTHON", "with_fastcore.py", "0"],
    ),
    Program {
        jobs: true,
        ..packaged(
            "fastcore-manager",
            &["python:fastcore"],
            &["PYTHON", "with_fastcore.py", "0.01"],
        )
    },
    Program {
        jobs: true,
        ..packaged(
            "pytest-xdist",
            &["python:xdist"],
            &[
                "PYTHON",
                "-m",
                "pytest",
                "-q",
                "-n",
                "3",
                "-p",
                "no:cacheprovider",
                "test_squares.py",
            ],
        )
    },
    packaged(
        "gunicorn",
        &["python:gunicorn"],
        &[
            "PYTHON",
            "serve.py",
            "PYTHON",
            "-m",
            "gunicorn",
            "-w",
            "3",
            "--log-level",
            "warning",
            "-b",
            "127.0.0.1:PORT",
            "application:application",
        ],
    ),
    packaged(
        "nginx",
        &["nginx"],
        &[
            "PYTHON",
            "serve.py",
            "nginx",
            "-p",
            "./",
            "-e",
            "nginx.log",
            "-c",
            "nginx.conf",
        ],
    ),
    Program {
        jobs: true,
        ..packaged("make", &["make", "cc"], &["make", "-j3", "program"])
    },
    packaged("pipeline", &["sort"], &["sh", "-c", PIPELINE]),
    Program {
        jobs: true,
        varies: OF_SIZES,
        ..packaged(
            "nipype-scripts",
            &["python:nipype"],
            &["PYTHON", "workflow.py", "scripts"],
        )
    },
    Program {
        jobs: true,
        varies: OF_SIZES,
        ..packaged(
            "nipype-mrtrix",
            &["python:nipype", "mrconvert", "mrcalc"],
            &["PYTHON", "workflow.py", "images"],
        )
    },
    Program {
        jobs: true,
        ..packaged(
            "openmpi",
            &["python:mpi4py", "orterun"],
            &[
                "mpirun",
                "--allow-run-as-root",
                "--oversubscribe",
                "-np",
                "4",
                "PYTHON",
                "ring.py",
            ],
        )
    },
];

/// The interpreter with the packages: `RTRACE_PROGRAMS`, or where `cargo xtask test` makes it.
fn interpreter() -> anyhow::Result<PathBuf> {
    let environment = if let Some(folder) = env::var_os("RTRACE_PROGRAMS") {
        PathBuf::from(folder)
    } else {
        let binary = harness::binary()?;
        let target = binary.parent().and_then(Path::parent);
        target
            .context("folder of rtrace's build")?
            .join("programs/venv")
    };
    Ok(environment.join("bin/python"))
}

/// What isn't installed of what a program needs; `None` if all of it is.
fn missing(program: &Program, python: &Path) -> Option<String> {
    if harness::is_emulated() {
        return Some("packages, in a virtual machine".to_owned());
    }
    if !python.exists() {
        return Some(format!("{}", python.display()));
    }
    let is_there = |need: &&&str| match need.strip_prefix("python:") {
        Some(module) => {
            let find =
                "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))";
            let found = Command::new(python).args(["-c", find, module]).status();
            found.is_ok_and(|status| status.success())
        }
        None => env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(need).exists())),
    };
    let missing = program.needs.iter().find(|need| !is_there(need))?;
    Some((*missing).to_owned())
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Most recordings of a program.
const TURNS: usize = 3;

/// Records a program. Now and then the kernel doesn't show that a process was freed, and with it what it had written
/// (some of 100,000, `crowds`; the cause isn't known). The report says then that it can't judge the pool, which is all
/// that can be said, so the program is recorded again, and that is printed.
#[expect(clippy::print_stdout, reason = "a test's own figures")]
fn record(place: &Path, command: &[&str]) -> anyhow::Result<(Recorded, Report)> {
    for turn in 1.. {
        // nipype asks the network for its newest version, unless it is told not to.
        let recorded = Recorder::new()
            .env("NO_ET", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .folder(place)
            .record(command)?;
        let report = recorded.complete_report()?;
        if turn == TURNS || report.findings.iter().all(|finding| finding.assessed) {
            return Ok((recorded, report));
        }
        println!("a finding was not assessed: recorded again");
    }
    unreachable!("the last turn returns")
}

fn one(program: &Program) -> anyhow::Result<Outcome> {
    let python = interpreter()?;
    if let Some(what) = missing(program, &python) {
        return Ok(Outcome::Skipped(format!("NOT RUN: {what} isn't there")));
    }
    let python = python.to_str().context("a path that isn't text")?;
    let place = tempfile::tempdir()?;
    for name in harness::files_in(&folder("programs"))? {
        let from = folder("programs").join(&name);
        if from.is_file() {
            fs::copy(&from, place.path().join(&name))?;
        }
    }
    let words = program.command.iter();
    let command: Vec<&str> = words
        .map(|word| if *word == "PYTHON" { python } else { word })
        .collect();
    let (recorded, report) = record(place.path(), &command)?;
    ensure!(
        report.root()?.code() == Some(0),
        "{}{}",
        recorded.stdout,
        recorded.stderr
    );
    is_healthy(&report)?;
    let text = harness::wide_report(&recorded.trace)?;
    let bin = python.trim_end_matches("/python");
    let place = place.path().display().to_string();
    let places = [(bin, "BIN"), (place.as_str(), "FOLDER")];
    let leave = Leave {
        places: &places,
        findings: program.varies,
        // Which worker gets the only task.
        subjects: &["worker.idle"],
        counts: program.jobs,
    };
    compare(program.name, &story(&text, leave))
}

/// Nothing is wrong, and everything could be judged.
fn is_healthy(report: &Report) -> anyhow::Result<()> {
    let findings = report.findings.iter();
    let wrong: Vec<_> = findings
        .filter(|f| f.severity != "info" || !f.assessed)
        .collect();
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

fn compare(name: &str, told: &str) -> anyhow::Result<Outcome> {
    let path = folder("golden").join(format!("{name}.txt"));
    if env::var_os("RTRACE_WRITE_GOLDEN").is_some() {
        fs::write(&path, told)?;
        return Ok(Outcome::Passed);
    }
    let expected =
        fs::read_to_string(&path).with_context(|| format!("no {}:\n{told}", path.display()))?;
    if told == expected {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Failed(format!(
        "told otherwise than in golden/{name}.txt:\n{told}"
    )))
}

fn tests() -> anyhow::Result<Vec<Test<'static>>> {
    let files = harness::files_in(&folder("golden"))?;
    let is_known = |file: &String| {
        PROGRAMS
            .iter()
            .any(|program| *file == format!("{}.txt", program.name))
    };
    let stray: Vec<_> = files.iter().filter(|file| !is_known(file)).collect();
    ensure!(stray.is_empty(), "golden files of no program: {stray:?}");
    let of = |program: &'static Program| Test {
        name: program.name.replace('-', "_"),
        run: Box::new(move || one(program)),
    };
    Ok(PROGRAMS.iter().map(of).collect())
}

fn main() -> ExitCode {
    runner::main(tests)
}
