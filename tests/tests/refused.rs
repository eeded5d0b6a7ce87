//! Why calls of fork failed, of programs that run into limits which the tests have set. What a program counted itself,
//! and what the kernel counted in `pids.events`, has to come out.

use std::{ffi::OsString, fs, path::Path};

use anyhow::{Context, ensure};
use rtrace::{host::btf::Btf, record::BTF};
use rtrace_tests::{
    groups::{Group, top, top_of_version_2},
    harness,
    report::{ForkRefusal, Report},
    victims::victim,
};

const EAGAIN: u64 = 11;
const ENOMEM: u64 = 12;

/// What the program said of the process that was refused.
struct Refused {
    report: Report,
    refusals: Vec<ForkRefusal>,
    made: u64,
    failed: u64,
    errno: u64,
}

impl Refused {
    fn of(what: &str, limit: u64, wanted: u64, folders: &[&Path]) -> anyhow::Result<Self> {
        let _alone = harness::alone()?;
        let mut command: Vec<OsString> = vec![victim("refused").into(), what.into()];
        command.extend([limit, wanted].map(|number| number.to_string().into()));
        command.extend(folders.iter().map(|folder| folder.as_os_str().to_owned()));
        let done = harness::record(&command)?;
        ensure!(done.status.code() == Some(0), "{what}: {}", done.stderr);
        let said: Result<Vec<u64>, _> = done.stdout.lines().map(str::parse).collect();
        let said = said.with_context(|| done.stdout.clone())?;
        let [made, failed, errno, pid] = said[..] else {
            anyhow::bail!("{what}: {}", done.stdout);
        };
        let report = done.complete_report()?;
        let process = report.by_pid(u32::try_from(pid)?)?;
        let refusals = process.fork_refusals.clone().context("not known")?;
        let told: u64 = refusals.iter().map(|refusal| refusal.calls).sum();
        ensure!(
            told == failed,
            "{what}: {failed} calls failed, {refusals:?}"
        );
        Ok(Self {
            report,
            refusals,
            made,
            failed,
            errno,
        })
    }

    /// Nothing was refused.
    fn none(&self, wanted: u64) -> anyhow::Result<()> {
        let counts = (self.made, self.failed, self.refusals.len());
        ensure!(counts == (wanted, 0, 0), "{counts:?} {:?}", self.refusals);
        ensure!(
            !self
                .report
                .findings
                .iter()
                .any(|finding| finding.id == "fork.failed")
        );
        Ok(())
    }

    /// All that was refused was refused by this.
    fn all(
        &self,
        (errno, name): (u64, &str),
        (by, limit, cgroup): (Option<&str>, Option<u64>, Option<&str>),
    ) -> anyhow::Result<()> {
        ensure!(
            (self.errno, self.failed) == (errno, 3),
            "{} {}",
            self.errno,
            self.failed
        );
        let expected = ForkRefusal {
            errno: name.to_owned(),
            by: by.map(str::to_owned),
            limit,
            cgroup: cgroup.map(str::to_owned),
            calls: 3,
        };
        ensure!(self.refusals == [expected], "{:?}", self.refusals);
        Ok(())
    }
}

fn name(group: &Group) -> Option<&str> {
    group.folder.file_name()?.to_str()
}

/// A group that may hold so many processes.
fn group_of(top: &Path, kind: &str, limit: u64) -> anyhow::Result<Group> {
    let group = Group::make(top, kind)?;
    fs::write(group.folder.join("pids.max"), limit.to_string())?;
    Ok(group)
}

/// How often the kernel refused for a group's limit.
fn counted(group: &Group) -> anyhow::Result<u64> {
    let text = fs::read_to_string(group.folder.join("pids.events"))?;
    let max = text.lines().find_map(|line| line.strip_prefix("max "));
    Ok(max.context("no max")?.trim().parse()?)
}

#[test]
fn the_limit_of_a_user() -> anyhow::Result<()> {
    let refused = Refused::of("user", 12, 40, &[])?;
    // The process itself is one of them.
    assert_eq!(refused.made, 11);
    refused.all((EAGAIN, "EAGAIN"), (Some("user_limit"), Some(12), None))?;
    Refused::of("user", 60, 40, &[])?.none(40)?;
    // It isn't for root.
    Refused::of("root", 12, 40, &[])?.none(40)
}

#[test]
fn the_limit_of_a_control_group() -> anyhow::Result<()> {
    let group = group_of(top(), "pids", 9)?;
    let refused = Refused::of("group", 0, 40, &[&group.folder])?;
    assert_eq!(refused.made, 8);
    assert_eq!(counted(&group)?, 3);
    refused.all((EAGAIN, "EAGAIN"), (Some("cgroup"), Some(9), name(&group)))?;
    let found = refused
        .report
        .findings
        .iter()
        .find(|finding| finding.id == "fork.failed");
    let text = &found.context("no finding")?.text;
    ensure!(text.contains(name(&group).context("no name")?), "{text}");
    fs::write(group.folder.join("pids.max"), "60")?;
    Refused::of("group", 0, 40, &[&group.folder])?.none(40)
}

#[test]
fn a_limit_that_root_may_pass_is_not_to_blame() -> anyhow::Result<()> {
    let group = group_of(top(), "root", 9)?;
    let refused = Refused::of("group", 2, 40, &[&group.folder])?;
    assert_eq!(refused.made, 8);
    refused.all((EAGAIN, "EAGAIN"), (Some("cgroup"), Some(9), name(&group)))
}

#[test]
fn the_limit_of_a_control_group_further_up() -> anyhow::Result<()> {
    let outer = group_of(top(), "outer", 7)?;
    if top_of_version_2() == Some(top()) {
        fs::write(outer.folder.join("cgroup.subtree_control"), "+pids")?;
    }
    let inner = group_of(&outer.folder, "inner", 30)?;
    let refused = Refused::of("group", 0, 20, &[&inner.folder])?;
    assert_eq!(refused.made, 6);
    refused.all((EAGAIN, "EAGAIN"), (Some("cgroup"), Some(7), name(&outer)))?;
    // Both are full: the inner one is asked first.
    fs::write(inner.folder.join("pids.max"), "7")?;
    let refused = Refused::of("group", 0, 20, &[&inner.folder])?;
    refused.all((EAGAIN, "EAGAIN"), (Some("cgroup"), Some(7), name(&inner)))
}

#[test]
fn the_caller_s_group_is_not_to_blame_for_a_child_of_another() -> anyhow::Result<()> {
    let Some(other) = top_of_version_2().filter(|folder| *folder != top()) else {
        eprintln!("skipped: pids are limited in version 2, where such a child isn't refused");
        return Ok(());
    };
    let group = group_of(top(), "into", 9)?;
    let refused = Refused::of("into", 0, 40, &[&group.folder, other])?;
    refused.all((EAGAIN, "EAGAIN"), (None, None, None))
}

#[test]
fn a_namespace_whose_first_process_has_ended() -> anyhow::Result<()> {
    let refused = Refused::of("ended", 0, 4, &[])?;
    assert_eq!(refused.made, 0);
    refused.all((ENOMEM, "ENOMEM"), (Some("ended_namespace"), None, None))?;
    Refused::of("living", 0, 4, &[])?.none(4)
}

#[test]
fn numbers_of_a_namespace_that_are_used_up() -> anyhow::Result<()> {
    if Btf::read(Path::new(BTF))?
        .member("pid_namespace", "pid_max")
        .is_none()
    {
        eprintln!("skipped: only the host has a pid_max");
        return Ok(());
    }
    // The least that the kernel takes. The first process has a number too, and 0 is none.
    let refused = Refused::of("numbers", 301, 400, &[])?;
    assert_eq!(refused.made, 299);
    refused.all((EAGAIN, "EAGAIN"), (Some("pid_numbers"), Some(301), None))?;
    Refused::of("numbers", 301, 299, &[])?.none(299)
}
