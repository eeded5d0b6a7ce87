//! Peaks of a process whose threads change its memory on all CPUs at once, against what is known of it.

use std::fs;

use anyhow::{Context, ensure};
use rtrace::trace::Trace;
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::Report,
    victims::victim,
};

/// What `swings` says of itself, bytes.
#[derive(Clone, Copy, Debug)]
struct Swings {
    /// With all at the top: never more.
    top: u64,
}

/// Records so many threads that swing by so many pages for so many rounds.
///
/// # Errors
/// The memory of the process changed otherwise meanwhile, so that there is no known truth.
fn record(
    options: &[&str],
    [threads, pages, rounds]: [usize; 3],
) -> anyhow::Result<(Recorded, Swings)> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("swings.log");
    let mut how = Recorder::new().option("--buffer=64M");
    for option in options {
        how = how.option(option);
    }
    let program = victim("swings").display().to_string();
    let words = [threads, pages, rounds].map(|n| n.to_string());
    let [threads, pages, rounds] = words;
    let command = [program, log.display().to_string(), threads, pages, rounds];
    let recorded = how.record_in(folder, &command)?;
    ensure!(recorded.status.success(), "{}", recorded.stderr);
    let text = fs::read_to_string(log)?;
    let numbers = text.split_whitespace().map(str::parse::<u64>);
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let [before, top, after] = numbers[..] else {
        anyhow::bail!("{text}");
    };
    ensure!(before == after, "something else has changed: {text}");
    let swings = Swings { top: top * PAGE };
    Ok((recorded, swings))
}

const PAGE: u64 = 4096;

/// The peak of the image that swings, and its bound, bytes.
fn peak(report: &Report) -> anyhow::Result<(u64, u64)> {
    let images = report.processes.iter().filter_map(|p| p.images.last());
    let mut peaks = images.filter_map(|i| Some((i.peak_rss_bytes?, i.peak_rss_bound_bytes?)));
    peaks.next_back().context("no peak")
}

/// CPUs, and pages from which on each of them hands over its part of a counter.
fn cpus_and_batch() -> anyhow::Result<(usize, usize)> {
    let cpus = std::thread::available_parallelism()?.get();
    Ok((cpus, 32.max(2 * cpus)))
}

/// Each thread hands over its CPU's part at the top, while others read.
#[test]
fn a_peak_is_right_while_all_cpus_hand_over_their_parts() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (cpus, batch) = cpus_and_batch()?;
    let rounds = if harness::is_emulated() { 500 } else { 30_000 };
    let (recorded, swings) = record(&[], [cpus.max(2), 2 * batch, rounds])?;
    let report = recorded.complete_report()?;
    let (told, bound) = peak(&report)?;
    ensure!(
        told.abs_diff(swings.top) <= bound,
        "told {told} ± {bound}, {swings:?}"
    );
    let sum = report.tree.peak_rss_sum_bytes.context("no sum")?;
    let sum_bound = report.tree.peak_rss_sum_bound_bytes.unwrap_or(0);
    ensure!(
        sum.abs_diff(swings.top) <= sum_bound,
        "sum {sum} ± {sum_bound}, {swings:?}"
    );
    Ok(())
}

/// Looks at all parts of a counter are skipped, as on hosts with many CPUs.
const SKIPS: &str = "--full-sum-cpus=0";

/// The peak is at most as much too low as its bound says, and that is less than the resolution: with swings of less
/// than CPUs keep to themselves, which the shared counter may never show, and with such that it shows.
#[test]
fn where_looks_are_skipped_a_peak_is_within_its_bound() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (cpus, batch) = cpus_and_batch()?;
    for (threads, pages, rounds) in [
        (1, 31, 200),
        (cpus, 31, 200),
        (cpus, batch - 1, 2000),
        (2 * cpus, 100, 500),
        (cpus, 2 * batch, 2000),
    ] {
        let (recorded, swings) = record(&[SKIPS], [threads, pages, rounds])?;
        let report = recorded.complete_report()?;
        let (told, bound) = peak(&report)?;
        let what = format!("{threads} x {pages}: told {told} + {bound}, {swings:?}");
        let recording = Trace::open(&recorded.trace)?.recording().clone();
        if recording.rss_bound_bytes > 0 {
            // Before 6.2 there is nothing to skip.
            return Ok(());
        }
        ensure!(recording.skips_looks, "none were skipped");
        ensure!((told..=told + bound).contains(&swings.top), "{what}");
        ensure!(bound < (64 << 10).max(swings.top / 256), "{what}");
        let sum = report.tree.peak_rss_sum_bytes.context("no sum")?;
        let sum_bound = report.tree.peak_rss_sum_bound_bytes.unwrap_or(0);
        ensure!(
            sum.abs_diff(swings.top) <= sum_bound,
            "{what}, sum {sum} + {sum_bound}"
        );
    }
    Ok(())
}

/// Where every change is to be shown, none is skipped.
#[test]
fn with_every_change_shown_no_look_is_skipped() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (cpus, _) = cpus_and_batch()?;
    let options = [SKIPS, "--resolution=exact"];
    let (recorded, swings) = record(&options, [cpus, 31, 200])?;
    let report = recorded.complete_report()?;
    let (told, bound) = peak(&report)?;
    ensure!(!Trace::open(&recorded.trace)?.recording().skips_looks);
    ensure!(
        told.abs_diff(swings.top) <= bound,
        "told {told} ± {bound}, {swings:?}"
    );
    Ok(())
}
