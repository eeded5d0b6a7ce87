//! What programs write over their arguments, compared with what the kernel tells them of that (`/proc/self/cmdline`).

use std::{ffi::OsString, fs};

use anyhow::{Context, ensure};
use rtrace::trace::Trace;
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::Process,
    victims::victim,
};

fn done(how: &str) -> anyhow::Result<Recorded> {
    let mut command: Vec<OsString> = vec![victim("title").into(), how.into()];
    command.extend(["an argument", "another one"].map(OsString::from));
    Recorder::new()
        .env("LONGER", "y".repeat(600))
        .record(&command)
}

fn texts(process: &Process) -> Vec<String> {
    let titles = process.titles.iter();
    titles
        .map(|title| String::from_utf8_lossy(&title.text.0).into_owned())
        .collect()
}

/// Whether a process's end is shown while it has its memory (since 6.16): before, a title is read only for other reasons.
fn keeps_memory() -> anyhow::Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split('.').map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    let version = major.and_then(Result::ok).zip(minor.and_then(Result::ok));
    Ok(version.context("no version")? >= (6, 16))
}

#[test]
fn a_title_is_read_at_the_end() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = done("short")?;
    let report = recorded.complete_report()?;
    let root = report.root()?;
    if !keeps_memory()? {
        return Ok(());
    }
    ensure!(
        texts(root) == [recorded.stdout.trim_end()],
        "{:?} {}",
        root.titles,
        recorded.stdout
    );
    ensure!(
        root.title.as_ref().is_some_and(|title| title == "app: one"),
        "{root:?}"
    );
    let text = harness::text_report(&recorded.trace)?;
    ensure!(text.contains("title as app: one"), "{text}");
    Ok(())
}

#[test]
fn one_that_goes_on_over_the_environment_is_read_and_its_secrets_are_hidden() -> anyhow::Result<()>
{
    let _alone = harness::alone()?;
    let recorded = done("long")?;
    let report = recorded.complete_report()?;
    if !keeps_memory()? {
        return Ok(());
    }
    let said = recorded.stdout.trim_end().replace("s3cret", "[hidden]");
    ensure!(
        texts(report.root()?) == [said.clone()],
        "{:?} {said}",
        report.root()?.titles
    );
    ensure!(said.len() > 300 && !report.root()?.titles[0].truncated);
    let trace = Trace::open(&recorded.trace)?;
    let secret = format!("{:?}", b"s3cret");
    for event in trace.events() {
        let shown = format!("{:?}", event?);
        ensure!(!shown.contains(secret.trim_matches(['[', ']'])), "{shown}");
    }
    Ok(())
}

#[test]
fn what_is_put_back_was_seen_when_it_took_a_name() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = done("renames")?;
    let report = recorded.complete_report()?;
    let titles = texts(report.root()?);
    ensure!(
        titles.first().map(String::as_str) == Some("app: two"),
        "{titles:?}"
    );
    // Killed before 6.16, it had no memory any more when its end was shown.
    let expected = if keeps_memory()? { 2 } else { 1 };
    ensure!(titles.len() == expected, "{titles:?}");
    Ok(())
}

#[test]
fn one_is_seen_where_memory_has_its_peak() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = done("grows")?;
    let report = recorded.complete_report()?;
    let titles = texts(report.root()?);
    ensure!(
        titles.first().map(String::as_str) == Some("app: large"),
        "{titles:?}"
    );
    Ok(())
}

#[test]
fn only_who_writes_has_one() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = done("child")?.complete_report()?;
    let told = texts(report.only_child()?);
    // Where the end comes too late to read it, only a peak of memory after it shows it, if there is one.
    let is_unseen = told.is_empty() && !keeps_memory()?;
    ensure!(is_unseen || told == ["app: child"], "{report:?}");
    ensure!(texts(report.root()?).is_empty(), "{report:?}");
    let report = done("nothing")?.complete_report()?;
    ensure!(texts(report.root()?).is_empty(), "{report:?}");
    // Of programs that write none there is none, and so no row.
    let recorded = harness::record(&["/usr/bin/python3", "-c", "import os; os.fork(); os.wait"])?;
    for process in &recorded.report()?.processes {
        ensure!(process.titles.is_empty(), "{process:?}");
    }
    Ok(())
}

#[test]
fn the_titles_of_nginx_are_those_that_ps_shows() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let nginx = "/usr/sbin/nginx";
    if fs::metadata(nginx).is_err() || !keeps_memory()? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let at = folder.path().display();
    let config = format!(
        "pid {at}/pid; error_log {at}/log; worker_processes 2; events {{}} http {{ access_log off; \
         server {{ listen unix:{at}/socket; }} }}"
    );
    fs::write(folder.path().join("conf"), config)?;
    let line = format!(
        "{nginx} -c {at}/conf -g 'daemon off; user root;' & \
         until [ -S {at}/socket ] && [ $(pgrep -c -P $!) = 2 ]; do sleep 0.1; done; sleep 0.3; \
         for pid in $! $(pgrep -P $!); do ps -o pid=,args= -p $pid; done > {at}/ps; kill $!; wait"
    );
    let recorded = harness::record(&["/bin/sh", "-c", &line])?;
    let report = recorded.complete_report()?;
    let shown = fs::read_to_string(folder.path().join("ps"))?;
    ensure!(shown.lines().count() == 3, "{shown} {}", recorded.stderr);
    for line in shown.lines() {
        let (pid, title) = line.trim().split_once(' ').context("no title")?;
        let process = report.by_pid(pid.parse()?)?;
        // nginx itself calls a worker that is asked to leave something else.
        ensure!(
            texts(process).iter().any(|text| text == title.trim()),
            "{line}: {:?}",
            process.titles
        );
    }
    Ok(())
}
