//! Set-up, build, test and checks of rtrace: `cargo xtask COMMAND`.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

mod build;
mod certificates;
mod layers;
mod output;
mod process;
mod run;
mod setup;
mod test;
mod user_env;
mod vm;
mod workspace;

use workspace::Workspace;

/// Set-up, build, test and checks of rtrace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Finds or installs what the build needs; does nothing the second time
    Setup {
        /// Also the programs that the tests use
        #[arg(long)]
        tests: bool,
    },
    /// Builds rtrace (target/release/rtrace), after `setup`
    Build,
    /// Builds rtrace and runs it, as root, with everything that follows as its arguments
    #[command(disable_help_flag = true)]
    Run {
        /// Arguments of rtrace
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Runs PROGRAM as `run` runs rtrace, to see what it gets
    #[command(hide = true, disable_help_flag = true)]
    RunAs {
        /// Program and arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
    /// Runs every test, those on the real kernel too
    Test(test::Options),
    /// Runs the kernel tests on other kernels, in virtual machines
    Vm(vm::Options),
    /// Checks that the modules of rtrace use each other in one direction only
    Layers {
        /// Folder of the sources
        #[arg(long)]
        source: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match work() {
        Ok(code) => code,
        Err(error) => {
            output::note(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn work() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    // Before clap sees them: everything after `run` is rtrace's, a leading `--` or `--help` too.
    let mut raw = env::args_os().skip(1);
    match raw.next() {
        Some(first) if first == "run" => {
            return Err(run::rtrace(&workspace, &raw.collect::<Vec<_>>()));
        }
        Some(first) if first == "run-as" => return Err(run::program(&workspace, raw.collect())),
        _ => {}
    }
    match Cli::parse().command {
        Task::Setup { tests } => {
            setup::toolchain(&workspace)?;
            if tests {
                setup::test_programs()?;
            }
        }
        Task::Build => build::rtrace(&workspace)?,
        Task::Run { arguments } => return Err(run::rtrace(&workspace, &arguments)),
        Task::RunAs { command } => return Err(run::program(&workspace, command)),
        Task::Test(options) => return test::run(&workspace, &options),
        Task::Vm(options) => return vm::command(&workspace, &options),
        Task::Layers { source } => {
            return layers::command(
                &source.unwrap_or_else(|| workspace.root.join("monitor-user/src")),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
