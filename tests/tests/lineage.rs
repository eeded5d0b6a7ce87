//! Who created whom, how, and who was the parent in the end.

use std::ffi::OsString;

use anyhow::Context;
use rtrace_tests::{harness, report::Report, victims::victim};

fn acted(what: &str, number: &str) -> anyhow::Result<Report> {
    let command: [OsString; 3] = [victim("actor").into(), what.into(), number.into()];
    harness::record(&command)?.complete_report()
}

#[test]
fn a_vfork_child_shares_its_creators_memory() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("vfork", "3")?;
    let child = report.only_child()?;
    assert!(
        matches!(child.created_by.as_deref(), Some("vfork" | "posix_spawn")),
        "{child:?}"
    );
    assert_eq!(child.image()?.shared_mm_with, Some(report.root));
    assert_eq!((child.images.len(), child.code()), (1, Some(3)));
    Ok(())
}

#[test]
fn a_clone_vm_child_is_told_apart_from_vfork() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("clone_vm", "4")?;
    let child = report.only_child()?;
    assert_eq!(child.created_by.as_deref(), Some("clone_vm"));
    assert_eq!(
        child.clone_flags.as_deref(),
        Some(["CLONE_VM".to_owned()].as_slice())
    );
    assert_eq!(child.image()?.shared_mm_with, Some(report.root));
    assert_eq!(child.code(), Some(4));
    Ok(())
}

#[test]
fn a_fork_shares_nothing() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("forks", "1")?;
    let child = report.only_child()?;
    assert_eq!(
        (child.created_by.as_deref(), child.image()?.shared_mm_with),
        (Some("fork"), None)
    );
    assert_eq!(child.final_parent, Some(report.root));
    Ok(())
}

#[test]
fn a_daemon_keeps_its_creator_and_gets_another_parent() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("daemonise", "9")?;
    assert_eq!(report.processes.len(), 3);
    let with_code = |code| {
        report
            .processes
            .iter()
            .find(|process| process.code() == Some(code))
    };
    let (middle, daemon) = (
        with_code(1).context("no middle")?,
        with_code(9).context("no daemon")?,
    );
    assert_eq!(
        (middle.creator, middle.final_parent),
        (Some(report.root), Some(report.root))
    );
    assert_eq!(daemon.creator, Some(middle.id()));
    let parent = daemon.final_parent.context("no last parent")?;
    assert!(
        report
            .processes
            .iter()
            .all(|process| process.id() != parent),
        "{parent:?} is in the tree"
    );
    assert!(daemon.end_ns > middle.end_ns);
    Ok(())
}

#[test]
fn a_zombie_is_counted_until_it_is_reaped() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("zombie", "0")?;
    let zombie = report.only_child()?.zombie_ns.context("not known")?;
    // The child ended at some time in the 300 ms that its parent slept, and was freed in the next 300 ms.
    let root = report.root()?;
    let life = root.end_ns.context("no end")? - root.start_ns;
    assert!(zombie > 0 && zombie < life, "{zombie} ns of {life}");
    Ok(())
}

#[test]
fn a_pid_that_is_used_again_is_another_process() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let command: [OsString; 3] = [victim("actor").into(), "same_pid".into(), "2000".into()];
    let recorded = harness::record(&command)?;
    assert_eq!(
        recorded.status.code(),
        Some(0),
        "the pid wasn't handed out again in 2,000 tries"
    );
    let report = recorded.complete_report()?;
    let with_code = |code| {
        report
            .processes
            .iter()
            .filter(move |process| process.code() == Some(code))
    };
    assert_eq!(with_code(22).count(), 1);
    let second = with_code(22).next().context("second")?;
    let mut same_pid = with_code(11).filter(|first| first.pid == second.pid);
    let first = same_pid.next().context("first")?;
    assert!(same_pid.next().is_none(), "a third one with this pid");
    assert!(
        first.end_ns.is_some_and(|end| end < second.start_ns),
        "{first:?} {second:?}"
    );
    assert_eq!(first.creator, second.creator);
    Ok(())
}
