//! Threads: counted, not taken for processes; the leader that leaves first; exec from another thread.

use std::ffi::OsString;

use anyhow::Context;
use rtrace_tests::{harness, lone_surrogates::Text, report::Report, victims::victim};

fn acted(what: &str, number: &str) -> anyhow::Result<Report> {
    let command: [OsString; 3] = [victim("actor").into(), what.into(), number.into()];
    harness::record(&command)?.complete_report()
}

#[test]
fn threads_are_counted_and_are_no_processes() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("threads", "40")?;
    let (root, child) = (report.root()?, report.only_child()?);
    assert_eq!(
        (root.threads_created, root.threads_max),
        (Some(40), Some(41))
    );
    assert_eq!(report.tree.threads_created, Some(40));
    assert_eq!(
        (child.creator_threads, child.creator_tid),
        (Some(1), Some(root.pid))
    );
    assert_eq!(
        (child.threads_created, child.threads_max),
        (Some(0), Some(1))
    );
    Ok(())
}

#[test]
fn a_process_ends_with_its_last_thread() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("leader_first", "7")?;
    let root = report.root()?;
    assert_eq!(report.processes.len(), 1);
    assert_eq!(
        (root.code(), root.signal()),
        (Some(7), None),
        "not the leader's own 1"
    );
    assert_eq!((root.threads_created, root.threads_max), (Some(1), Some(2)));
    Ok(())
}

#[test]
fn a_thread_that_executes_a_program_becomes_the_process() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = acted("exec_in_thread", "0")?;
    let root = report.root()?;
    assert_eq!((report.processes.len(), root.images.len()), (1, 2));
    let image = root.image()?;
    assert_eq!(image.filename, Some(Text::from("/bin/true")));
    assert_eq!(
        image.argv,
        Some(vec![Text::from("true"), Text::from("from a thread")])
    );
    assert_eq!((root.code(), root.threads_created), (Some(0), Some(1)));
    let first = root.images.first().context("first image")?;
    assert_eq!(first.end_ns, image.start_ns);
    assert!(
        root.end_ns > image.start_ns,
        "the leader's end isn't the process's"
    );
    Ok(())
}
