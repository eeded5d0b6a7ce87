//! Hosts that can't record: what `record` and `doctor` say there.
//!
//! They are simulated (`rtrace_tests::hosts`): the program is the real one, what it reads of the
//! kernel is made up.

use std::{fmt::Write, fs, process::Output};

use anyhow::ensure;
use rtrace_tests::{
    harness,
    hosts::{BTF, Host, btf_without, btf_without_tracepoints},
};

use super::{Place, write_section};

/// What there is instead of a good host.
struct Bad {
    /// What is wrong with it.
    what: &'static str,
    host: Host,
    /// Check of `rtrace doctor` that fails.
    check: &'static str,
    /// Part of what is said.
    said: &'static str,
    /// Part of what is said to do about it.
    fix: &'static str,
}

fn bad(
    what: &'static str,
    host: Host,
    check: &'static str,
    said: &'static str,
    fix: &'static str,
) -> Bad {
    Bad {
        what,
        host,
        check,
        said,
        fix,
    }
}

/// The kernel's types can't be read, or lack something.
fn without_types() -> anyhow::Result<Vec<Bad>> {
    let whole = fs::read(BTF)?;
    let config = "CONFIG_DEBUG_INFO_BTF=y";
    Ok(vec![
        bad(
            "no BTF",
            Host::new()?.hiding("/sys/kernel/btf"),
            "btf",
            "cannot read /sys/kernel/btf/vmlinux: No such file",
            config,
        ),
        bad(
            "BTF that is cut",
            Host::new()?.with_btf(&whole[..whole.len() / 2])?,
            "btf",
            "a section lies outside of the file",
            config,
        ),
        bad(
            "BTF that is empty",
            Host::new()?.with_btf(b"")?,
            "btf",
            "no BTF",
            config,
        ),
        bad(
            "BTF that is text",
            Host::new()?.with_btf(&b"garbage ".repeat(1000))?,
            "btf",
            "doesn't begin with its magic number",
            config,
        ),
        bad(
            "an old kernel: its types don't tell tracepoints",
            Host::new()?.with_btf(&btf_without_tracepoints()?)?,
            "hooks",
            "the kernel has no tracepoints sched_process_free, ",
            "use Linux 5.10 or newer",
        ),
        bad(
            "a kernel without a hook",
            Host::new()?.with_btf(&btf_without("btf_trace_rss_stat")?)?,
            "hooks",
            "the kernel has no tracepoint rss_stat",
            "use Linux 5.10 or newer",
        ),
        bad(
            "a kernel without a member",
            Host::new()?.with_btf(&btf_without("start_boottime")?)?,
            "hooks",
            "struct task_struct has no member start_boottime",
            "use Linux 5.10 or newer",
        ),
    ])
}

/// Loading programs isn't allowed.
fn without_rights() -> anyhow::Result<Vec<Bad>> {
    Ok(vec![
        bad(
            "lockdown=confidentiality",
            Host::new()?.with_lockdown("none integrity [confidentiality]"),
            "lockdown",
            "locked down for confidentiality",
            "boot without lockdown=confidentiality",
        ),
        bad(
            "root without CAP_BPF",
            Host::new()?.withholding("-bpf,-sys_admin"),
            "rights",
            "root here lacks CAP_BPF:",
            "--cap-add BPF",
        ),
        bad(
            "root without CAP_BPF and CAP_PERFMON",
            Host::new()?.withholding("-bpf,-perfmon,-sys_admin"),
            "rights",
            "root here lacks CAP_BPF and CAP_PERFMON",
            "--cap-add BPF",
        ),
        bad(
            "root of a user namespace",
            Host::new()?.in_user_namespace(),
            "rights",
            "root here is root of a user namespace alone",
            "record from the host",
        ),
    ])
}

#[test]
fn a_host_that_cannot_record_is_told_with_a_way_out() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let place = Place::new()?;
    let before = place.files()?;
    let mut table = "| host (simulated) | typed | status | said |\n|---|---|---|---|\n".to_owned();
    let record = "record -o out/t.parquet -- touch out/ran";
    for bad in without_types()?.into_iter().chain(without_rights()?) {
        let Bad {
            what,
            host,
            check,
            said,
            fix,
        } = bad;
        let run = |typed: &str| -> anyhow::Result<Output> {
            let mut call = host.command(&place.path().join("rtrace"));
            Ok(call
                .args(typed.split(' '))
                .current_dir(place.path())
                .output()?)
        };
        let recorded = run(record)?;
        let words = String::from_utf8(recorded.stderr)?;
        ensure!(
            recorded.status.code() == Some(125),
            "{what}: {}: {words}",
            recorded.status
        );
        ensure!(recorded.stdout.is_empty(), "{what}: something was run");
        ensure!(words.lines().count() == 1, "{what}: not one line: {words}");
        for part in ["rtrace: cannot record here: ", said, fix] {
            ensure!(words.contains(part), "{what}: without '{part}': {words}");
        }
        let words = words.trim_end();
        writeln!(table, "| {what} | `rtrace {record}` | 125 | `{words}` |")?;

        let judged = run("doctor")?;
        let report = String::from_utf8(judged.stdout)?;
        ensure!(
            judged.status.code() == Some(1),
            "{what}: doctor: {}: {report}",
            judged.status
        );
        let failed = failures(&report);
        let [line] = failed.as_slice() else {
            anyhow::bail!("{what}: {} checks fail, not 1: {report}", failed.len());
        };
        let beginning = format!("NO {check} ");
        for part in [beginning.as_str(), said, fix] {
            ensure!(line.contains(part), "{what}: without '{part}': {line}");
        }
        ensure!(report.ends_with("rtrace can't record here.\n"), "{report}");
        writeln!(table, "| {what} | `rtrace doctor` | 1 | `{line}` |")?;
        ensure!(place.files()? == before, "{what}: files have changed");
    }
    write_section("hosts", &table)
}

/// The checks that fail, each with what to do in one line.
fn failures(report: &str) -> Vec<String> {
    let mut out: Vec<Vec<&str>> = Vec::new();
    let mut is_failure = false;
    for line in report.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let goes_on = line.starts_with(' ');
        if !goes_on {
            is_failure = words.first() == Some(&"NO");
        }
        match out.last_mut() {
            Some(last) if is_failure && goes_on => last.extend(words),
            _ if is_failure => out.push(words),
            _ => {}
        }
    }
    out.iter().map(|words| words.join(" ")).collect()
}

#[test]
fn a_made_up_host_is_otherwise_the_real_one() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let place = Place::new()?;
    // The same types from another file, and lockdown in a mode that allows reading.
    let host = Host::new()?
        .with_btf(&fs::read(BTF)?)?
        .with_lockdown("none [integrity] confidentiality");
    let mut call = host.command(&place.path().join("rtrace"));
    let output = call
        .args(["record", "-q", "-o", "out/t.parquet", "--", "true"])
        .current_dir(place.path())
        .output()?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {words}", output.status);
    ensure!(place.path().join("out/t.parquet").exists());
    Ok(())
}
