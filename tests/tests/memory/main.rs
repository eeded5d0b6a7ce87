//! Memory at moments at which a process is quiet, compared with what `/proc` says of it from outside.

use std::{ffi::OsString, fs, path::Path};

use anyhow::{Context, ensure};
use monitor_ebpf::abi::Resolution;
use rtrace::{model::Summary, trace::Trace};
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::Report,
    victims::victim,
};
use timeline::{State, Timeline};

mod family;
mod race;
mod timeline;

/// What `/proc` said at a quiet moment, bytes.
#[derive(Clone, Debug)]
struct Look {
    what: String,
    pid: u32,
    time_ns: u64,
    /// Resident: anonymous, file, shared memory; swapped out; mapped.
    kinds: [u64; 5],
    /// Data, stack, executable, page tables.
    parts: [u64; 4],
    /// From `smaps_rollup`, which is exact on every kernel.
    rss: u64,
}

fn looks(log: &Path) -> anyhow::Result<Vec<Look>> {
    let text = fs::read_to_string(log)?;
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |n: usize| -> anyhow::Result<u64> {
                Ok(words.get(n).context("a short line")?.parse()?)
            };
            Ok(Look {
                what: words[0].to_owned(),
                pid: number(1)?.try_into()?,
                time_ns: number(2)?,
                kinds: [number(3)?, number(4)?, number(5)?, number(6)?, number(7)?],
                parts: [
                    number(8)?,
                    number(9)?,
                    number(10)? + number(11)?,
                    number(12)?,
                ],
                rss: number(13)?,
            })
        })
        .collect()
}

fn kinds(state: &State) -> [u64; 5] {
    let now = state.now;
    [now.anon, now.file, now.shmem, now.swap, now.vms]
}

const NAMES: [&str; 5] = ["anon", "file", "shmem", "swap", "vms"];

/// A recorded run with what was seen of it from outside.
struct Run {
    recorded: Recorded,
    timeline: Timeline,
    looks: Vec<Look>,
}

fn run(options: &[&str], what: &[&str]) -> anyhow::Result<Run> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("pages.log");
    let mut command: Vec<OsString> = vec![victim("pages").into(), log.clone().into()];
    command.extend(what.iter().map(OsString::from));
    let mut how = Recorder::new();
    for option in options {
        how = how.option(option);
    }
    let recorded = how.record_in(folder, &command)?;
    ensure!(
        recorded.status.success(),
        "{}: {}",
        recorded.status,
        recorded.stderr
    );
    let looks = looks(&log)?;
    ensure!(looks.len() > 1, "only {} looks", looks.len());
    Ok(Run {
        timeline: Timeline::read(&recorded.trace)?,
        recorded,
        looks,
    })
}

impl Run {
    fn report(&self) -> anyhow::Result<Report> {
        self.recorded.complete_report()
    }

    /// Whether counters could be read exactly here; before 6.2 they can't.
    fn is_exact(&self) -> bool {
        self.timeline.recording.rss_bound_bytes == 0
    }

    fn state(&self, look: &Look) -> anyhow::Result<&State> {
        let state = self.timeline.at(look.pid, look.time_ns);
        state.with_context(|| format!("no state of {look:?}"))
    }

    /// How far each kind may be from the truth, bytes: what counters lack, and what may change without a row.
    fn bounds(&self, look: &Look) -> [u64; 5] {
        let recording = &self.timeline.recording;
        // The tour has 20 threads at once and the first. Where each keeps what its last 66 page faults brought, that
        // is one page each here, which is far less than the stated bound for files that are mapped around a fault.
        let counter = if recording.rss_bound_per_thread {
            21 * 66 * recording.page_size
        } else {
            recording.rss_bound_bytes
        };
        let step = |whole: u64| {
            let share = whole.checked_div(recording.resolution_share).unwrap_or(0);
            recording.resolution_bytes.max(share)
        };
        let resident = counter + step(look.rss);
        // Stacks grow without a call: where calls tell what is mapped, that is seen as late as RSS.
        let by_calls = recording.stand_ins.contains_key("mmap_lock_released");
        let late = if by_calls { counter } else { 0 };
        let mapped = late + step(look.kinds[4]);
        [resident, resident, resident, resident, mapped]
    }

    /// Every look, kind by kind.
    fn compare(&self) -> anyhow::Result<()> {
        let mut wrong = Vec::new();
        for look in &self.looks {
            let state = self.state(look)?;
            let bounds = self.bounds(look);
            for n in 0..NAMES.len() {
                let (seen, truth) = (kinds(state)[n], look.kinds[n]);
                // Before 6.2 /proc has the same error once more.
                let is_resident = n < 4;
                let bound = if is_resident && !self.is_exact() {
                    2 * bounds[n]
                } else {
                    bounds[n]
                };
                if seen.abs_diff(truth) > bound {
                    let name = NAMES[n];
                    wrong.push(format!(
                        "{}: {name} {seen}, truth {truth}, bound {bound}",
                        look.what
                    ));
                }
            }
        }
        ensure!(
            wrong.is_empty(),
            "{} of {} looks: {}",
            wrong.len(),
            self.looks.len(),
            wrong.join("\n")
        );
        Ok(())
    }
}

#[test]
fn with_every_change_shown_memory_is_what_proc_says_to_the_byte() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&["--resolution=exact", "--buffer=64M"], &["tour"])?;
    run.report()?;
    run.compare()?;
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for look in &run.looks {
        // Rows of fork and exec don't have them.
        let Some(parts) = run.state(look)?.parts else {
            continue;
        };
        compared += 1;
        let parts = [parts.data, parts.stack, parts.exec, parts.page_tables];
        // Before 6.2 the growth of stacks and page tables is seen as late as that of RSS.
        let bound = if run.is_exact() {
            0
        } else {
            run.bounds(look)[0]
        };
        let differs = |(seen, truth): (&u64, &u64)| seen.abs_diff(*truth) > bound;
        if parts.iter().zip(&look.parts).any(differs) {
            wrong.push(format!("{}: {parts:?}, truth {:?}", look.what, look.parts));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(compared > 20, "only {compared} looks have parts");
    Ok(())
}

/// The kernel side's own sum, against one over the rows of a recording that shows every change.
#[test]
fn the_highest_sum_of_the_tree_is_that_of_its_rows() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&["--resolution=exact", "--buffer=64M"], &["tour"])?;
    run.report()?;
    let recording = &run.timeline.recording;
    let Some(kept) = recording.peak_rss_sum_bytes else {
        ensure!(!run.is_exact(), "it isn't kept");
        return Ok(());
    };
    let mut rows = Summary::new();
    for event in Trace::open(&run.recorded.trace)?.events() {
        rows.push(&event?);
    }
    let highest = rows.peak().context("no memory")?;
    ensure!(
        kept.abs_diff(highest.rss) <= 16 * recording.page_size,
        "kept {kept}, rows {}",
        highest.rss
    );
    let vms = recording.peak_vms_sum_bytes.context("no VMS")?;
    let highest_vms = rows.peak_vms().context("no VMS in rows")?;
    ensure!(
        vms.abs_diff(highest_vms) <= 16 * recording.page_size,
        "kept {vms}, rows {highest_vms}"
    );
    Ok(())
}

#[test]
fn at_the_usual_resolution_memory_is_within_its_bound() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&[], &["tour"])?;
    run.report()?;
    run.compare()
}

/// As on a host with more than 128 possible CPUs: the shared counter, and how far it may be off.
#[test]
fn where_parts_of_cpus_are_not_added_up_memory_is_within_the_stated_bound() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(
        &["--most-cpus=0", "--resolution=exact", "--buffer=64M"],
        &["tour"],
    )?;
    run.report()?;
    run.compare()?;
    let recording = &run.timeline.recording;
    let cpus = u64::from(recording.cpus);
    let pages = if recording.rss_bound_per_thread {
        66 * 16
    } else {
        cpus * 32.max(2 * cpus)
    };
    assert_eq!(recording.rss_bound_bytes, pages * recording.page_size);
    ensure!(
        recording.peak_rss_sum_bytes.is_none(),
        "a sum of values that are not exact"
    );
    // By smaps_rollup, which is exact, each kind may be off by the bound, and some look shows that the bound is needed.
    let off = |look: &Look| -> anyhow::Result<u64> {
        let state = run.state(look)?;
        Ok(state.now.rss().abs_diff(look.rss))
    };
    let most = run.looks.iter().map(off).collect::<Result<Vec<_>, _>>()?;
    let most = most.into_iter().max().unwrap_or(0);
    let threads = if recording.rss_bound_per_thread {
        21
    } else {
        1
    };
    ensure!(most > 0, "it was exact after all");
    ensure!(most <= 3 * threads * recording.rss_bound_bytes, "{most}");
    // The report hands it on.
    let report = run.report()?;
    ensure!(report.recording.rss_bound_bytes == recording.rss_bound_bytes);
    let peak = report
        .processes
        .iter()
        .find_map(|p| p.images.last()?.peak_rss_bound_bytes);
    ensure!(
        peak.is_some_and(|bound| bound >= recording.rss_bound_bytes),
        "{peak:?}"
    );
    Ok(())
}

/// As on a host with more than 8 possible CPUs.
#[test]
fn where_looks_are_skipped_memory_is_within_the_same_bound() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&["--full-sum-cpus=0"], &["tour"])?;
    run.report()?;
    run.compare()?;
    let steps = if harness::is_emulated() {
        "300"
    } else {
        "3000"
    };
    for seed in ["4", "5"] {
        let run = self::run(&["--full-sum-cpus=0"], &["walk", seed, steps])?;
        run.report()?;
        run.compare().with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

#[test]
fn a_resolution_of_one_s_own_holds_too() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&["--resolution=1M"], &["tour"])?;
    ensure!(run.timeline.recording.resolution_bytes == 1 << 20);
    ensure!(run.timeline.recording.resolution_share == 0);
    run.report()?;
    run.compare()
}

#[test]
fn a_walk_of_thousands_of_steps_agrees_at_each_of_them() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let steps = if harness::is_emulated() {
        "300"
    } else {
        "3000"
    };
    for seed in ["1", "2", "3"] {
        for options in [&["--resolution=exact", "--buffer=64M"][..], &[]] {
            let run = run(options, &["walk", seed, steps])?;
            run.report()?;
            run.compare()
                .with_context(|| format!("seed {seed}, {options:?}"))?;
        }
    }
    Ok(())
}

#[test]
fn a_spike_between_two_looks_is_in_the_rows_and_in_the_peak() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&[], &["tour"])?;
    let report = run.report()?;
    let before = run.looks.iter().rev().nth(1).context("no look")?;
    let after = run.looks.last().context("no look")?;
    let spike = 300 << 20;
    let states = run.timeline.states.values().flatten();
    let highest = states
        .filter(|state| (before.time_ns..after.time_ns).contains(&state.time_ns))
        .map(|state| state.now.rss())
        .max()
        .context("no rows")?;
    let bound = 3 * run.bounds(before)[0] + spike / 256;
    ensure!(
        highest.abs_diff(before.rss + spike) <= bound,
        "{highest}, before {}",
        before.rss
    );
    let process = report
        .processes
        .iter()
        .find(|process| process.pid == after.pid)
        .context("no process")?;
    let image = process.image()?;
    let peak = image.peak_rss_bytes.context("no peak")?;
    let bound = image.peak_rss_bound_bytes.context("no bound")?;
    ensure!(bound == 0 || !run.is_exact(), "{bound}");
    // Nothing else is touched between the last look and the spike; what the spike's page table takes is no RSS.
    ensure!(
        peak.abs_diff(before.rss + spike) <= bound.max(64 << 10),
        "peak {peak}, before {}",
        before.rss
    );
    Ok(())
}

#[test]
fn of_a_storm_on_every_cpu_nothing_is_lost() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&[], &["storm"])?;
    run.report()?;
    run.compare()
}

#[test]
fn after_a_loss_values_are_right_again() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&["--buffer=8192", "--resolution=exact"], &["storm"])?;
    let lost = run.timeline.recording.lost.get("memory");
    // Before 6.2 there are far fewer events, and a small buffer is enough.
    ensure!(
        lost.is_some_and(|lost| *lost > 0) || !run.is_exact(),
        "{:?}",
        run.timeline.recording.lost
    );
    let end = run.looks.last().context("no look")?;
    let state = run.state(end)?;
    // The changes without haste, of 20 pages each: the last of them may be on its way.
    let bound = 2 * 20 * 4096 + 2 * run.bounds(end)[0];
    for (n, name) in NAMES.iter().enumerate() {
        let (seen, truth) = (kinds(state)[n], end.kinds[n]);
        ensure!(
            seen.abs_diff(truth) <= bound,
            "{name} {seen}, truth {truth}"
        );
    }
    Ok(())
}

/// The rows of an exact recording, thinned as the kernel side would have done.
#[test]
fn thinned_rows_never_leave_the_stated_bound() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let run = run(&["--resolution=exact", "--buffer=64M"], &["tour"])?;
    run.report()?;
    let page = run.timeline.recording.page_size;
    let mut rows = 0;
    for (step_bytes, share_bits) in [(64 << 10, 8), (1 << 20, 64), (page, 4)] {
        let resolution = Resolution {
            step_pages: step_bytes / page,
            share_bits,
        };
        for states in run.timeline.states.values() {
            let mut shown = kinds(&states[0]);
            for state in states {
                let (now, rss) = (kinds(state), state.now.rss());
                let is_due = (0..5).any(|n| {
                    let whole = if n == 4 { now[4] } else { rss };
                    resolution.is_due(now[n].abs_diff(shown[n]) / page, whole / page)
                });
                if is_due {
                    shown = now;
                }
                for n in 0..5 {
                    let whole = if n == 4 { now[4] } else { rss };
                    let share = whole.checked_shr(share_bits).unwrap_or(0);
                    let bound = step_bytes.max(share);
                    ensure!(
                        now[n].abs_diff(shown[n]) <= bound,
                        "{} {}: {} shown, bound {bound}",
                        NAMES[n],
                        now[n],
                        shown[n]
                    );
                }
                rows += 1;
            }
        }
    }
    // Before 6.2 a thread tells of every 64th change.
    let expected = if run.is_exact() { 10_000 } else { 1000 };
    ensure!(rows > expected, "{rows} rows");
    Ok(())
}
