//! What `rtrace doctor` says of real hosts, in full words and as JSON.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, ensure};
use rtrace_tests::{disk::Disk, harness, hosts::BTF};
use serde_json::Value;

/// Starts a program as a user without rights.
const AS_NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// A copy of rtrace in a folder.
fn copy_to(folder: &Path) -> anyhow::Result<PathBuf> {
    let copy = folder.join("rtrace");
    fs::copy(harness::binary()?, &copy).context("cannot copy rtrace")?;
    Ok(copy)
}

fn as_nobody(options: &[&str], rtrace: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut call = Command::new(AS_NOBODY[0]);
    call.args(&AS_NOBODY[1..]).args(options).arg("--");
    call.arg(rtrace).args(arguments).current_dir("/");
    Ok(call.output()?)
}

/// Text and fix of a check, if the judgement has it.
fn check(judged: &Output, id: &str) -> anyhow::Result<Option<(String, String, String)>> {
    let judgement: Value = serde_json::from_slice(&judged.stdout)?;
    let checks = judgement["checks"].as_array().context("no checks")?;
    let word = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    Ok(checks.iter().find(|check| check["id"] == id).map(|check| {
        (
            word(check, "status"),
            word(check, "text"),
            word(check, "fix"),
        )
    }))
}

fn may_have_capabilities(file: &Path) -> anyhow::Result<bool> {
    let mut setcap = Command::new("setcap");
    let output = setcap.arg("cap_kill=ep").arg(file).output();
    Ok(output
        .context("no setcap (apt-get install libcap2-bin)")?
        .status
        .success())
}

#[test]
fn a_file_system_without_attributes_is_named() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let disk = Disk::without_attributes()?;
    let rtrace = copy_to(&disk.path())?;
    ensure!(!may_have_capabilities(&rtrace)?, "it has attributes");
    let judged = as_nobody(&[], &rtrace, &["doctor", "--json"])?;
    assert_eq!(judged.status.code(), Some(1));
    let (status, text, fix) = check(&judged, "file")?.context("not named")?;
    assert_eq!(status, "fail");
    assert!(
        text.contains("without extended attributes (ramfs)"),
        "{text}"
    );
    assert!(fix.contains("/usr/local/bin"), "{fix}");
    // The letter for an administrator has a line that can't work there.
    let letter = as_nobody(&[], &rtrace, &["doctor", "--for-admin"])?;
    let note = String::from_utf8(letter.stderr)?;
    assert!(note.contains("without extended attributes"), "{note}");
    // With the line that would work, recording doesn't need any.
    let recorded = as_nobody(
        &[],
        &rtrace,
        &["record", "-o", "/tmp/rtrace-test.parquet", "--", "true"],
    )?;
    let words = String::from_utf8(recorded.stderr)?;
    assert!(words.contains(" sudo "), "{words}");
    // Root isn't bothered with it.
    let judged = Command::new(&rtrace).args(["doctor", "--json"]).output()?;
    assert_eq!(check(&judged, "file")?, None);
    Ok(())
}

#[test]
fn a_file_system_that_takes_capabilities_is_not() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let disk = Disk::in_memory(200 << 10)?;
    fs::set_permissions(disk.path().parent().context("folder")?, open())?;
    let rtrace = copy_to(&disk.path())?;
    ensure!(may_have_capabilities(&rtrace)?, "it has no attributes");
    fs::remove_file(&rtrace)?;
    let judged = as_nobody(&[], &copy_to(&disk.path())?, &["doctor", "--json"])?;
    assert_eq!(check(&judged, "file")?, None);
    Ok(())
}

fn open() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

#[test]
fn a_mount_without_rights_is_named() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let disk = Disk::nosuid()?;
    let rtrace = copy_to(&disk.path())?;
    let judged = as_nobody(&[], &rtrace, &["doctor", "--json"])?;
    let (_, text, _) = check(&judged, "file")?.context("not named")?;
    assert!(text.contains("nosuid"), "{text}");
    Ok(())
}

#[test]
fn where_no_rights_can_be_gained_sudo_is_not_proposed() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), open())?;
    let rtrace = copy_to(folder.path())?;
    let bound = ["--no-new-privs"];
    let judged = as_nobody(&bound, &rtrace, &["doctor", "--json"])?;
    let (_, text, _) = check(&judged, "file")?.context("not named")?;
    assert!(text.contains("no_new_privs"), "{text}");
    let recorded = as_nobody(
        &bound,
        &rtrace,
        &["record", "-o", "/tmp/rtrace-test.parquet", "--", "true"],
    )?;
    let words = String::from_utf8(recorded.stderr)?;
    assert_eq!(recorded.status.code(), Some(125));
    assert!(
        words.contains("no_new_privs") && !words.contains("rtrace record"),
        "{words}"
    );
    Ok(())
}

#[test]
fn another_kernels_types_are_judged_without_rights() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), open())?;
    let rtrace = copy_to(folder.path())?;
    let copy = folder.path().join("vmlinux");
    fs::copy(BTF, &copy)?;
    fs::set_permissions(&copy, open())?;
    let path = copy.to_string_lossy();
    let judged = as_nobody(&[], &rtrace, &["doctor", "--json", "--btf", &path])?;
    assert_eq!(judged.status.code(), Some(0));
    let (status, ..) = check(&judged, "btf")?.context("not judged")?;
    assert_eq!(status, "ok");
    assert_eq!(check(&judged, "rights")?, None, "the caller's don't matter");
    Ok(())
}

#[test]
fn a_reader_that_has_gone_is_no_failure() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for arguments in [&["doctor"][..], &["doctor", "--json"]] {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let mut call = Command::new(harness::binary()?);
        call.args(arguments).stdout(writer).stderr(Stdio::piped());
        let output = call.spawn()?.wait_with_output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*words), (Some(0), ""));
    }
    Ok(())
}
