//! A kernel that is locked down for confidentiality.
//!
//! `cargo xtask vm` runs this in a machine whose kernel was started so; everywhere else that is simulated, and said.

use std::{
    io::{self, Write},
    path::Path,
    process::Output,
};

use anyhow::ensure;
use rtrace_tests::{
    harness,
    hosts::{Host, SECURITY, lockdown},
};

/// Set where the kernel was started locked down: there nothing may be simulated.
const MUST_BE_REAL: &str = "RTRACE_LOCKED_DOWN";

/// Whether this kernel is locked down in truth.
fn is_real() -> anyhow::Result<bool> {
    let mode = lockdown();
    let is_real = mode.as_deref() == Some("confidentiality");
    ensure!(
        is_real || std::env::var_os(MUST_BE_REAL).is_none(),
        "this kernel was to be locked down, and says {mode:?}"
    );
    Ok(is_real)
}

/// Said past the test harness, which would keep it to itself.
fn say(what: &str) {
    // Without standard error there is nobody to be told.
    let _unwritable = writeln!(io::stderr(), "lockdown: {what}");
}

/// This host if it is locked down, else one that seems to be.
fn locked_down() -> anyhow::Result<Host> {
    if is_real()? {
        say("REAL: this kernel is locked down for confidentiality");
        return Host::new();
    }
    say("SIMULATED: this kernel isn't locked down, a file says that it is");
    Ok(Host::new()?.with_lockdown("none integrity [confidentiality]"))
}

/// A recording that would leave two files.
fn record(host: &Host, folder: &Path) -> anyhow::Result<Output> {
    let mut call = host.command(&harness::binary()?);
    call.args(["record", "-o", "t.parquet", "--", "touch", "ran"]);
    Ok(call.current_dir(folder).output()?)
}

#[test]
fn it_is_told_before_anything_is_started() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let host = locked_down()?;
    let folder = tempfile::tempdir()?;
    let output = record(&host, folder.path())?;
    let words = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(125), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    for part in [
        "the kernel is locked down for confidentiality",
        "boot without lockdown=confidentiality",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(harness::files_in(folder.path())?, [""; 0]);
    Ok(())
}

#[test]
fn doctor_names_it_alone() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let host = locked_down()?;
    let output = host.command(&harness::binary()?).arg("doctor").output()?;
    let words = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(1), "{words}");
    let failed: Vec<&str> = words
        .lines()
        .filter(|line| line.starts_with("NO "))
        .collect();
    assert_eq!(failed.len(), 1, "{words}");
    assert!(failed[0].starts_with("NO    lockdown "), "{words}");
    Ok(())
}

/// Without a look at the mode the kernel itself is asked: only if it really refuses was it right to say so.
#[test]
fn the_kernel_refuses_what_was_said_to_be_impossible_and_nothing_else() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let is_real = is_real()?;
    let blind = Host::new()?.hiding(SECURITY);
    let folder = tempfile::tempdir()?;
    let output = record(&blind, folder.path())?;
    let words = String::from_utf8(output.stderr)?;
    if is_real {
        say(&format!("REAL: the kernel refused: {}", words.trim_end()));
        assert_eq!(output.status.code(), Some(125), "{words}");
        assert_eq!(words.lines().count(), 1, "{words}");
        let asked = "the kernel lets no program read its memory";
        assert!(words.contains(asked), "it wasn't asked: {words}");
        assert_eq!(harness::files_in(folder.path())?, [""; 0]);
        let judged = blind.command(&harness::binary()?).arg("doctor").output()?;
        let words = String::from_utf8(judged.stdout)?;
        assert_eq!(judged.status.code(), Some(1), "{words}");
        assert!(words.contains("NO    lockdown "), "{words}");
    } else {
        say("SIMULATED: not shown that a kernel that is locked down refuses");
        assert!(output.status.success(), "{words}");
        assert_eq!(harness::files_in(folder.path())?, ["ran", "t.parquet"]);
    }
    Ok(())
}
