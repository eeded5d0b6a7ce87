//! Peaks of a process whose threads change its memory on all CPUs at once, against what is known of it.

use std::fs;

use anyhow::{Context, ensure};
use rtrace::trace::Trace;
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::Report,
    victims::victim,
};

use crate::timeline::Timeline;

/// What `swings` says of itself.
#[derive(Clone, Copy, Debug)]
struct Swings {
    /// RSS with all at the top: never more, bytes.
    top: u64,
    /// When it was, ns since boot.
    top_ns: u64,
}

/// Memory that moves page by page.
const PAGES: &str = "pages";
/// Memory that may come several pages at once, if the kernel is told to ([`Folios`]).
const FOLIOS: &str = "folios";
/// Pages of a file, of which the kernel maps several at once.
const FILE: &str = "file";

/// Records so many threads that swing by so many pages of a kind for so many rounds.
///
/// # Errors
/// The memory of the process changed otherwise meanwhile, so that there is no known truth.
fn record(
    options: &[&str],
    kind: &str,
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
    let log_file = log.display().to_string();
    let command = [program, log_file, threads, pages, rounds, kind.to_owned()];
    let recorded = how.record_in(folder, &command)?;
    ensure!(recorded.status.success(), "{}", recorded.stderr);
    let text = fs::read_to_string(log)?;
    let numbers = text.split_whitespace().map(str::parse::<u64>);
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let [before, top, after, top_ns] = numbers[..] else {
        anyhow::bail!("{text}");
    };
    ensure!(before == after, "something else has changed: {text}");
    let top = top * PAGE;
    let swings = Swings { top, top_ns };
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
    let (recorded, swings) = record(&[], PAGES, [cpus.max(2), 2 * batch, rounds])?;
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
        if !is_within_its_bounds(PAGES, [threads, pages, rounds])? {
            return Ok(());
        }
    }
    Ok(())
}

/// The same where a step is of several pages, and less than CPUs keep to themselves.
#[test]
fn so_is_one_of_many_pages_at_once() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (cpus, batch) = cpus_and_batch()?;
    for sizes in [[1, 31, 200], [cpus, batch - 1, 500], [cpus, 3 * batch, 500]] {
        if !is_within_its_bounds(FILE, sizes)? {
            return Ok(());
        }
    }
    let Some(_folios) = Folios::allow()? else {
        println!("NOT RUN: this kernel has no large folios of anonymous memory below a huge page");
        return Ok(());
    };
    for sizes in [[1, 32, 200], [cpus, 16, 500], [cpus, 96, 500]] {
        is_within_its_bounds(FOLIOS, sizes)?;
    }
    Ok(())
}

/// Whether peak, sum and rows could be compared with the truth: before 6.2 there is nothing to skip.
///
/// # Errors
/// One of them is further from it than it may be.
fn is_within_its_bounds(kind: &str, sizes: [usize; 3]) -> anyhow::Result<bool> {
    let (recorded, swings) = record(&[SKIPS], kind, sizes)?;
    let report = recorded.complete_report()?;
    let (told, bound) = peak(&report)?;
    let what = format!("{kind} {sizes:?}: told {told} + {bound}, {swings:?}");
    let timeline = Timeline::read(&recorded.trace)?;
    if timeline.recording.rss_bound_bytes > 0 {
        // Else this would pass where the programs that add up don't load.
        let is_old = timeline.recording.rss_bound_per_thread;
        ensure!(is_old, "parts of CPUs were not added up");
        return Ok(false);
    }
    ensure!(timeline.recording.skips_looks, "none were skipped");
    ensure!((told..=told + bound).contains(&swings.top), "{what}");
    let resolution = (64 << 10).max(swings.top / 256);
    ensure!(bound < resolution, "{what}");
    let sum = report.tree.peak_rss_sum_bytes.context("no sum")?;
    let sum_bound = report.tree.peak_rss_sum_bound_bytes.unwrap_or(0);
    ensure!(
        sum.abs_diff(swings.top) <= sum_bound,
        "{what}, sum {sum} + {sum_bound}"
    );
    // What the rows say of a kind lags behind by less than the resolution, and only two kinds have moved.
    let pid = report.processes.first().context("no command")?.pid;
    let row = timeline.at(pid, swings.top_ns).context("no row")?;
    ensure!(
        row.now.rss().abs_diff(swings.top) < 2 * resolution,
        "{what}, row {row:?}"
    );
    Ok(true)
}

/// Lets the kernel give folios of 64 KiB to who asks for huge pages, until it is dropped.
struct Folios {
    before: String,
}

impl Folios {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

    /// `None`: this kernel can't.
    fn allow() -> anyhow::Result<Option<Self>> {
        let Ok(text) = fs::read_to_string(Self::SETTING) else {
            return Ok(None);
        };
        // The value in force is in brackets.
        let before = text.split(['[', ']']).nth(1).context(text.clone())?;
        fs::write(Self::SETTING, "madvise")?;
        Ok(Some(Self {
            before: before.to_owned(),
        }))
    }
}

impl Drop for Folios {
    fn drop(&mut self) {
        let _it_was_so = fs::write(Self::SETTING, &self.before);
    }
}

/// Where every change is to be shown, none is skipped.
#[test]
fn with_every_change_shown_no_look_is_skipped() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (cpus, _) = cpus_and_batch()?;
    let options = [SKIPS, "--resolution=exact"];
    let (recorded, swings) = record(&options, PAGES, [cpus, 31, 200])?;
    let report = recorded.complete_report()?;
    let (told, bound) = peak(&report)?;
    ensure!(!Trace::open(&recorded.trace)?.recording().skips_looks);
    ensure!(
        told.abs_diff(swings.top) <= bound,
        "told {told} ± {bound}, {swings:?}"
    );
    Ok(())
}
