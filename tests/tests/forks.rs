//! Many short processes: each exactly once, and honesty where the buffer is too small.

use std::collections::{BTreeMap, BTreeSet};

use rtrace_tests::{
    harness::{self, Recorder},
    victims::victim,
};

fn forks(count: &str) -> [std::ffi::OsString; 3] {
    [victim("actor").into(), "forks".into(), count.into()]
}

/// Pids that the victim printed.
fn pids(stdout: &str) -> anyhow::Result<BTreeSet<u32>> {
    Ok(stdout.lines().map(str::parse).collect::<Result<_, _>>()?)
}

#[test]
fn a_thousand_children_that_end_at_once_are_all_there() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = harness::record(&forks("1000"))?;
    let report = recorded.complete_report()?;
    assert_eq!(
        (report.processes.len(), report.tree.processes),
        (1001, 1001)
    );
    assert!(report.trust.complete, "{:?}", report.trust);
    assert_eq!(report.codes(), BTreeMap::from([(Some(7), 1000)]));
    let reported: BTreeSet<_> = report.others().iter().map(|child| child.pid).collect();
    assert_eq!(reported, pids(&recorded.stdout)?);
    for child in report.others() {
        assert_eq!(child.creator, Some(report.root));
        assert_eq!(child.created_by.as_deref(), Some("fork"));
        assert!(
            child.end_ns.is_some_and(|end| end > child.start_ns),
            "{child:?}"
        );
    }
    Ok(())
}

#[test]
fn a_child_is_tracked_before_it_can_run() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Each link's creator has only just been created itself.
    let report = harness::record(&[
        victim("actor").into_os_string(),
        "deep".into(),
        "100".into(),
    ])?
    .complete_report()?;
    assert_eq!(
        (report.processes.len(), report.tree.max_depth),
        (101, Some(100))
    );
    assert!(
        report
            .processes
            .iter()
            .all(|process| process.code() == Some(5))
    );
    Ok(())
}

#[test]
fn a_buffer_of_two_pages_loses_events_and_says_so() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .option("--buffer")
        .option("8192")
        .record(&forks("3000"))?;
    assert_eq!(
        recorded.status.code(),
        Some(0),
        "the command doesn't suffer: {}",
        recorded.stderr
    );
    let report = recorded.report()?;
    assert!(report.trust.lost_events > 0, "{:?}", report.trust);
    assert!(!report.trust.complete);
    assert!(
        report.trust.notes.iter().any(|note| note.contains("lost")),
        "{:?}",
        report.trust.notes
    );
    let text = harness::text_report(&recorded.trace)?;
    assert!(text.contains("lost"), "{text}");
    Ok(())
}

#[test]
fn what_a_small_buffer_kept_is_right() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .option("--buffer")
        .option("8192")
        .record(&forks("3000"))?;
    let report = recorded.report()?;
    let real = pids(&recorded.stdout)?;
    let mut seen = BTreeSet::new();
    for child in report.others() {
        assert!(real.contains(&child.pid), "invented: {child:?}");
        assert!(seen.insert(child.pid), "twice: {child:?}");
        assert!(child.code().is_none_or(|code| code == 7), "{child:?}");
        assert_eq!(child.signal(), None);
        assert!(
            child.creator.is_none_or(|creator| creator == report.root),
            "{child:?}"
        );
        assert!(
            child.created_by.as_deref().is_none_or(|by| by == "fork"),
            "{child:?}"
        );
        assert!(
            child.end_ns.is_none_or(|end| end > child.start_ns),
            "{child:?}"
        );
    }
    assert!(!seen.is_empty(), "nothing was kept");
    Ok(())
}
