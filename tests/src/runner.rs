//! Tests by name whose list is made at run time, for programs with a `main` of their own: a test that can't run here
//! counts as ignored, with its reason, and not as passed.

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use crate::harness;

/// How a test went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// It didn't run, for this reason.
    Skipped(String),
    /// It failed, with this to say.
    Failed(String),
}

/// A test: its name and what it does.
pub struct Test<'a> {
    /// Its name.
    pub name: String,
    /// Does it.
    pub run: Box<dyn FnOnce() -> anyhow::Result<Outcome> + 'a>,
}

/// Words of the command line that select tests by a part of their names; `None` if nothing is to run (`--list`).
fn words() -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut arguments = env::args_os()
        .skip(1)
        .map(std::ffi::OsString::into_string)
        .map_while(Result::ok);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Options of the standard test program that `cargo test` may pass on.
            "--test-threads" | "--format" | "--color" | "--skip" => drop(arguments.next()),
            "--list" => return None,
            option if option.starts_with('-') => {}
            word => words.push(word.to_owned()),
        }
    }
    Some(words)
}

/// The program: runs those of the tests that the command line names, or all of them, one after the other.
pub fn main(tests: impl FnOnce() -> anyhow::Result<Vec<Test<'static>>>) -> ExitCode {
    let Some(words) = words() else {
        return ExitCode::SUCCESS;
    };
    match run(&words, tests, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody reads it: the exit status tells.
            let _unwritable = writeln!(io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    words: &[String],
    tests: impl FnOnce() -> anyhow::Result<Vec<Test<'static>>>,
    out: &mut impl Write,
) -> anyhow::Result<bool> {
    let _alone = harness::alone()?;
    let is_wanted =
        |test: &Test<'_>| words.is_empty() || words.iter().any(|word| test.name.contains(word));
    let tests: Vec<Test<'_>> = tests()?.into_iter().filter(is_wanted).collect();
    writeln!(out, "\nrunning {} tests", tests.len())?;
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for test in tests {
        write!(out, "test {} ... ", test.name)?;
        out.flush()?;
        let outcome = (test.run)().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        match outcome {
            Outcome::Passed => {
                passed += 1;
                writeln!(out, "ok")?;
            }
            Outcome::Skipped(reason) => {
                skipped += 1;
                writeln!(out, "ignored, {reason}")?;
            }
            Outcome::Failed(why) => {
                failed += 1;
                writeln!(out, "FAILED\n{why}")?;
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    writeln!(
        out,
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; 0 filtered out\n"
    )?;
    Ok(failed == 0)
}
