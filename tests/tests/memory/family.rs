//! Pages that processes share since a fork, against the sum of Pss as the kernel has it.

use anyhow::{Context, ensure};
use rtrace_tests::{harness, victims::victim};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// What the family said of itself, bytes, and its first child.
struct Said {
    pss: u64,
    rss: u64,
    writer: u32,
}

fn family(
    mib: u64,
    children: u64,
    written: &[&str],
) -> anyhow::Result<(Said, rtrace_tests::report::Report)> {
    let mut command = vec![victim("family").into_os_string()];
    command.extend([mib, children].map(|n| n.to_string().into()));
    command.extend(written.iter().map(Into::into));
    let recorded = harness::record(&command)?;
    let words: Vec<u64> = recorded
        .stdout
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [pss, rss, writer] = words[..] else {
        anyhow::bail!("{} {}", recorded.stdout, recorded.stderr)
    };
    let said = Said {
        pss,
        rss,
        writer: writer.try_into()?,
    };
    Ok((said, recorded.complete_report()?))
}

#[test]
fn eight_forks_of_a_large_process_are_told_for_what_they_are() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (said, report) = family(500, 8, &["1000"])?;
    let tree = &report.tree;
    let sum = tree.peak_rss_sum_bytes.context("no sum")?;
    let low = tree.peak_unique_low_bytes.context("no lower bound")?;
    let high = tree.peak_unique_high_bytes.context("no upper bound")?;
    let figures = format!("pss {}, {low} to {high}; rss {}, {sum}", said.pss, said.rss);
    // Nine times the parent.
    ensure!(sum > 4500 * MIB && said.rss > 4500 * MIB, "{figures}");
    ensure!(low <= said.pss && said.pss <= high, "{figures}");
    // Pages of files that others have too count in part only in Pss.
    ensure!(
        high * 100 <= said.pss * 125,
        "the upper bound is useful: {figures}"
    );
    ensure!(
        low * 100 >= said.pss * 90,
        "the lower bound is useful: {figures}"
    );
    Ok(())
}

#[test]
fn pages_that_a_child_writes_to_are_counted() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let count = |written: &[&str]| -> anyhow::Result<(u64, u64, u64)> {
        let (said, report) = family(64, 2, written)?;
        let process = report.by_pid(said.writer)?;
        let image = process.images.first().context("no image")?;
        Ok((
            image.write_faults.context("no write faults")?,
            image.inherited_anon_bytes.context("nothing inherited")?,
            image.start_rss_bytes.context("no start")?,
        ))
    };
    let (idle, inherited, start) = count(&[])?;
    let (busy, ..) = count(&["4000"])?;
    let (by_kernel, ..) = count(&["4000", "kernel"])?;
    // Its stack and what the C library writes to are copied in any case, by a few pages more or less.
    let written = busy
        .checked_sub(idle)
        .context("fewer with writes than without")?;
    ensure!(
        (3990..=4010).contains(&written),
        "{written} of 4,000 pages, {idle} in any case"
    );
    let written = by_kernel.saturating_sub(idle);
    ensure!(
        (3990..=4010).contains(&written),
        "{written} of 4,000 pages that the kernel wrote to"
    );
    ensure!(
        (64 * MIB..65 * MIB).contains(&inherited),
        "{inherited} bytes"
    );
    ensure!(
        start >= inherited && start < inherited + 4 * MIB,
        "{start} bytes"
    );
    ensure!(
        idle * PAGE < MIB,
        "{idle} pages are copied by a child that does nothing"
    );
    Ok(())
}

#[test]
fn the_largest_steps_of_mapped_memory_are_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (_, report) = family(500, 2, &[])?;
    let steps = &report.tree.vms_steps;
    let told: Vec<_> = steps
        .iter()
        .take(3)
        .map(|step| (step.how.as_str(), step.bytes / MIB))
        .collect();
    let root = report.root()?;
    ensure!(
        told.iter()
            .filter(|(how, mib)| *how == "forked" && *mib >= 500)
            .count()
            == 2,
        "{told:?}"
    );
    let mapped = steps
        .iter()
        .find(|step| step.how == "mapped")
        .context("no mapping")?;
    ensure!((500 * MIB..501 * MIB).contains(&mapped.bytes), "{mapped:?}");
    ensure!(mapped.tid == Some(root.pid), "{mapped:?}");
    ensure!(mapped.part.as_deref() == Some("data"), "{mapped:?}");
    ensure!(
        steps.windows(2).all(|two| two[0].bytes >= two[1].bytes),
        "{steps:?}"
    );
    let own = steps.iter().any(|step| {
        step.how == "mapped" && (20..21).contains(&(step.bytes / MIB)) && step.tid != Some(root.pid)
    });
    ensure!(own, "the second child's own memory: {steps:?}");
    Ok(())
}
