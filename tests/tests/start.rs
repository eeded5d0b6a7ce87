//! The start of a recording: nothing of rtrace in the tree, and nothing of rtrace in the command.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Stdio},
};

use anyhow::Context;
use rtrace_tests::{
    harness::{self, Recorder},
    lone_surrogates::Text,
};

#[test]
fn only_the_command_is_in_the_tree_from_its_first_exec() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = harness::record(&["/bin/true", "an argument"])?.complete_report()?;
    assert_eq!(report.processes.len(), 1);
    let root = report.root()?;
    assert_eq!(root.created_by.as_deref(), Some("root"));
    assert_eq!((root.creator, root.creator_threads), (None, Some(1)));
    assert_eq!((root.threads_created, root.threads_max), (Some(0), Some(1)));
    let [image] = root.images.as_slice() else {
        anyhow::bail!("{} images, not 1: {:?}", root.images.len(), root.images);
    };
    assert_eq!(image.how, "exec");
    assert_eq!(image.filename, Some(Text::from("/bin/true")));
    assert_eq!(image.comm, Some(Text::from("true")));
    assert_eq!(
        image.argv,
        Some(vec![Text::from("/bin/true"), Text::from("an argument")])
    );
    assert_eq!(image.end_ns, root.end_ns);
    assert!(
        image.start_ns.is_some_and(|start| start >= root.start_ns),
        "{root:?}"
    );
    Ok(())
}

#[test]
fn memory_of_the_recorder_is_not_the_commands() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let report = harness::record(&["/bin/true"])?.complete_report()?;
    let peak = report.root()?.image()?.peak_rss_bytes.context("no peak")?;
    // `true` with the dynamic loader has 1 to 2 MB; with the counter's error on 2 CPUs up to 3.
    assert!((500_000..4_000_000).contains(&peak), "{peak} bytes");
    Ok(())
}

#[test]
fn a_command_without_a_slash_is_looked_up_in_path() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorder = Recorder::new().env("PATH", "/nonexistent:/etc:/bin");
    let report = recorder.record(&["true"])?.complete_report()?;
    let image = report.root()?.image()?;
    assert_eq!(image.filename, Some(Text::from("/bin/true")));
    assert_eq!(image.argv, Some(vec![Text::from("true")]));
    Ok(())
}

/// What a shell says of its descriptors, signals, limits, session and place.
const LOOK: &str = "ls -1 /proc/self/fd | wc -l; grep -E '^(Sig[BICP]|Shd|Cap|NoNew|Seccomp|Uid|Gid|Groups)' /proc/self/status; \
                    cat /proc/self/oom_score_adj /proc/self/timerslack_ns; ulimit -a; umask; pwd; nice; ps -o sid= -p $$";

#[test]
fn the_command_starts_as_if_rtrace_were_not_there() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let direct = Command::new("/bin/sh")
        .args(["-c", LOOK])
        .stdin(Stdio::null())
        .output()?;
    let recorded = harness::record(&["/bin/sh", "-c", LOOK])?;
    let line = |text: &str| {
        text.lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        line(&recorded.stdout),
        line(&String::from_utf8(direct.stdout)?)
    );
    Ok(())
}

#[test]
fn signals_that_are_ignored_stay_so() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let ignoring = ["/usr/bin/env", "--ignore-signal=HUP,INT,QUIT,TERM,PIPE"];
    let look = ["/bin/grep", "^SigIgn", "/proc/self/status"];
    let direct = Command::new(ignoring[0])
        .arg(ignoring[1])
        .args(look)
        .output()?;
    let recorded = Recorder::new().under(&ignoring).record(&look)?;
    assert!(direct.stdout.starts_with(b"SigIgn:"));
    assert_eq!(recorded.stdout, String::from_utf8(direct.stdout)?);
    assert_eq!(recorded.status.code(), Some(0));
    Ok(())
}

/// Variables by name; `_` is set by whoever calls.
fn variables(text: &str) -> BTreeMap<&str, &str> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.filter(|(name, _)| *name != "_").collect()
}

#[test]
fn the_environment_reaches_the_command_unchanged() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let mut direct = Command::new("/usr/bin/env");
    let direct = direct.env("RTRACE_TEST_VARIABLE", "a value").output()?;
    let direct = String::from_utf8(direct.stdout)?;
    let with_variable = Recorder::new().env("RTRACE_TEST_VARIABLE", "a value");
    let recorded = with_variable.record(&["/usr/bin/env"])?;
    let (expected, found) = (variables(&direct), variables(&recorded.stdout));
    assert_eq!(found.get("RTRACE_TEST_VARIABLE"), Some(&"a value"));
    // Names only: values may be secrets, which don't belong into the log of a failure.
    let names = expected.keys().chain(found.keys()).collect::<BTreeSet<_>>();
    let changed: Vec<_> = names
        .iter()
        .filter(|name| expected.get(**name) != found.get(**name))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
    Ok(())
}
