//! Who was killed for memory, with how much, and what had run out.

use std::ffi::OsString;

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorded},
    kernel_log,
    report::{Oom, Process, Report},
    victims::victim,
};

const MIB: u64 = 1 << 20;
/// Limit of the groups.
const LIMIT: u64 = 40;

/// What the victims said: the group, and pid and status of the children in the order of their ends.
struct Said {
    group: String,
    children: Vec<(u32, u32)>,
}

fn said(stdout: &str) -> anyhow::Result<Said> {
    let mut lines = stdout.lines();
    let group = lines.next().context("no group was named")?.to_owned();
    let children = lines
        .map(|line| {
            let (pid, status) = line.split_once(' ').context("no status")?;
            Ok((pid.parse()?, status.parse()?))
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(Said { group, children })
}

fn acted(what: &str) -> anyhow::Result<(Said, Report, Recorded)> {
    let command: [OsString; 3] = [victim("oom").into(), what.into(), LIMIT.to_string().into()];
    let recorded = harness::record(&command)?;
    ensure!(
        recorded.status.code() == Some(0),
        "no control group for memory can be made here: {}",
        recorded.status
    );
    let report = recorded.complete_report()?;
    Ok((said(&recorded.stdout)?, report, recorded))
}

fn is_oom(process: &Process) -> Option<bool> {
    process.exit.as_ref().and_then(|exit| exit.oom)
}

/// The row of a victim, which must have been killed by the limit of that group.
fn by_limit<'a>(process: &'a Process, group: &str) -> anyhow::Result<&'a Oom> {
    assert_eq!((process.signal(), is_oom(process)), (Some(9), Some(true)));
    let oom = process.oom.as_ref().context("it is no victim")?;
    assert_eq!(oom.scope.as_deref(), Some("cgroup"));
    assert_eq!(oom.cgroup.as_deref(), Some(group));
    assert_eq!(oom.limit_bytes, Some(LIMIT * MIB));
    Ok(oom)
}

/// Whether the memory of each victim in the report is what the kernel wrote of it when it killed it: what is mapped to the
/// byte, and each kind of RSS as far as the kernel's own counters lag, besides the report's bound. Fails if a victim isn't in
/// the kernel's log.
fn as_the_kernel_wrote(report: &Report) -> anyhow::Result<()> {
    let victims = kernel_log::victims()?;
    let lag = kernel_counters_lag(report.recording.rss_bound_bytes)?;
    let chosen = report
        .processes
        .iter()
        .filter_map(|p| Some((p.pid, p.oom.as_ref()?)));
    for (pid, oom) in chosen {
        let written = victims.iter().rev().find(|victim| victim.pid == pid);
        let written = written.with_context(|| format!("{pid} is not in the kernel's log"))?;
        assert_eq!(oom.vms_bytes, Some(written.vms), "{pid}");
        for (kind, recorded, written) in [
            ("anon", oom.rss_anon_bytes, written.anon),
            ("file", oom.rss_file_bytes, written.file),
            ("shmem", oom.rss_shmem_bytes, written.shmem),
        ] {
            let recorded = recorded.context("not known")?;
            ensure!(
                recorded.abs_diff(written) <= lag,
                "{pid}, {kind}: recorded {recorded}, written {written}, lag {lag}"
            );
        }
    }
    Ok(())
}

/// By how much a counter of RSS may lag where nobody adds up what CPUs keep to themselves (`percpu_counter_batch` for
/// each), and as much as what is recorded where threads do (before 6.2), bytes.
fn kernel_counters_lag(bound: u64) -> anyhow::Result<u64> {
    let cpus = u64::try_from(std::thread::available_parallelism()?.get())?;
    let by_cpus = (2 * cpus).max(32) * cpus * 4096;
    Ok(by_cpus + 2 * bound)
}

/// Whether a kind of memory is what fills a share of the limit: not more than that, and less only by what the group is
/// charged besides, which the kernel may not have given back yet, and by the counters' own error.
fn fills(report: &Report, bytes: Option<u64>, percent: u64) -> anyhow::Result<()> {
    let (bytes, wanted) = (bytes.context("not known")?, LIMIT * MIB * percent / 100);
    let bound = report.recording.rss_bound_bytes;
    ensure!(
        bytes <= wanted + 2 * MIB + bound && bytes + 6 * MIB + bound >= wanted,
        "{bytes} bytes, expected about {wanted}"
    );
    Ok(())
}

#[test]
fn a_process_over_the_limit_of_its_group() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (said, report, recorded) = acted("private")?;
    let child = report.only_child()?;
    assert_eq!(said.children, [(child.pid, 9)]);
    let oom = by_limit(child, &said.group)?;
    fills(&report, oom.rss_anon_bytes, 100)?;
    ensure!(oom.rss_bytes >= oom.rss_anon_bytes && oom.vms_bytes >= Some(3 * LIMIT * MIB));
    as_the_kernel_wrote(&report)?;
    assert_eq!(
        (is_oom(report.root()?), report.tree.oom_kills),
        (Some(false), Some(1))
    );
    let text = harness::text_report(&recorded.trace)?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "control group {} had reached its limit of 40.0 MiB",
        said.group
    );
    ensure!(words.contains(&expected), "{text}");
    Ok(())
}

#[test]
fn shared_memory_is_told_apart() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (said, report, _) = acted("shared")?;
    let oom = by_limit(report.only_child()?, &said.group)?;
    fills(&report, oom.rss_shmem_bytes, 100)?;
    ensure!(oom.rss_anon_bytes < Some(LIMIT * MIB / 4), "{oom:?}");
    as_the_kernel_wrote(&report)?;
    Ok(())
}

#[test]
fn the_group_with_the_limit_is_named_not_the_one_below() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (said, report, _) = acted("nested")?;
    by_limit(report.only_child()?, &said.group)?;
    Ok(())
}

#[test]
fn the_victim_need_not_be_who_asked_for_memory() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (said, report, _) = acted("other")?;
    let [(asking, status), (victim, 9)] = said.children.as_slice() else {
        anyhow::bail!("{:?}", said.children);
    };
    let (asking, victim) = (report.by_pid(*asking)?, report.by_pid(*victim)?);
    // Usually it gets the victim's memory and ends with 3; 7.2 may kill it too before it has given that back.
    let is_killed = *status == 9;
    ensure!(is_killed || *status == 3 << 8, "{status:#x}");
    assert_eq!(is_oom(asking), Some(is_killed));
    let oom = by_limit(victim, &said.group)?;
    fills(&report, oom.rss_anon_bytes, 60)?;
    assert_eq!(report.tree.oom_kills, Some(1 + u64::from(is_killed)));
    as_the_kernel_wrote(&report)?;
    Ok(())
}

#[test]
fn who_shares_the_victims_memory_is_killed_for_it_too() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (_, report, _) = acted("sharing")?;
    let killed: Vec<_> = report
        .others()
        .iter()
        .map(|process| (process.signal(), is_oom(process)))
        .collect();
    assert_eq!(killed, [(Some(9), Some(true)); 2]);
    let chosen = report.processes.iter().filter(|p| p.oom.is_some());
    assert_eq!((chosen.count(), report.tree.oom_kills), (1, Some(2)));
    Ok(())
}

#[test]
fn a_kill_by_somebody_else_is_none_for_memory() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (said, report, _) = acted("spared")?;
    let child = report.only_child()?;
    assert_eq!(said.children, [(child.pid, 9)]);
    assert_eq!((child.signal(), is_oom(child)), (Some(9), Some(false)));
    ensure!(child.oom.is_none() && report.tree.oom_kills == Some(0));
    Ok(())
}

#[test]
#[ignore = "a machine that others use must not run out of memory: virtual machines only"]
fn the_whole_host() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    ensure!(harness::is_emulated(), "this machine is used by others");
    let command: [OsString; 3] = [victim("oom").into(), "host".into(), "0".into()];
    let report = harness::record(&command)?.report()?;
    let child = report.only_child()?;
    assert_eq!((child.signal(), is_oom(child)), (Some(9), Some(true)));
    let oom = child.oom.as_ref().context("it is no victim")?;
    assert_eq!(oom.scope.as_deref(), Some("host"));
    ensure!(oom.cgroup.is_none() && oom.limit_bytes.is_none(), "{oom:?}");
    ensure!(oom.rss_anon_bytes > Some(256 * MIB), "{oom:?}");
    Ok(())
}
