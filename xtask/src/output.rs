//! Where xtask's own words go.

/// A line on standard error: standard output belongs to the program that `run` starts.
#[expect(
    clippy::print_stderr,
    reason = "the one place where xtask speaks to its user"
)]
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// A line on standard output, for the results of `test` and `layers`.
#[expect(
    clippy::print_stdout,
    reason = "results are what these commands are asked for"
)]
pub(crate) fn result(line: &str) {
    println!("{line}");
}
