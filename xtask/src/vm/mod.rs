//! `cargo xtask vm`: the kernel tests on other kernels, each in a virtual machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use clap::Args;

use crate::{
    build, output, process, setup,
    test::{self, Built, Counts},
    workspace::Workspace,
};

mod console;
mod cpio;
mod image;
mod kernels;
mod mirror;
mod qemu;
mod table;

use console::Console;
use image::Image;
pub(crate) use kernels::{KERNELS, Kernel};
use qemu::{Machine, Qemu};
use table::{Cell, Column};

/// What is run where.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Kernels, such as 5.10; all of them if none is named
    #[arg(value_parser = kernel)]
    kernels: Vec<Kernel>,
    /// Numbers of CPUs, each a run of its own
    #[arg(long, value_delimiter = ',', default_value = "2")]
    cpus: Vec<u32>,
    /// Possible CPUs, if they are to be more: the kernel has room for so many, and counters have parts for all of them
    #[arg(long)]
    possible_cpus: Option<u32>,
    /// Test programs, such as forks; all of them if none is named
    #[arg(long, value_delimiter = ',')]
    tests: Vec<String>,
    /// Virtual machines at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Also run them on this machine's own kernel, and write the results to docs/kernels.md
    #[arg(long)]
    write_docs: bool,
}

fn kernel(name: &str) -> Result<Kernel, String> {
    let known = KERNELS.iter().find(|kernel| kernel.name == name);
    let names = KERNELS.map(|kernel| kernel.name);
    known
        .copied()
        .ok_or_else(|| format!("known are {}", names.join(", ")))
}

/// Test programs that need what a virtual machine hasn't.
const ONLY_HERE: [(&str, &str); 5] = [
    ("witnesses", "needs perf and strace"),
    ("disk", "needs loop devices and ext4, modules there"),
    ("sudo", "needs sudo and its users"),
    ("terminal", "needs tmux"),
    ("page", "needs Chromium"),
];

/// A choice for where time is short: each hook and each kind of record is in it.
pub(crate) const FEW: [&str; 5] = ["forks", "threads", "lineage", "names", "hooks_matter"];

/// Those whose programs depend on the number of CPUs.
pub(crate) const ABOUT_CPUS: [&str; 2] = ["memory", "verifier"];

/// The test program for which a kernel is also started locked down.
const LOCKDOWN: &str = "lockdown";

/// Longest time for one virtual machine: software emulation is ten times slower, and a hang must end.
const LIMIT: Duration = Duration::from_mins(45);

const PYTHON: &str = "/usr/bin/python3";
/// What test programs and cases start, besides Python and a shell.
const PROGRAMS: &str = "sh bash env true false sleep cat ls mount umount touch tail head seq echo wc grep sed ps cut tr nproc \
                        mkdir rm rmdir readlink nice date uname sort find setsid kill timeout dd id stat chmod ln mv cp tee sync \
                        unshare nsenter swapon swapoff mkswap mknod sysctl truncate bpftool setcap setpriv chrt";
/// Those of them that a test can do without.
const IF_THERE: [&str; 2] = ["nsenter", "sysctl"];

/// Runs the tests and prints a table.
///
/// # Errors
/// Nothing could be run at all.
pub(crate) fn command(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    setup::toolchain(workspace)?;
    setup::test_programs()?;
    let kernels = if options.kernels.is_empty() {
        &KERNELS
    } else {
        options.kernels.as_slice()
    };
    let mut columns = Vec::new();
    if options.write_docs {
        columns.push(here(workspace, &options.tests)?);
    }
    let plan = Plan {
        kernels,
        cpus: &options.cpus,
        possible_cpus: options.possible_cpus,
        tests: &options.tests,
        jobs: options.jobs,
    };
    columns.extend(run(workspace, &plan)?);
    output::result(&table::results(&columns));
    if options.write_docs {
        let page = workspace.root.join("docs/kernels.md");
        table::write(&page, &columns)?;
        output::note(&format!("xtask: wrote {}", page.display()));
    }
    let is_good = columns.iter().all(Column::is_good);
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) kernels: &'a [Kernel],
    /// Numbers of CPUs, each a run of its own.
    pub(crate) cpus: &'a [u32],
    /// Possible CPUs; `None`: those that there are.
    pub(crate) possible_cpus: Option<u32>,
    /// Test programs; empty: all that can run there.
    pub(crate) tests: &'a [String],
    /// Virtual machines at once.
    pub(crate) jobs: u8,
}

/// Why there can be no virtual machines here.
pub(crate) fn hindrance(workspace: &Workspace) -> Option<String> {
    let cache = workspace.target.join("vm");
    let found = fs::create_dir_all(&cache)
        .map_err(anyhow::Error::from)
        .and_then(|()| Qemu::find(&cache));
    found.err().map(|error| format!("{error:#}"))
}

/// Runs test programs on some kernels.
///
/// # Errors
/// No virtual machine can be made at all. A kernel that can't be fetched is a column that says so.
pub(crate) fn run(workspace: &Workspace, plan: &Plan<'_>) -> anyhow::Result<Vec<Column>> {
    let cache = workspace.target.join("vm");
    fs::create_dir_all(&cache)?;
    let qemu = Qemu::find(&cache)?;
    let built = test::build_kernel_tests(workspace)?;
    let tests = chosen(&built, plan.tests)?;
    for (name, reason) in ONLY_HERE {
        output::result(&format!("{name} NOT RUN in a virtual machine: {reason}"));
    }
    let initramfs = cache.join("initramfs");
    make_image(workspace, &built, &cache)?
        .write(&initramfs)
        .context("cannot write the file system of the virtual machines")?;
    let mut machines = Vec::new();
    for kernel in plan.kernels {
        let image = kernel.image(&cache);
        if let Err(error) = &image {
            output::result(&format!("kernel {}: NOT RUN: {error:#}", kernel.name));
        }
        machines.extend(starts(*kernel, image.ok().as_deref(), plan.cpus, &tests));
    }
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, Column)>> {
        let mut columns = Vec::new();
        while let Some((n, start)) = {
            let n = next.fetch_add(1, Ordering::Relaxed);
            machines.get(n).map(|machine| (n, machine))
        } {
            columns.push((n, in_machine(&qemu, start, plan.possible_cpus, &initramfs)?));
        }
        Ok(columns)
    };
    let mut columns = thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.jobs).map(|_| scope.spawn(work)).collect();
        let mut columns = Vec::new();
        for worker in workers {
            let result = worker.join();
            columns.extend(result.map_err(|_panic| anyhow!("a virtual machine's thread failed"))??);
        }
        anyhow::Ok(columns)
    })?;
    columns.sort_by_key(|(n, _)| *n);
    Ok(columns.into_iter().map(|(_, column)| column).collect())
}

/// One start of a virtual machine.
#[derive(Debug)]
struct Start {
    kernel: Kernel,
    /// The file to boot; `None`: it couldn't be fetched.
    image: Option<PathBuf>,
    cpus: u32,
    tests: Vec<String>,
    /// The kernel is started locked down.
    is_locked: bool,
}

/// A machine for each number of CPUs; and one that is locked down, for the test program that is about that.
fn starts(kernel: Kernel, image: Option<&Path>, cpus: &[u32], tests: &[String]) -> Vec<Start> {
    let start = |cpus, tests: &[String], is_locked| Start {
        kernel,
        image: image.map(Path::to_owned),
        cpus,
        tests: tests.to_owned(),
        is_locked,
    };
    let mut starts: Vec<Start> = cpus.iter().map(|n| start(*n, tests, false)).collect();
    let about_it: Vec<String> = tests
        .iter()
        .filter(|name| *name == LOCKDOWN)
        .cloned()
        .collect();
    let first = cpus.first().filter(|_| !about_it.is_empty());
    starts.extend(first.map(|n| start(*n, &about_it, true)));
    starts
}

fn in_machine(
    qemu: &Qemu,
    start: &Start,
    possible_cpus: Option<u32>,
    initramfs: &Path,
) -> anyhow::Result<Column> {
    let Start {
        kernel,
        cpus,
        tests,
        ..
    } = start;
    let column = Column::new(kernel.name, *cpus, kernel.cgroup);
    let column = if start.is_locked {
        column.locked_down()
    } else {
        column
    };
    let Some(image) = &start.image else {
        return Ok(column.not_run());
    };
    let locked = if start.is_locked {
        ", locked down,"
    } else {
        ""
    };
    output::result(&format!(
        "-- kernel {} with {cpus} CPUs{locked}",
        kernel.name
    ));
    let mut environment = vec![
        ("RTRACE_TESTS".to_owned(), tests.join(",")),
        ("RTRACE_CGROUP".to_owned(), kernel.cgroup.to_string()),
        ("RTRACE_EMULATED".to_owned(), "1".to_owned()),
    ];
    if start.is_locked {
        environment.push(("RTRACE_LOCKED_DOWN".to_owned(), "1".to_owned()));
    }
    let mut kernel_options = Vec::new();
    if start.is_locked {
        kernel_options.push("lockdown=confidentiality".to_owned());
    }
    kernel_options.extend(possible_cpus.map(|n| format!("possible_cpus={n}")));
    let machine = Machine {
        kernel: image,
        initramfs,
        cpus: *cpus,
        environment: &environment,
        kernel_options: &kernel_options.join(" "),
        limit: LIMIT,
    };
    let start = Instant::now();
    let mut console = Console::default();
    let has_ended = qemu.run(&machine, |line| {
        output::result(&format!("{}|{cpus}| {line}", kernel.name));
        console.line(line);
    })?;
    output::result(&format!(
        "-- kernel {} with {cpus} CPUs{locked} {} after {} s",
        kernel.name,
        if has_ended { "ended" } else { "was stopped" },
        start.elapsed().as_secs()
    ));
    Ok(console.column(column, tests))
}

/// The same on the kernel that runs here.
fn here(workspace: &Workspace, wanted: &[String]) -> anyhow::Result<Column> {
    build::rtrace(workspace)?;
    let built = test::build_kernel_tests(workspace)?;
    let mut column = Column::new(&release(), test::cpus(), 0);
    for name in chosen(&built, wanted)? {
        let program = built.program(&name).context("a test program is gone")?;
        output::result(&format!("-- {name}"));
        let counts = test::run_as_root(workspace, program)?;
        column.cells.push((name, Cell::Ran(counts)));
    }
    Ok(column)
}

fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers: Vec<&str> = release.trim().splitn(3, '.').take(2).collect();
    numbers.join(".")
}

fn chosen(built: &Built, wanted: &[String]) -> anyhow::Result<Vec<String>> {
    let names = built.names();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        bail!(
            "there is no test program {unknown}; there are {}",
            names.join(", ")
        );
    }
    let is_possible = |name: &String| !ONLY_HERE.iter().any(|(other, _)| name == other);
    let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(name);
    Ok(names
        .into_iter()
        .filter(|name| is_wanted(name) && (is_possible(name) || !wanted.is_empty()))
        .collect())
}

fn make_image(workspace: &Workspace, built: &Built, cache: &Path) -> anyhow::Result<Image> {
    let mut image = Image::new();
    for name in PROGRAMS.split_whitespace() {
        let added = image.program(name);
        if !IF_THERE.contains(&name) {
            added?;
        }
    }
    image.python(PYTHON)?;
    let rtrace = workspace.rtrace();
    // Those of an earlier build have other names.
    let stripped = cache.join("stripped");
    let _none_yet = fs::remove_dir_all(&stripped);
    fs::create_dir_all(&stripped)?;
    image.built(&rtrace, &stripped)?;
    for name in built.names() {
        let program = built.program(&name).context("a test program is gone")?;
        image.built(program, &stripped)?;
        let start = format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display());
        image.bytes(&format!("/tests/{name}"), start.as_bytes(), 0o755);
    }
    image.tree(&built.victims, &[]);
    let folder = workspace.root.join("tests");
    image.tree(&folder, &["__pycache__"]);
    let prepared = prepared_cases(&folder.join("cases"), cache)?;
    image.tree(&prepared, &[]);
    let settings = format!(
        "export RTRACE_BIN='{}' RTRACE_TESTS_FOLDER='{}' RTRACE_PREPARED='{}'\n",
        rtrace.display(),
        folder.display(),
        prepared.display()
    );
    image.bytes("/etc/rtrace-tests", settings.as_bytes(), 0o644);
    let users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n";
    image.bytes("/etc/passwd", users.as_bytes(), 0o644);
    image.bytes("/etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644);
    image.bytes("/init", include_bytes!("init.sh"), 0o755);
    Ok(image)
}

/// Cases in C, compiled: a virtual machine has no compiler.
fn prepared_cases(cases: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    let folder = cache.join("cases");
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(cases)? {
        let case = entry?.path();
        if case.join("w.c").exists() {
            let mut prepare = Command::new(case.join("run"));
            process::run(prepare.arg("--prep").env("TMPDIR", &folder))?;
        }
    }
    Ok(folder)
}

/// Sum over some columns; one that didn't run counts as skipped, one without an end as failed.
pub(crate) fn sum(columns: &[Column]) -> Counts {
    let mut sum = Counts::default();
    for column in columns {
        sum += column.counts();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_started_locked_down_for_one_test_program_alone() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let of = |tests: &[&str]| -> Vec<(u32, bool, Vec<String>)> {
            starts(KERNELS[0], None, &[2, 4], &names(tests))
                .into_iter()
                .map(|start| (start.cpus, start.is_locked, start.tests))
                .collect()
        };
        let plain = |cpus, tests: &[&str]| (cpus, false, names(tests));
        assert_eq!(of(&FEW), [plain(2, &FEW), plain(4, &FEW)]);
        let both = ["forks", LOCKDOWN];
        assert_eq!(
            of(&both),
            [
                plain(2, &both),
                plain(4, &both),
                (2, true, names(&[LOCKDOWN]))
            ]
        );
    }
}
