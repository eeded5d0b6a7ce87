//! `cargo xtask test`: the set-up, then every group of tests.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::{output, setup, vm, workspace::Workspace};

mod groups;
mod kernel;
mod libtest;
mod programs;
mod python;
mod stream;
mod venv;

pub(crate) use kernel::{Built, build_kernel_tests, run_as_root};
pub(crate) use libtest::{Counts, result_line};

/// What to test.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Also the tests that take long
    #[arg(long)]
    all: bool,
    /// Leave this hook out of every recording; some kernel test must then fail
    #[arg(long, value_name = "HOOK")]
    without: Option<String>,
    /// Only these groups
    #[arg(long, value_name = "GROUP")]
    only: Vec<Group>,
}

/// A group of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// The sources are formatted
    Format,
    /// The linter has nothing to say
    Lint,
    /// The documentation builds without warnings
    Docs,
    /// Modules use each other in one direction
    Layers,
    /// Tests that need no root
    Unit,
    /// Tests against the running kernel, as root
    Kernel,
    /// Readers in Python open a trace
    Python,
    /// The kernel tests on other kernels: the oldest, or with --all each
    Vm,
}

impl Group {
    fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Lint => "lint",
            Self::Docs => "docs",
            Self::Layers => "layers",
            Self::Unit => "unit",
            Self::Kernel => "kernel",
            Self::Python => "python",
            Self::Vm => "vm",
        }
    }
}

/// How a group ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Tests ran, with these results.
    Ran(Counts),
    /// Nothing ran, for this reason.
    NotRun(String),
}

impl Outcome {
    /// A group that is one test.
    fn one(passed: bool) -> Self {
        Self::Ran(Counts {
            passed: passed.into(),
            failed: (!passed).into(),
            skipped: 0,
        })
    }
}

/// Sets up, runs the groups, and prints the sum as the last line.
///
/// Fails if a test fails, and if the kernel tests were to run and didn't.
///
/// # Errors
/// The set-up can't go on.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    setup::toolchain(workspace)?;
    setup::test_programs()?;
    let mut sum = Counts::default();
    let mut lines = Vec::new();
    let mut is_kernel_missing = false;
    for group in chosen(options) {
        output::result(&format!("== {}", group.name()));
        let outcome = run_group(group, workspace, options).unwrap_or_else(|error| {
            output::result(&format!("{error:#}"));
            Outcome::one(false)
        });
        is_kernel_missing |= group == Group::Kernel && matches!(outcome, Outcome::NotRun(_));
        let (counts, line) = told(group, &outcome);
        sum += counts;
        lines.push(line);
    }
    output::result("== groups");
    for line in &lines {
        output::result(line);
    }
    if is_kernel_missing {
        output::result("the kernel tests did not run: this is no pass");
    }
    output::result(&format!(
        "{} passed, {} failed, {} skipped",
        sum.passed, sum.failed, sum.skipped
    ));
    let is_good = sum.failed == 0 && sum.passed > 0 && !is_kernel_missing;
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn chosen(options: &Options) -> Vec<Group> {
    if options.only.is_empty() && options.without.is_some() {
        // Leaving a hook out says something about the kernel tests alone.
        return vec![Group::Kernel];
    }
    let is_chosen = |group: &&Group| options.only.is_empty() || options.only.contains(group);
    Group::value_variants()
        .iter()
        .filter(is_chosen)
        .copied()
        .collect()
}

fn run_group(group: Group, workspace: &Workspace, options: &Options) -> anyhow::Result<Outcome> {
    match group {
        Group::Format => Ok(groups::format(workspace)),
        Group::Lint => Ok(groups::lint(workspace)),
        Group::Docs => Ok(groups::docs(workspace)),
        Group::Layers => groups::layers(workspace),
        Group::Unit => groups::unit(workspace, options),
        Group::Kernel => kernel::run(workspace, options),
        Group::Python => python::run(workspace),
        Group::Vm => vm(workspace, options),
    }
}

/// Other kernels than the one that runs here. What can't be fetched or started hasn't run, and says so.
fn vm(workspace: &Workspace, options: &Options) -> anyhow::Result<Outcome> {
    if let Some(reason) = vm::hindrance(workspace) {
        return Ok(Outcome::NotRun(reason));
    }
    let few = vm::FEW.map(str::to_owned);
    let oldest = vm::Plan {
        kernels: &vm::KERNELS[..1],
        cpus: &[2],
        possible_cpus: None,
        tests: &few,
        jobs: 1,
    };
    let columns = if options.all {
        let all = vm::Plan {
            kernels: &vm::KERNELS,
            tests: &[],
            ..oldest
        };
        let other_cpus = vm::Plan {
            kernels: &vm::KERNELS,
            cpus: &[1, 4],
            ..oldest
        };
        let about_memory = vm::ABOUT_CPUS.map(str::to_owned);
        let many_cpus = vm::Plan {
            kernels: &vm::KERNELS,
            cpus: &[16],
            tests: &about_memory,
            ..oldest
        };
        // As far as the verifier goes: more possible CPUs than kernels are made for, of which two are there.
        let most_cpus = vm::Plan {
            possible_cpus: Some(1024),
            cpus: &[2],
            ..many_cpus
        };
        let mut columns = vm::run(workspace, &all)?;
        for plan in [other_cpus, many_cpus, most_cpus] {
            columns.extend(vm::run(workspace, &plan)?);
        }
        columns
    } else {
        vm::run(workspace, &oldest)?
    };
    for column in &columns {
        output::result(&column.line());
    }
    let sum = vm::sum(&columns);
    if sum.passed + sum.failed == 0 {
        return Ok(Outcome::NotRun("no kernel could be had".to_owned()));
    }
    Ok(Outcome::Ran(sum))
}

/// CPUs of this machine.
pub(crate) fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1))
}

fn told(group: Group, outcome: &Outcome) -> (Counts, String) {
    match outcome {
        Outcome::Ran(counts) => {
            let Counts {
                passed,
                failed,
                skipped,
            } = counts;
            (
                *counts,
                format!(
                    "{:8} run: {passed} passed, {failed} failed, {skipped} skipped",
                    group.name()
                ),
            )
        }
        Outcome::NotRun(reason) => (
            Counts {
                skipped: 1,
                ..Counts::default()
            },
            format!("{:8} NOT RUN: {reason}", group.name()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: &[Group], without: Option<&str>) -> Options {
        Options {
            all: false,
            without: without.map(str::to_owned),
            only: only.to_vec(),
        }
    }

    #[test]
    fn a_group_that_did_not_run_is_never_passed() {
        let (counts, line) = told(Group::Kernel, &Outcome::NotRun("no BTF".to_owned()));
        assert_eq!(
            counts,
            Counts {
                passed: 0,
                failed: 0,
                skipped: 1
            }
        );
        assert_eq!(line, "kernel   NOT RUN: no BTF");
    }

    #[test]
    fn groups_run_in_their_own_order() {
        assert_eq!(
            chosen(&options(&[Group::Unit, Group::Format], None)),
            [Group::Format, Group::Unit]
        );
        assert_eq!(chosen(&options(&[], Some("exit"))), [Group::Kernel]);
        assert_eq!(chosen(&options(&[], None)).len(), 8);
    }
}
