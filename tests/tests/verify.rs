//! `rtrace record --verify`: finds nothing where nothing is wrong, and does find what is.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use rtrace::{event::Verification, trace::Trace};
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    victims::{script, victim},
};

/// With what follows, a program as a user who owns nothing.
const AS_NOBODY: [&str; 5] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--",
];

fn found(trace: &Path) -> anyhow::Result<Verification> {
    let recording = Trace::open(trace)?.recording().clone();
    recording.verification.context("nothing was verified")
}

/// Records with `--verify`.
fn verified(how: Recorder, command: &[OsString]) -> anyhow::Result<(Recorded, Verification)> {
    let recorded = how.option("--verify").record(command)?;
    ensure!(
        recorded.status.success(),
        "{}: {}",
        recorded.status,
        recorded.stderr
    );
    let found = found(&recorded.trace)?;
    Ok((recorded, found))
}

/// How long something is to last in which several looks at it find their place: emulated machines are slow, and after
/// a slow look the next one waits the longer.
fn seconds() -> &'static str {
    if std::env::var_os("RTRACE_EMULATED").is_some() {
        "8"
    } else {
        "2"
    }
}

/// A Python program that gets 20 MiB and keeps them.
fn program() -> String {
    format!(
        "import time; memory = bytearray(20 << 20); time.sleep({})",
        seconds()
    )
}

fn pages(what: &[&str]) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![victim("pages").into(), "/dev/null".into()];
    command.extend(what.iter().map(OsString::from));
    command
}

/// Enough was compared, and nothing was off by more than it may be: not at all where counters are exact.
fn is_good(recorded: &Recorded, found: &Verification, points: u64) -> anyhow::Result<()> {
    judge(recorded, found, points).with_context(|| format!("{found:?}"))
}

fn judge(recorded: &Recorded, found: &Verification, points: u64) -> anyhow::Result<()> {
    ensure!(found.points >= points, "{} points", found.points);
    ensure!(found.beyond == 0, "{:?}", found.shown);
    ensure!(found.skipped.refused == 0);
    for (name, compared) in &found.quantities {
        ensure!(compared.values > 0, "no {name}");
        ensure!(compared.largest_bytes <= compared.bound_bytes, "{name}");
    }
    let bound = recorded.report()?.recording.rss_bound_bytes;
    if bound == 0 {
        ensure!(found.quantities["rss"].bound_bytes == 0);
        ensure!(found.quantities["rss"].largest_bytes == 0);
    } else {
        ensure!(found.quantities["rss"].bound_bytes >= 3 * bound);
    }
    Ok(())
}

#[test]
fn a_pool_of_python_is_the_same_on_both_sides() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for method in ["fork", "spawn"] {
        let command = [
            "python3".into(),
            script("pool.py").into_os_string(),
            method.into(),
        ];
        let (recorded, found) = verified(Recorder::new(), &command)?;
        is_good(&recorded, &found, 3)?;
        ensure!(found.max_rss_bytes.is_some_and(|rss| rss > 1 << 20));
    }
    Ok(())
}

#[test]
fn so_are_processes_that_do_all_kinds_of_things() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for what in [
        &["tour"][..],
        &["storm"],
        &["busy", seconds()],
        &["walk", "1", "2000"],
    ] {
        let (recorded, found) = verified(Recorder::new(), &pages(what))?;
        is_good(&recorded, &found, 3).with_context(|| format!("{what:?}"))?;
    }
    Ok(())
}

/// The values that are compared don't wait for a row.
#[test]
fn however_coarse_the_rows_are() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let how = Recorder::new().option("--resolution=1G");
    let (recorded, found) = verified(how, &pages(&["busy", seconds()]))?;
    is_good(&recorded, &found, 3)
}

#[test]
fn with_counters_that_are_not_exact_the_bound_holds() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let how = Recorder::new().option("--most-cpus=0");
    let (recorded, found) = verified(how, &pages(&["busy", seconds()]))?;
    is_good(&recorded, &found, 3)?;
    ensure!(recorded.report()?.recording.rss_bound_bytes > 0);
    let largest = found.largest.context("exact after all")?;
    ensure!(largest.bytes() <= largest.bound_bytes, "{largest:?}");
    Ok(())
}

/// Without the hook that tells of resident memory, what is recorded stays as it was at exec.
#[test]
fn a_change_that_is_not_recorded_is_found_and_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("t.parquet");
    let output = Command::new(harness::binary()?)
        .args(["record", "--verify", "--without", "rss_stat", "-o"])
        .arg(&trace)
        .args(["--", "python3", "-c", &program()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let found = found(&trace)?;
    ensure!(found.beyond > 0);
    let rss = found.shown.iter().find(|d| d.quantity == "rss");
    let rss = rss.context("no RSS")?;
    ensure!(
        rss.proc_bytes > 20 << 20 && rss.bytes() > 20 << 20,
        "{rss:?}"
    );
    ensure!(found.quantities["vms"].values > 0);
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("checked:   against /proc at "));
    let line = line.context("not told at the end")?;
    ensure!(line.contains("more than they may"), "{line}");
    let source = format!("/proc/{}/smaps_rollup says", rss.pid);
    ensure!(said.contains(&source), "{said}");
    let text = harness::text_report(&trace)?.replace("\n    ", " ");
    ensure!(text.contains(&source), "{text}");
    let json = Command::new(harness::binary()?)
        .arg("report")
        .arg(&trace)
        .arg("--json")
        .output()?;
    let json: serde_json::Value = serde_json::from_slice(&json.stdout)?;
    let beyond = json["trust"]["verification"]["beyond"].as_u64();
    ensure!(beyond == Some(found.beyond), "{beyond:?}");
    Ok(())
}

#[test]
fn so_is_a_mapping() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let how = Recorder::new().without("mmap_lock_released");
    let command = ["python3", "-c", &program()].map(OsString::from);
    let (_, found) = verified(how, &command)?;
    let vms = found.shown.iter().find(|d| d.quantity == "vms");
    ensure!(vms.is_some_and(|vms| vms.bytes() > 10 << 20), "{vms:?}");
    Ok(())
}

#[test]
fn processes_of_another_user_are_compared_too() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let mut command: Vec<OsString> = AS_NOBODY.map(OsString::from).into();
    command.extend(["/bin/sleep", seconds()].map(OsString::from));
    let (recorded, found) = verified(Recorder::new(), &command)?;
    is_good(&recorded, &found, 3)
}

/// rtrace of a user with the three capabilities may look into that user's processes and into no others.
#[test]
fn what_is_not_permitted_is_counted_and_the_rest_is_compared() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::set_permissions(path(""), fs::Permissions::from_mode(0o777))?;
    fs::copy(harness::binary()?, path("rtrace"))?;
    fs::copy("/bin/sleep", path("sleep"))?;
    harness::as_asked_for(&path("rtrace"))?;
    let sleep = || -> anyhow::Result<Verification> {
        let trace = path("t.parquet");
        let output = Command::new(AS_NOBODY[0])
            .args(&AS_NOBODY[1..])
            .arg(path("rtrace"))
            .args(["record", "--verify", "-o"])
            .arg(&trace)
            .arg("--")
            .arg(path("sleep"))
            .arg(seconds())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}");
        found(&trace)
    };
    let own = sleep()?;
    ensure!(own.skipped.refused == 0 && own.beyond == 0);
    ensure!(own.quantities["rss"].values > 3);
    // Runs as root, whoever calls it.
    fs::set_permissions(path("sleep"), fs::Permissions::from_mode(0o4755))?;
    let roots = sleep()?;
    ensure!(roots.skipped.refused > 3 && roots.beyond == 0);
    ensure!(roots.quantities["rss"].values == 0);
    ensure!(roots.quantities["anon"].values > 3);
    Ok(())
}

#[test]
fn a_command_s_end_is_its_own_however_short_it_is() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let how = Recorder::new().option("--verify");
    let recorded = how.record(&["/bin/sh", "-c", "exit 7"])?;
    ensure!(recorded.status.code() == Some(7), "{}", recorded.status);
    found(&recorded.trace)?;
    ensure!(recorded.report()?.trust.complete);
    // Processes that come and go all the time.
    let act: [PathBuf; 3] = [victim("actor"), "forks".into(), "500".into()];
    let recorded = how.record(&act)?;
    ensure!(recorded.status.success(), "{}", recorded.stderr);
    ensure!(found(&recorded.trace)?.beyond == 0);
    ensure!(recorded.complete_report()?.codes().get(&Some(7)) == Some(&500));
    // Without the option nothing is said.
    let plain = harness::record(&["/bin/true"])?;
    ensure!(
        Trace::open(&plain.trace)?
            .recording()
            .verification
            .is_none()
    );
    Ok(())
}
