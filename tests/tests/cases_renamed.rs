//! The acceptance cases once more, with other names and other numbers: the script, the interpreter, the folder and the
//! programs in C are called otherwise, and there are other numbers of workers, sizes and sleeps. The same findings must be
//! raised, and the same must not: so no rule can rest on a name or a number that a case happens to have.
//!
//! Of findings that must not be about some of the processes nothing is asked here: which ones those are, the cases tell
//! by what was changed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorder},
    report::Report,
    runner::{self, Outcome, Test},
};
use serde::Deserialize;

const PYTHON: &str = "/usr/bin/python3";

/// A piece of a case's program, and what takes its place.
type Change = (&'static str, &'static str);

/// What is changed in each case besides names, by the start of its folder's name. Cases that aren't here have no number of
/// a kind that a rule could match.
const CHANGES: &[(&str, &[Change])] = &[
    (
        "01",
        &[
            ("2000", "1500"),
            ("bad == 200", "bad == 150"),
            ("live == 4", "live == 3"),
        ],
    ),
    (
        "05",
        &[
            ("time.sleep(1.2)", "time.sleep(1.6)"),
            ("time.sleep(.2)", "time.sleep(.4)"),
        ],
    ),
    ("07", &[("time.sleep(1.0)", "time.sleep(1.4)")]),
    (
        "21",
        &[("800<<20", "500<<20"), ("time.sleep(.6)", "time.sleep(.8)")],
    ),
    (
        "24",
        &[
            ("victim-", "colleague-"),
            ("time.sleep(.3)", "time.sleep(.5)"),
            ("time.sleep(.4)", "time.sleep(.7)"),
        ],
    ),
    (
        "25",
        &[
            ("range(4)", "range(6)"),
            ("i==3", "i==5"),
            ("time.sleep(.4)", "time.sleep(.6)"),
        ],
    ),
    ("27", &[("700<<20", "500<<20"), ("700<<10", "500<<10")]),
    (
        "30",
        &[
            ("S=256<<20", "S=200<<20"),
            ("range(4)", "range(6)"),
            ("n<4", "n<6"),
        ],
    ),
    ("31", &[("400<<20", "300<<20"), ("range(8)", "range(5)")]),
    ("35", &[("6<<30", "4<<30"), ("range(6)", "range(3)")]),
    ("37", &[("(3,3)", "(5,5)"), ("(2,6)", "(4,4)")]),
    (
        "39",
        &[("memcg(200<<20)", "memcg(120<<20)"), ("600<<20", "400<<20")],
    ),
    (
        "41",
        &[
            ("Pool(4)", "Pool(7)"),
            ("range(2)", "range(3)"),
            ("time.sleep(.2)", "time.sleep(.3)"),
        ],
    ),
    (
        "42",
        &[
            ("Executor(6", "Executor(3"),
            ("time.sleep(.3)", "time.sleep(.5)"),
        ],
    ),
    (
        "43",
        &[
            ("Executor(2", "Executor(3"),
            ("range(10)", "range(15)"),
            ("time.sleep(.05)", "time.sleep(.08)"),
        ],
    ),
    (
        "44",
        &[
            ("Pool(3)", "Pool(5)"),
            ("range(6)", "range(10)"),
            ("time.sleep(.1)", "time.sleep(.15)"),
        ],
    ),
    (
        "45",
        &[
            ("Pool(2", "Pool(3"),
            ("range(6)", "range(9)"),
            ("time.sleep(.1)", "time.sleep(.15)"),
        ],
    ),
    (
        "46",
        &[
            ("Pool(2)", "Pool(4)"),
            ("x==1", "x==2"),
            ("range(4)", "range(8)"),
            ("get(1.5)", "get(1.9)"),
        ],
    ),
    (
        "48",
        &[
            ("Executor(3", "Executor(5"),
            ("n==3", "n==5"),
            ("time.sleep(1.0)", "time.sleep(1.3)"),
        ],
    ),
    (
        "50",
        &[
            ("time.sleep(1.8)", "time.sleep(2.3)"),
            ("time.sleep(.3)", "time.sleep(.5)"),
        ],
    ),
    ("51", &[("time.sleep(1.0)", "time.sleep(1.4)")]),
    ("52", &[("time.sleep(1.2)", "time.sleep(1.7)")]),
    (
        "53",
        &[
            ("time.sleep(1.5)", "time.sleep(2.2)"),
            ("time.sleep(2.6)", "time.sleep(3.4)"),
            ("t<2.4", "t<3.2"),
        ],
    ),
    (
        "58",
        &[
            ("80 if", "100 if"),
            (".4 if", ".6 if"),
            ("else 1.4", "else 1.9"),
        ],
    ),
];

#[derive(Deserialize)]
struct Expected {
    facts: Vec<Fact>,
}

#[derive(Deserialize)]
struct Fact {
    kind: String,
    finding: Option<String>,
    #[serde(default)]
    is: serde_json::Value,
    who: Option<String>,
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Copies a case to a folder under other names; the path of its program.
fn renamed(case: &Path, changes: &[Change], to: &Path) -> anyhow::Result<PathBuf> {
    let interpreter = to.join("engine");
    symlink(PYTHON, &interpreter)?;
    let folder = to.join("some-job");
    fs::create_dir(&folder)?;
    let program = folder.join("start-it");
    let mut changes = changes.to_vec();
    for (from, name) in [("run", "start-it"), ("w.c", "tool.c")] {
        let Ok(mut text) = fs::read_to_string(case.join(from)) else {
            continue;
        };
        changes.retain(|(old, new)| {
            let is_here = text.contains(old);
            text = text.replace(old, new);
            !is_here
        });
        let text = text
            .replacen(
                &format!("#!{PYTHON}"),
                &format!("#!{}", interpreter.display()),
                1,
            )
            .replace("w.c", "tool.c")
            .replace("$b/w", "$b/tool");
        fs::write(folder.join(name), text)?;
    }
    ensure!(changes.is_empty(), "not in the case any more: {changes:?}");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

fn one(name: &str) -> anyhow::Result<Outcome> {
    let case = cases().join(name);
    let is_in_c = case.join("w.c").exists();
    if is_in_c && harness::is_emulated() {
        return Ok(Outcome::Skipped("there is no C compiler".to_owned()));
    }
    let changes = CHANGES.iter().find(|(start, _)| name.starts_with(start));
    let place = tempfile::tempdir()?;
    let program = renamed(
        &case,
        changes.map_or(&[], |(_, changes)| changes),
        place.path(),
    )?;
    let temporary = place.path().join("tmp");
    fs::create_dir(&temporary)?;
    if is_in_c {
        let status = Command::new(&program)
            .arg("--prep")
            .env("TMPDIR", &temporary)
            .status()?;
        ensure!(status.success(), "--prep ended with {status}");
    }
    let recorded = Recorder::new()
        .env("TMPDIR", &temporary)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .record(&[&program])?;
    let report = recorded.report()?;
    match report.root()?.code() {
        Some(77) => return Ok(Outcome::Skipped(recorded.stderr.trim().to_owned())),
        _ => judged(&case, &report).with_context(|| recorded.stderr.clone())?,
    }
    Ok(Outcome::Passed)
}

/// Whether the findings are those that the case asks for.
fn judged(case: &Path, report: &Report) -> anyhow::Result<()> {
    // Arguments that aren't text are in there as halves of characters, which no string can hold.
    let text = fs::read_to_string(case.join("expect.json"))?.replace("\\udc", "\\\\udc");
    let expected: Expected = serde_json::from_str(&text)?;
    for fact in expected.facts.iter().filter(|fact| fact.kind == "finding") {
        let id = fact.finding.as_deref().context("a finding without id")?;
        let is_raised = report.findings.iter().any(|f| f.id == id && f.assessed);
        match fact.is.as_str() {
            Some("must") => ensure!(is_raised, "no {id}: {:#?}", report.findings),
            Some("must_not") if fact.who.is_none() => {
                ensure!(!is_raised, "{id}: {:#?}", report.findings);
            }
            Some("must_not") => {}
            other => anyhow::bail!("{id} is {other:?}"),
        }
    }
    Ok(())
}

fn tests() -> anyhow::Result<Vec<Test<'static>>> {
    let names = harness::files_in(&cases())?;
    for (start, _) in CHANGES {
        ensure!(
            names.iter().any(|name| name.starts_with(start)),
            "there is no case {start}"
        );
    }
    let is_case = |name: &String| cases().join(name).join("run").exists();
    let of = |name: String| Test {
        name: format!("renamed_{name}"),
        run: Box::new(move || one(&name)),
    };
    Ok(names.into_iter().filter(is_case).map(of).collect())
}

fn main() -> ExitCode {
    runner::main(tests)
}
