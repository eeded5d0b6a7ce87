//! 100,000 processes through one recording, with a pid space that they go through more than once.

use std::{ffi::OsString, process::Command};

use anyhow::ensure;
use rtrace_tests::{
    harness::{self, Recorder},
    report::Process,
    victims::victim,
};

/// More than there are pids on most machines; software emulation takes a hundred times longer.
fn number() -> u64 {
    if harness::is_emulated() {
        2_000
    } else {
        100_000
    }
}

#[test]
fn none_of_a_hundred_thousand_is_lost_and_nobody_else_is_taken_for_one() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let number = number();
    let command: [OsString; 2] = [victim("crowd").into(), number.to_string().into()];
    // Others use the same pids meanwhile: an entry that is left of a dead process must not stand for them.
    let mut others = Command::new("/bin/sh")
        .args(["-c", "while :; do /bin/true; done"])
        .spawn()?;
    let recorded = Recorder::new().record(&command);
    others.kill()?;
    others.wait()?;
    let recorded = recorded?;
    let report = recorded.complete_report()?;
    let root = report.root()?;
    ensure!(root.code() == Some(0), "{:?}", root.exit);
    let children: Vec<&Process> = report.others();
    assert_eq!(children.len() as u64, number);
    for code in 0..7_u32 {
        let expected = number / 7 + u64::from(number % 7 > u64::from(code));
        let found = children.iter().filter(|one| one.code() == Some(code));
        assert_eq!(found.count() as u64, expected, "code {code}");
    }
    for child in children {
        ensure!(child.execs().count() == 0, "{child:?}");
        ensure!(child.threads_created == Some(0), "{child:?}");
        ensure!(
            child.creator.is_some_and(|id| id.pid == root.pid),
            "{child:?}"
        );
    }
    // The text folds them.
    let lines = harness::text_report(&recorded.trace)?.lines().count();
    ensure!(lines < 200, "{lines} lines");
    Ok(())
}
