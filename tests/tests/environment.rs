//! Of each program's environment a short list of variables is kept, and nothing else gets into the trace.

use std::{collections::BTreeMap, fmt::Write};

use anyhow::Context;
use rtrace::trace::Trace;
use rtrace_tests::harness::{self, Recorded, Recorder};

type Variables = BTreeMap<String, String>;

fn variables(list: &[(&str, &str)]) -> Variables {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    list.iter().map(owned).collect()
}

/// By exit code, what each process's last program got.
fn environments(recorded: &Recorded) -> anyhow::Result<BTreeMap<u32, Variables>> {
    let report = recorded.complete_report()?;
    let mut all = BTreeMap::new();
    for process in &report.processes {
        let env = process
            .env
            .as_ref()
            .with_context(|| format!("{process:?}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let env = env
            .iter()
            .map(|(name, value)| (name.clone(), text(&value.0)));
        all.insert(process.code().context("no code")?, env.collect());
    }
    Ok(all)
}

#[test]
fn each_program_has_the_values_that_it_got() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let script =
        "OMP_NUM_THREADS=3 MALLOC_ARENA_MAX=1 sh -c 'exit 1'; env -i sh -c 'exit 2'; exit 4";
    let recorded = Recorder::new()
        .env("OMP_NUM_THREADS", "8")
        .env("PYTHONMALLOC", "debug")
        .record(&["/bin/sh", "-c", script])?;
    let all = environments(&recorded)?;
    let inherited = ("PYTHONMALLOC", "debug");
    let own = [
        inherited,
        ("OMP_NUM_THREADS", "3"),
        ("MALLOC_ARENA_MAX", "1"),
    ];
    let expected = [
        (1, variables(&own)),
        (2, Variables::new()),
        (4, variables(&[inherited, ("OMP_NUM_THREADS", "8")])),
    ];
    assert_eq!(all, BTreeMap::from(expected));
    Ok(())
}

#[test]
fn what_is_not_kept_is_nowhere_in_the_trace() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .option("--env=MINE")
        .env("MINE", "wanted-value")
        .env("NOT_MINE", "unwanted-value")
        .record(&["/bin/true"])?;
    assert_eq!(
        environments(&recorded)?[&0],
        variables(&[("MINE", "wanted-value")])
    );
    let trace = Trace::open(&recorded.trace)?;
    let mut rows = format!("{:?}", trace.recording());
    for event in trace.events() {
        write!(rows, "{:?}", event?)?;
    }
    // Bytes are shown as a list of numbers, text as it is.
    let has = |text: &str| {
        let bytes = format!("{:?}", text.as_bytes());
        rows.contains(bytes.trim_matches(['[', ']'])) || rows.contains(text)
    };
    assert!(has("MINE=wanted-value"));
    assert!(!has("unwanted-value") && !has("NOT_MINE"));
    Ok(())
}

#[test]
fn a_large_environment_is_looked_through_to_its_end() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Strings of 100,000 bytes, two of which are more than one record takes. Those of a program come in its order.
    let large = "x".repeat(100_000);
    let script = "env -i A=$LARGE B=$LARGE MALLOC_TOP_PAD_=5 sh -c 'exit 1'; exit 4";
    let recorded = Recorder::new()
        .env("LARGE", &large)
        .record(&["/bin/sh", "-c", script])?;
    let all = environments(&recorded)?;
    assert_eq!(all[&1], variables(&[("MALLOC_TOP_PAD_", "5")]));
    // Longer than what is looked through: that is said.
    let script = "env -i A=$LARGE B=$LARGE C=$LARGE MALLOC_TOP_PAD_=5 sh -c 'exit 1'; exit 4";
    let recorded = Recorder::new()
        .env("LARGE", &large)
        .record(&["/bin/sh", "-c", script])?;
    assert_eq!(environments(&recorded)?[&1], Variables::new());
    let notes = recorded.report()?.trust.notes.join("\n");
    assert!(
        notes.contains("environment was too large to be looked through"),
        "{notes}"
    );
    Ok(())
}
