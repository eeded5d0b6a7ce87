//! The working directory that a program begins in, compared with what the kernel tells that program itself.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, path::Path, process::Command};

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorder},
    report::{Image, Report},
    victims::script,
};

/// What each shell of the workload said of its own directory, by the name that it was given.
fn said(folder: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    fs::read(folder.join(name)).with_context(|| format!("nothing of {name}"))
}

/// The image of the shell that was given a name.
fn image<'a>(report: &'a Report, name: &str) -> anyhow::Result<&'a Image> {
    let is_it = |image: &&Image| {
        let argv = image.argv.iter().flatten();
        argv.last()
            .is_some_and(|last| last.0 == format!("name={name}").into_bytes())
    };
    let mut images = report.processes.iter().flat_map(|process| &process.images);
    images
        .find(is_it)
        .with_context(|| format!("no image of {name}"))
}

/// Runs the workload with its folder as `$1`.
fn workload(folder: &Path) -> Vec<OsString> {
    let mut command: Vec<OsString> =
        vec!["/usr/bin/python3".into(), script("directories.py").into()];
    command.push(folder.into());
    command
}

#[test]
fn each_program_has_the_path_that_the_kernel_tells_it() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let recorded = harness::record(&workload(folder.path()))?;
    ensure!(recorded.status.success(), "{}", recorded.stderr);
    let report = recorded.complete_report()?;
    for name in ["plain", "bytes", "mounted", "bound", "deep", "top"] {
        let (image, said) = (image(&report, name)?, said(folder.path(), name)?);
        let cwd = image.cwd.as_ref().context("not known")?;
        ensure!(
            cwd.0 == said,
            "{name}: {cwd:?} and not {:?}",
            OsString::from_vec(said)
        );
        ensure!(
            !image.cwd_truncated && !image.cwd_deleted && !image.cwd_unreachable,
            "{image:?}"
        );
    }
    let removed = image(&report, "removed")?;
    let mut told = removed.cwd.clone().context("not known")?.0;
    told.extend_from_slice(b" (deleted)");
    ensure!(
        removed.cwd_deleted && told == said(folder.path(), "removed")?,
        "{removed:?}"
    );
    let lost = image(&report, "unmounted")?;
    let told = lost.cwd.clone().context("not known")?.0;
    ensure!(
        lost.cwd_unreachable && told == said(folder.path(), "unmounted")?,
        "{lost:?}"
    );
    Ok(())
}

#[test]
fn of_more_than_is_kept_the_end_is_told_and_that_it_is_one() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let report = harness::record(&workload(folder.path()))?.complete_report()?;
    for (name, most_bytes) in [("long", 4096), ("many", 2 * 128)] {
        let image = image(&report, name)?;
        let cwd = &image.cwd.as_ref().context("not known")?.0;
        // Its folders are all alike; the kernel itself can't tell the whole of the first path.
        let unit: &[u8] = if name == "long" { &[b'x'; 200] } else { b"y" };
        let folders: Vec<&[u8]> = cwd.split(|byte| *byte == b'/').collect();
        ensure!(image.cwd_truncated, "{name}: {image:?}");
        ensure!(
            folders.iter().all(|folder| *folder == unit),
            "{name}: {cwd:?}"
        );
        ensure!(
            (most_bytes / 2..most_bytes).contains(&cwd.len()),
            "{name}: {}",
            cwd.len()
        );
    }
    Ok(())
}

#[test]
fn the_text_report_names_what_runs_in_a_directory_of_its_own() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let node = folder.path().join("wf").join("node_a");
    fs::create_dir_all(&node)?;
    let line = format!(
        "cd {} && /bin/true; /bin/true; cd /; /bin/false",
        node.display()
    );
    let recorded = harness::record(&["/bin/sh", "-c", &line])?;
    let text = harness::text_report(&recorded.trace)?;
    ensure!(text.contains("WORKING DIRECTORIES"), "{text}");
    ensure!(text.contains("wf/node_a\n    true (pid "), "{text}");
    ensure!(text.contains("  /\n    false (pid "), "{text}");
    Ok(())
}

#[test]
fn a_process_that_was_there_has_the_directory_that_it_was_found_in() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let folder = tempfile::tempdir()?;
    let (kept, removed) = (
        folder.path().join("kept (deleted)"),
        folder.path().join("gone"),
    );
    fs::create_dir(&kept)?;
    fs::create_dir(&removed)?;
    let mut sleeps = Vec::new();
    for place in [&kept, &removed] {
        sleeps.push(
            Command::new("/bin/sleep")
                .arg("60")
                .current_dir(place)
                .spawn()?,
        );
    }
    fs::remove_dir(&removed)?;
    let pids: Vec<String> = sleeps.iter().map(|sleep| sleep.id().to_string()).collect();
    let trace = folder.path().join("t.parquet");
    let recorder = Recorder::new()
        .option("-p")
        .option(pids.join(","))
        .option("--duration=200ms");
    let output = recorder.call::<&str>(&trace, &[])?.output()?;
    for sleep in &mut sleeps {
        sleep.kill()?;
        sleep.wait()?;
    }
    ensure!(output.status.success(), "{output:?}");
    let report = harness::report(&trace)?;
    for (sleep, place, is_removed) in [(&sleeps[0], &kept, false), (&sleeps[1], &removed, true)] {
        let image = report.by_pid(sleep.id())?.image()?;
        let cwd = image.cwd.clone().context("not known")?;
        ensure!(
            cwd.0 == place.clone().into_os_string().into_vec(),
            "{image:?}"
        );
        ensure!(image.cwd_deleted == is_removed, "{image:?}");
    }
    Ok(())
}
