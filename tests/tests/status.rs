//! The exit status is the command's own; 125, 126 and 127 are rtrace's, as with `env` and `timeout`.

use std::fs;

use rtrace_tests::{
    harness::{self, Recorder, files_in},
    report::{Exit, Sender},
};

#[test]
fn the_commands_own_code_is_passed_on() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for code in [0_u32, 1, 77, 125, 255] {
        let recorded = harness::record(&["/bin/sh", "-c", &format!("exit {code}")])?;
        assert_eq!(recorded.status.code(), Some(code.try_into()?));
        let exit = Exit {
            code: Some(code),
            signal: None,
            core: Some(false),
            oom: Some(false),
            sender: None,
        };
        assert_eq!(recorded.complete_report()?.root()?.exit, Some(exit));
    }
    Ok(())
}

/// Signals whose default is to be ignored, to stop or to go on: CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH.
const NOT_DEADLY: [u32; 8] = [17, 18, 19, 20, 21, 22, 23, 28];

#[test]
fn a_deadly_signal_becomes_128_plus_its_number() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Every signal that ends a shell by default; 32 and 33 are the C library's own, 34 to 64 the real-time ones.
    for signal in (1_u32..=31).chain([34, 50, 64]) {
        if NOT_DEADLY.contains(&signal) {
            continue;
        }
        // What is ignored where the tests run (nohup) a shell couldn't change.
        let script = format!("ulimit -c 0; kill -{signal} $$");
        let recorded = harness::record(&["env", "--default-signal", "/bin/sh", "-c", &script])?;
        assert_eq!(recorded.status.code(), Some((128 + signal).try_into()?));
        let report = recorded.complete_report()?;
        let exit = Exit {
            code: None,
            signal: Some(signal),
            core: Some(false),
            oom: Some(false),
            // It sends it to itself.
            sender: Some(Sender {
                kind: "user".to_owned(),
                pid: report.root.pid,
            }),
        };
        assert_eq!(report.root()?.exit, Some(exit));
    }
    Ok(())
}

/// Runs a command that can't be started beside an older trace; that one must stay, and nothing be added.
fn refused(command: &str, status: i32) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let fresh = Recorder::new().record(&[command])?;
    assert_eq!(fresh.status.code(), Some(status), "{}", fresh.stderr);
    assert_eq!(files_in(fresh.folder.path())?, Vec::<String>::new());
    assert!(
        fresh.stderr.contains(command),
        "the error names the command: {}",
        fresh.stderr
    );
    assert_eq!(
        fresh.stderr.trim_end().lines().count(),
        1,
        "one line: {}",
        fresh.stderr
    );
    fs::write(folder.path().join("t.parquet"), "an older trace")?;
    let beside = Recorder::new().record_in(folder, &[command])?;
    assert_eq!(beside.status.code(), Some(status));
    assert_eq!(files_in(beside.folder.path())?, ["t.parquet"]);
    assert_eq!(fs::read_to_string(&beside.trace)?, "an older trace");
    Ok(())
}

#[test]
fn a_command_that_is_not_found_is_127() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    refused("/nonexistent/program", 127)?;
    refused("no-such-program-anywhere", 127)
}

#[test]
fn a_command_that_can_not_be_executed_is_126() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    refused("/etc/passwd", 126)?;
    refused("/tmp", 126)
}

#[test]
fn a_trace_that_can_not_be_written_is_125_and_nothing_runs() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let witness = folder.path().join("ran");
    let command = ["/usr/bin/touch".into(), witness.clone().into_os_string()];
    let output = Recorder::new()
        .call(&folder.path().join("no-such-folder/t.parquet"), &command)?
        .output()?;
    assert_eq!(
        output.status.code(),
        Some(125),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!witness.exists(), "the command ran");
    assert!(!output.stderr.is_empty());
    Ok(())
}

#[test]
fn a_hook_that_does_not_exist_is_125() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .without("no_such_hook")
        .record(&["/bin/true"])?;
    assert_eq!(recorded.status.code(), Some(125), "{}", recorded.stderr);
    assert!(
        recorded.stderr.contains("no_such_hook"),
        "{}",
        recorded.stderr
    );
    Ok(())
}
