//! Real programs, recorded by rtrace and by another program on the same run: the sets of processes, creators,
//! programs, arguments and exit codes must be equal, and nothing lost.
//!
//! `perf` watches beside rtrace without slowing the run down; `strace` runs inside the recording and sees arguments.

use std::{collections::BTreeSet, ffi::OsString, fmt::Write, fs, path::Path};

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorder},
    victims::{script, victim},
    witness::{self, perf, strace},
};

/// Python of the system, not one of a version manager, whose shims are shell scripts.
const PYTHON: &str = "/usr/bin/python3";

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

fn pool(method: &str) -> Vec<OsString> {
    vec![PYTHON.into(), script("pool.py").into(), method.into()]
}

fn actor(what: &str, number: &str) -> Vec<OsString> {
    vec![victim("actor").into(), what.into(), number.into()]
}

/// The command's whole tree ends before the recorded root does, so that no witness stops too early.
fn whole(command: &[OsString]) -> Vec<OsString> {
    let mut line = vec![victim("reaper").into_os_string()];
    line.extend_from_slice(command);
    line
}

/// Records a command with perf beside; at least `least` processes must have been compared.
fn beside_perf(command: &[OsString], least: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("perf.data");
    let beside = Recorder::new().under(&perf::wrapper(&data)?);
    let recorded = beside.record_in(folder, &whole(command))?;
    let outcome = (|| {
        ensure!(
            recorded.status.success(),
            "{}: {}",
            recorded.status,
            recorded.stderr
        );
        let report = recorded.report()?;
        let root = report.root.pid;
        let tree = witness::below(&perf::read(&data)?, root);
        let processes: Vec<_> = report.processes.iter().collect();
        witness::compare(&report, &processes, &tree, root).into_result()?;
        ensure!(tree.len() >= least, "only {} processes", tree.len());
        Ok(())
    })();
    outcome.map_err(|error: anyhow::Error| {
        error.context(format!("files kept in {}", recorded.keep().display()))
    })
}

/// Records strace, which follows a command; all but strace itself and its probes is compared.
fn around_strace(command: &[OsString], least: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let mut line: Vec<OsString> = strace::wrapper(&log)?.into_iter().map(Into::into).collect();
    line.extend_from_slice(&words([
        "/usr/bin/env",
        "-i",
        "PATH=/usr/bin:/bin",
        "LANG=C",
    ]));
    line.extend_from_slice(command);
    let recorded = Recorder::new().record_in(folder, &line)?;
    let outcome = (|| {
        ensure!(
            recorded.status.success(),
            "{}: {}",
            recorded.status,
            recorded.stderr
        );
        let report = recorded.report()?;
        let tree = strace::read(&log)?;
        let top = tree
            .iter()
            .find(|(_, seen)| seen.creator.is_none())
            .context("strace saw nothing")?
            .0;
        let seen: BTreeSet<_> = tree.keys().collect();
        let is_strace = |process: &&rtrace_tests::report::Process| {
            let probe = process.creator == Some(report.root) && process.execs().count() == 0;
            process.id() == report.root || (probe && !seen.contains(&process.pid))
        };
        let processes: Vec<_> = report
            .processes
            .iter()
            .filter(|process| !is_strace(process))
            .collect();
        witness::compare(&report, &processes, &tree, *top).into_result()?;
        ensure!(tree.len() >= least, "only {} processes", tree.len());
        Ok(())
    })();
    outcome.map_err(|error: anyhow::Error| {
        error.context(format!("files kept in {}", recorded.keep().display()))
    })
}

/// A C project of 60 files, a library, a code generator and a program, built by make.
fn project(folder: &Path) -> anyhow::Result<Vec<OsString>> {
    const UNITS: usize = 60;
    let mut calls = String::from("#include \"generated.h\"\n#include <stdio.h>\n");
    for unit in 0..UNITS {
        let mut text = String::from(
            "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n",
        );
        for part in 0..10 {
            writeln!(
                text,
                "static double f{part}(double x) {{ return sin(x * {part}) + sqrt(x + {unit}); }}"
            )?;
        }
        writeln!(
            text,
            "double unit{unit}(double x) {{ return f0(x) + f3(x) * f9(x); }}"
        )?;
        fs::write(folder.join(format!("unit{unit}.c")), text)?;
        writeln!(calls, "double unit{unit}(double);")?;
    }
    writeln!(
        calls,
        "int main(void) {{ printf(\"%f\\n\", unit0(GENERATED)); return 0; }}"
    )?;
    fs::write(folder.join("main.c"), calls)?;
    fs::write(
        folder.join("generate.c"),
        "#include <stdio.h>\nint main(void) { puts(\"#define GENERATED 1.5\"); }\n",
    )?;
    let objects = (0..UNITS)
        .map(|unit| format!("unit{unit}.o"))
        .collect::<Vec<_>>()
        .join(" ");
    let makefile = format!(
        "all: program\nOBJECTS = {objects}\n\
         generate: generate.c\n\t$(CC) -o $@ $<\n\
         generated.h: generate\n\t./generate | sed 's/1.5/2.5/' > $@\n\
         main.o: main.c generated.h\n\t$(CC) -c -o $@ $<\n\
         %.o: %.c\n\t$(CC) -O1 -c -o $@ $<\n\
         libunits.a: $(OBJECTS)\n\tar rcs $@ $(OBJECTS)\n\
         program: main.o libunits.a\n\t$(CC) -o $@ main.o -L. -lunits -lm && ./program\n"
    );
    fs::write(folder.join("Makefile"), makefile)?;
    Ok(vec![
        "make".into(),
        "-j2".into(),
        "-C".into(),
        folder.into(),
    ])
}

const PIPELINE: &str = "seq 1 5000 | sort -r | uniq | (head -n 10; exit 3) | while read x; do /bin/echo $x; done | wc -l; \
                        for i in 1 2 3; do /bin/false | /bin/true; done; (exec sleep 0) & wait; /bin/sh -c 'kill -9 $$' | true";

macro_rules! both_witnesses {
    ($($name:ident: $command:expr, $least:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn perf_saw_the_same() -> anyhow::Result<()> {
                let _alone = harness::alone()?;
                beside_perf(&$command, $least)
            }

            #[test]
            fn strace_saw_the_same() -> anyhow::Result<()> {
                let _alone = harness::alone()?;
                around_strace(&$command, $least)
            }
        }
    )*};
}

both_witnesses! {
    pool_fork: pool("fork"), 5;
    pool_spawn: pool("spawn"), 6;
    pool_forkserver: pool("forkserver"), 7;
    burst_of_2000_true: actor("burst", "2000"), 2001;
    forks_5000_that_end_at_once: actor("forks", "5000"), 5001;
}

#[test]
fn perf_saw_the_same_build() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    beside_perf(&project(folder.path())?, 150)
}

#[test]
fn strace_saw_the_same_build() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    around_strace(&project(folder.path())?, 150)
}

#[test]
fn perf_saw_the_same_pipeline() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    beside_perf(
        &words(["/bin/sh", "-c", &format!("({PIPELINE}) | cat; true")]),
        20,
    )
}

#[test]
fn strace_saw_the_same_pipeline() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    around_strace(
        &words(["/bin/sh", "-c", &format!("({PIPELINE}) | cat; true")]),
        20,
    )
}
