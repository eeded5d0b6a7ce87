//! The `rtrace` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    rtrace::cli::main()
}
