//! Who gets the children of a process that ends, compared with what each orphan itself saw by `getppid`.

use std::ffi::OsString;

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness,
    report::{Parent, Process, Report},
    victims::victim,
};

/// A line of the program: what, a pid, when.
type Line = (String, u32, u64);

struct Seen {
    report: Report,
    lines: Vec<Line>,
}

impl Seen {
    fn of(case: &str) -> anyhow::Result<Self> {
        let command: [OsString; 2] = [victim("orphans").into(), case.into()];
        let done = harness::record(&command)?;
        ensure!(
            done.status.code() == Some(0),
            "{case}: {}{}",
            done.stdout,
            done.stderr
        );
        let lines: Option<Vec<Line>> = done.stdout.lines().map(line).collect();
        let lines = lines.with_context(|| done.stdout.clone())?;
        Ok(Self {
            report: done.complete_report()?,
            lines,
        })
    }

    fn said<'a>(&'a self, what: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.0 == what)
    }

    fn orphan(&self) -> anyhow::Result<&Process> {
        let mut all = self.report.processes.iter();
        all.find(|process| process.code() == Some(7))
            .context("no orphan")
    }

    /// Compares the parents with what the orphan saw; `inner`: how it saw a pid of the report.
    fn check(&self, case: &str, inner: impl Fn(u32) -> Option<u32>) -> anyhow::Result<()> {
        let orphan = self.orphan()?;
        let seen: Vec<&Line> = self.said("orphan").collect();
        // Its creator ends as the first, and so on: each says so before.
        let ends: Vec<&Line> = self.said("parent").collect();
        let pids: Vec<Option<u32>> = orphan.parents.iter().map(|p| inner(p.pid)).collect();
        let expected: Vec<Option<u32>> = seen.iter().map(|line| Some(line.1)).collect();
        ensure!(pids == expected, "{case}: {:?} {seen:?}", orphan.parents);
        ensure!(orphan.parents[0].ns == Some(orphan.start_ns), "{case}");
        for ((parent, end), seen) in orphan.parents[1..].iter().zip(ends).zip(&seen[1..]) {
            // The parent had said that it would end, and the orphan saw it later.
            let ns = parent
                .ns
                .with_context(|| format!("{case}: not known when"))?;
            ensure!(
                (end.2..=seen.2).contains(&ns),
                "{case}: {end:?} {ns} {seen:?}"
            );
        }
        let last = orphan
            .parents
            .last()
            .map(|parent| (parent.pid, parent.start_ns));
        let final_parent = orphan.final_parent.map(|id| (id.pid, id.start_ns));
        ensure!(last == final_parent, "{case}: {last:?} {final_parent:?}");
        Ok(())
    }
}

fn line(text: &str) -> Option<Line> {
    let mut words = text.split(' ');
    let what = words.next()?.to_owned();
    Some((
        what,
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
    ))
}

fn ids(parents: &[Parent]) -> Vec<(u32, Option<u64>)> {
    let id = |parent: &Parent| (parent.pid, parent.start_ns);
    parents.iter().map(id).collect()
}

#[test]
fn the_nearest_subreaper_gets_them_or_else_the_first_process() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for case in ["init", "no_more", "subreaper", "late", "threads"] {
        let seen = Seen::of(case)?;
        seen.check(case, Some)?;
        let orphan = seen.orphan()?;
        ensure!(orphan.parents.len() == 2, "{case}: {:?}", orphan.parents);
        let is_root = ids(&orphan.parents)[1] == (seen.report.root.pid, seen.report.root.start_ns);
        let is_ours = !["init", "no_more"].contains(&case);
        ensure!(is_root == is_ours, "{case}: {:?}", orphan.parents);
    }
    Ok(())
}

#[test]
fn a_subreaper_that_ends_gives_them_to_the_next() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let seen = Seen::of("chain")?;
    seen.check("chain", Some)?;
    let orphan = seen.orphan()?;
    ensure!(orphan.parents.len() == 3, "{:?}", orphan.parents);
    ensure!(ids(&orphan.parents)[2] == (seen.report.root.pid, seen.report.root.start_ns));
    Ok(())
}

#[test]
fn in_a_pid_namespace_its_first_process_gets_them() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let seen = Seen::of("namespace")?;
    let inner = |pid| seen.report.by_pid(pid).ok()?.pid_ns;
    seen.check("namespace", inner)?;
    let orphan = seen.orphan()?;
    let first = seen.said("inner").next().context("no first process")?.1;
    ensure!(orphan.parents.len() == 2 && orphan.parents[1].pid == first);
    Ok(())
}

#[test]
fn a_sister_has_the_parent_of_its_creator() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let seen = Seen::of("sister")?;
    let sister = seen.orphan()?;
    let saw: Vec<u32> = seen.said("orphan").map(|line| line.1).collect();
    ensure!(saw == [seen.report.root.pid], "{saw:?}");
    let creator = sister.creator.context("no creator")?;
    ensure!(
        ids(&sister.parents)
            == [
                (creator.pid, creator.start_ns),
                (seen.report.root.pid, seen.report.root.start_ns)
            ],
        "{:?}",
        sister.parents
    );
    Ok(())
}
