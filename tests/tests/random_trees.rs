//! Random process trees that know the truth about themselves.
//!
//! 20 seeds by default, 1,000 with `RTRACE_LONG=1`, or `RTRACE_SEEDS=N` (or one: `RTRACE_SEED=S`).

use std::{
    cell::Cell, env, ffi::OsString, fs, ops::RangeInclusive, os::unix::ffi::OsStrExt, path::Path,
};

use anyhow::Context;
use rtrace_tests::{
    clock::boot_ns,
    harness::{self, Recorded, Recorder},
    lone_surrogates::Text,
    truth,
    victims::victim,
};

fn seeds() -> anyhow::Result<RangeInclusive<u64>> {
    if let Ok(seed) = env::var("RTRACE_SEED") {
        let seed = seed.parse()?;
        return Ok(seed..=seed);
    }
    let long = env::var_os("RTRACE_LONG").is_some_and(|value| value == "1");
    let count = match env::var("RTRACE_SEEDS") {
        Ok(count) => count.parse()?,
        Err(_) if long => 1000,
        Err(_) => 20,
    };
    Ok(1..=count)
}

/// Records one tree and compares; returns the number of its processes.
fn one_tree(how: &Recorder, seed: u64) -> anyhow::Result<usize> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("truth.log");
    let command: [OsString; 4] = [
        victim("treegen").into(),
        seed.to_string().into(),
        log.clone().into(),
        folder.path().into(),
    ];
    let before = Cell::new(0);
    let record = || {
        let _none_yet = fs::remove_file(&log);
        before.set(boot_ns()?);
        how.record_in(tempfile::tempdir()?, &command)
    };
    harness::record_and_check(record, |recorded| {
        let between = (before.get(), recorded.ended_ns);
        compare(&recorded, &log, &command, between).map_err(|error| {
            let (kept, truth) = (recorded.keep(), fs::read_to_string(&log));
            let _as_well = fs::write(kept.join("truth.log"), truth.unwrap_or_default());
            error.context(format!(
                "seed {seed} (RTRACE_SEED={seed} repeats it), files kept in {}",
                kept.display()
            ))
        })
    })
}

/// The number of processes, if the report tells all about them.
fn compare(
    recorded: &Recorded,
    log: &Path,
    command: &[OsString],
    between: (u64, u64),
) -> anyhow::Result<usize> {
    let truth = truth::parse(&fs::read_to_string(log)?)?;
    let words: Vec<_> = command
        .iter()
        .map(|word| Text(word.as_bytes().to_vec()))
        .collect();
    truth::compare(&recorded.report()?, &truth, &words, between).into_result()?;
    Ok(truth.nodes.len())
}

#[test]
fn every_fact_of_random_trees_is_reported() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    all_trees(&Recorder::new(), seeds()?)
}

#[test]
fn what_the_first_programs_do_not_see_the_later_ones_report() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorder = Recorder::new().option("--passes=later");
    // With one program less, skipped runs matter on emulated machines where programs are preempted. Threads of
    // one priority that aren't scheduled in turns don't preempt each other.
    let recorder = if harness::is_emulated() {
        recorder.under(&["chrt", "--fifo", "1"])
    } else {
        recorder
    };
    all_trees(&recorder, 1..=10)
}

#[test]
fn what_the_first_programs_see_the_later_ones_do_not_report_again() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    all_trees(&Recorder::new().option("--passes=all"), 1..=10)
}

#[expect(clippy::print_stdout, reason = "a test's own figures")]
fn all_trees(how: &Recorder, seeds: RangeInclusive<u64>) -> anyhow::Result<()> {
    let (mut processes, mut trees, mut failed) = (0, 0, Vec::new());
    for seed in seeds {
        trees += 1;
        match one_tree(how, seed) {
            Ok(count) => processes += count,
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    println!("{trees} trees, {processes} processes");
    anyhow::ensure!(
        failed.is_empty(),
        "{} of {trees} trees differ:\n{}",
        failed.len(),
        failed.join("\n")
    );
    (processes > 0)
        .then_some(())
        .context("no tree was recorded")
}
