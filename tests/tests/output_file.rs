//! The trace's file: an older one becomes NAME.old, nothing else is left behind.

use std::{fs, process::Command};

use rtrace_tests::harness::{self, Recorder, files_in};

#[test]
fn a_finished_recording_leaves_one_file() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = harness::record(&["/bin/true"])?;
    assert_eq!(files_in(recorded.folder.path())?, ["t.parquet"]);
    assert!(recorded.complete_report()?.trust.complete);
    Ok(())
}

#[test]
fn an_older_trace_becomes_name_old() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("t.parquet"), "the first")?;
    let second = Recorder::new().record_in(folder, &["/bin/true"])?;
    assert_eq!(
        files_in(second.folder.path())?,
        ["t.parquet", "t.parquet.old"]
    );
    assert_eq!(
        fs::read_to_string(second.folder.path().join("t.parquet.old"))?,
        "the first"
    );
    let second_bytes = fs::read(&second.trace)?;
    let third = Recorder::new().record_in(second.folder, &["/bin/true"])?;
    assert_eq!(
        files_in(third.folder.path())?,
        ["t.parquet", "t.parquet.old"]
    );
    assert_eq!(
        fs::read(third.folder.path().join("t.parquet.old"))?,
        second_bytes
    );
    assert_eq!(third.complete_report()?.processes.len(), 1);
    Ok(())
}

#[test]
fn without_a_name_both_commands_use_trace_parquet() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let rtrace = |words: &[&str]| {
        Command::new(harness::binary()?)
            .args(words)
            .current_dir(&folder)
            .output()
            .map_err(anyhow::Error::from)
    };
    let recorded = rtrace(&["record", "--quiet", "--", "/bin/true"])?;
    assert!(
        recorded.status.success(),
        "{}",
        String::from_utf8_lossy(&recorded.stderr)
    );
    assert_eq!(files_in(folder.path())?, ["trace.parquet"]);
    let report = rtrace(&["report"])?;
    assert!(
        report.status.success(),
        "{}",
        String::from_utf8_lossy(&report.stderr)
    );
    assert!(String::from_utf8(report.stdout)?.contains("true"));
    Ok(())
}

#[test]
fn what_is_no_trace_is_a_clear_error_of_one_line() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let (text, empty, absent) = (
        folder.path().join("text"),
        folder.path().join("empty"),
        folder.path().join("absent"),
    );
    fs::write(&text, "this is no trace")?;
    fs::write(&empty, "")?;
    for path in [&text, &empty, &absent] {
        let output = Command::new(harness::binary()?)
            .arg("report")
            .arg(path)
            .output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
        assert!(stderr.contains(&*path.to_string_lossy()), "{stderr}");
        assert!(output.stdout.is_empty());
    }
    Ok(())
}

#[test]
fn quiet_says_nothing() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = harness::record(&["/bin/true"])?;
    assert_eq!(
        (recorded.stdout.as_str(), recorded.stderr.as_str()),
        ("", "")
    );
    Ok(())
}

#[test]
fn otherwise_at_most_six_lines_name_the_next_command() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let mut call = Command::new(harness::binary()?);
    let output = call
        .args(["record", "-o", "t.parquet", "--", "/bin/true"])
        .current_dir(&folder)
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert!(stderr.contains("rtrace report t.parquet"), "{stderr}");
    assert!(stderr.lines().count() <= 6, "{stderr}");
    assert!(output.stdout.is_empty());
    Ok(())
}
