//! A recorder that is killed: the command lives on, and the trace is readable and says that it was cut short.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use anyhow::Context;
use rtrace_tests::{
    harness::{self, Recorder, eventually, tail_of},
    victims::victim,
};

#[test]
fn the_command_lives_on_and_the_trace_is_readable() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let command = [
        victim("actor").into_os_string(),
        "wait_for_input".into(),
        "50".into(),
    ];
    let mut call = Recorder::new().call(&trace, &command)?;
    let mut rtrace = call.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdin = rtrace.stdin.take().context("stdin")?;
    let mut stdout = BufReader::new(rtrace.stdout.take().context("stdout")?).lines();
    stdout
        .find(|line| line.as_ref().is_ok_and(|line| line == "ready"))
        .context("never ready")??;
    // Half a second later at most, what happened must be in the file of a recorder that still runs.
    eventually("50 children in the unfinished trace", || {
        Ok(harness::report(&trace).is_ok_and(|report| report.codes().get(&Some(7)) == Some(&50)))
    })?;
    rtrace.kill()?;
    rtrace.wait()?;
    drop(stdin);
    let rest: Vec<_> = stdout.collect::<Result<_, _>>()?;
    assert_eq!(
        rest,
        ["still alive"],
        "the command goes on after its recorder was killed"
    );

    assert!(tail_of(&trace).exists());
    let report = harness::report(&trace)?;
    assert!(!report.trust.complete);
    assert!(
        report
            .trust
            .notes
            .iter()
            .any(|note| note.contains("cut short")),
        "{:?}",
        report.trust.notes
    );
    assert_eq!(report.codes().get(&Some(7)), Some(&50));
    assert_eq!(report.root()?.exit, None, "nobody saw the root end");
    let text = harness::text_report(&trace)?;
    assert!(text.contains("cut short"), "{text}");
    Ok(())
}
