//! What making a process took, and what its creator was then, compared with the creator's own clock and with `/proc`.

use std::ffi::OsString;

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorder},
    report::{Process, Report},
    victims::victim,
};

const MIB: u64 = 1 << 20;

/// What the creator said: pid, times before the call, in the child and after the call, and its memory in KiB.
struct Said {
    pid: u32,
    before: u64,
    in_child: u64,
    after: u64,
    vms: u64,
    rss: u64,
    page_tables: u64,
}

fn made(how: &str, mib: u64) -> anyhow::Result<(Report, Process, Said)> {
    let command: [OsString; 3] = [
        victim("creation").into(),
        how.into(),
        mib.to_string().into(),
    ];
    let done = Recorder::new().record(&command)?;
    let numbers: Result<Vec<u64>, _> = done.stdout.split_whitespace().map(str::parse).collect();
    let numbers = numbers?;
    let [pid, before, in_child, after, vms, rss, page_tables] = numbers[..] else {
        anyhow::bail!("{}{}", done.stdout, done.stderr);
    };
    let pid = u32::try_from(pid)?;
    let report = done.complete_report()?;
    let child = report.by_pid(pid)?.clone();
    let (vms, rss, page_tables) = (vms << 10, rss << 10, page_tables << 10);
    let said = Said {
        pid,
        before,
        in_child,
        after,
        vms,
        rss,
        page_tables,
    };
    Ok((report, child, said))
}

#[test]
fn the_call_takes_no_longer_than_its_caller_sees() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for how in ["fork", "clone3"] {
        let (_, child, said) = made(how, 64)?;
        let took = child
            .fork_ns
            .with_context(|| format!("{how}: not known: {child:?}"))?;
        ensure!(took > 0 && took < said.after - said.before, "{how}: {took}");
        // The kernel gives the child its start within the call.
        ensure!(
            (said.before..said.after).contains(&child.start_ns),
            "{how}: {child:?}"
        );
    }
    Ok(())
}

#[test]
fn what_vfork_waits_for_is_not_in_it() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (_, child, said) = made("vfork", 64)?;
    let took = child.fork_ns.context("not known")?;
    // The child has begun long before its creator goes on, and it begins after the call has made it.
    ensure!(said.after - said.in_child >= 200_000_000);
    ensure!(took > 0 && took <= said.in_child - said.before, "{took}");
    Ok(())
}

#[test]
fn the_creators_memory_is_what_proc_says() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for how in ["fork", "vfork"] {
        let (report, child, said) = made(how, 64)?;
        ensure!(
            child.creator_threads == Some(3) && child.pid == said.pid,
            "{child:?}"
        );
        ensure!(
            child.creator_vms_bytes == Some(said.vms),
            "{how}: {} {child:?}",
            said.vms
        );
        let tables = child.creator_page_tables_bytes;
        ensure!(
            tables == Some(said.page_tables),
            "{how}: {} {child:?}",
            said.page_tables
        );
        let rss = child.creator_rss_bytes.context("not known")?;
        // What one counter may be off by, for each of three and of three threads; and the code of the last lines, of
        // which the kernel maps 64 KiB around each page that is touched.
        let bound = 9 * report.recording.rss_bound_bytes + MIB;
        ensure!(
            rss > 64 * MIB && rss.abs_diff(said.rss) <= bound,
            "{how}: {rss} {}",
            said.rss
        );
    }
    Ok(())
}

#[test]
fn it_is_not_known_where_it_is_not_looked_for() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let command: [OsString; 3] = [victim("actor").into(), "forks".into(), "1".into()];
    let recorder = Recorder::new().option("--no-failed-calls");
    let report = recorder.record(&command)?.report()?;
    let child = report.only_child()?;
    ensure!(
        child.fork_ns.is_none() && child.creator_vms_bytes.is_some(),
        "{child:?}"
    );
    Ok(())
}
