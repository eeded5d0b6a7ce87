//! Processes that pretend to be others, and argument lists as long as the kernel takes them.

use std::{
    collections::BTreeSet, env, ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::PathBuf,
    process::Command,
};

use anyhow::{Context, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rtrace_tests::{
    harness::{self, Recorder},
    lone_surrogates::Text,
    report::{Process, Report},
    victims::victim,
};

/// Names that the victim's children take, as in `actor.c`: other programs', and what could harm a terminal or a page.
const NAMES: [&[u8]; 8] = [
    b"kworker/0:1",
    b"rtrace",
    b"\x1b]0;x\x07\x1b[2J",
    b"a\nb\tc",
    b"<script>",
    b"\xff\xfe",
    b"\xe2\x80\xaegnp.exe",
    b"[kthreadd]",
];
/// How the text shows them.
const SHOWN: [&str; 8] = [
    "kworker/0:1",
    "rtrace",
    r"\x1b]0;x\x07\x1b[2J",
    r"a\nb\tc",
    "<script>",
    r"\xff\xfe",
    r"\u{202e}gnp.exe",
    "[kthreadd]",
];

/// The child that only took a name, and the one that executed `/bin/true` by that name.
fn imitators(report: &Report, n: usize) -> anyhow::Result<(&Process, &Process)> {
    let code = 100 + u32::try_from(n)?;
    let others = report.others();
    let renamed = others
        .iter()
        .position(|process| process.code() == Some(code));
    let renamed = renamed.with_context(|| format!("no child for name {n}"))?;
    // The next one that was made.
    let executed = others.get(renamed + 1).context("no second child")?;
    Ok((others[renamed], executed))
}

#[test]
fn who_pretends_to_be_another_is_told_by_what_it_is() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let command = [victim("actor").into_os_string(), "imitate".into()];
    let recorded = harness::record(&command)?;
    let report = recorded.complete_report()?;
    ensure!(report.others().len() == 2 * NAMES.len());
    let text = harness::text_report(&recorded.trace)?;
    let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    ensure!(!text.contains(is_harmful), "{text:?}");
    let row = |process: &Process| -> anyhow::Result<&str> {
        // Sizes are numbers too.
        let (pid, size) = (
            format!(" {} ", process.pid),
            format!(" {} KiB", process.pid),
        );
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("PROCESSES"));
        let rows = rows.take_while(|line| !line.starts_with("MEMORY"));
        let rows: Vec<&str> = rows
            .filter(|line| line.contains(&pid) && !line.contains(&size))
            .collect();
        let [row] = rows.as_slice() else {
            anyhow::bail!("{} rows for pid {}: {text}", rows.len(), process.pid);
        };
        Ok(row.trim_start_matches(['│', '├', '└', '─', ' ']))
    };
    for (n, (name, shown)) in NAMES.into_iter().zip(SHOWN).enumerate() {
        let (renamed, executed) = imitators(&report, n)?;
        // Bytes in JSON, none of them changed.
        assert_eq!(renamed.comm, Some(Text(name.to_vec())));
        let image = executed.image()?;
        assert_eq!(image.argv, Some(vec![Text(name.to_vec())]));
        assert_eq!(image.filename, Some(Text::from("/bin/true")));
        // In text what it is comes first.
        let expected = format!("actor as {shown} (fork)");
        let told = row(renamed)?;
        ensure!(told.starts_with(&expected), "not '{expected}': {told}");
        let told = row(executed)?;
        let last = name.rsplit(|byte| *byte == b'/').next();
        let expected = match last {
            Some(b"0:1") => "true as 0:1 ".to_owned(),
            _ => format!("true as {shown} "),
        };
        ensure!(told.starts_with(&expected), "not '{expected}': {told}");
    }
    Ok(())
}

/// The page that says how tables are read; in the program, since a virtual machine has no documentation.
const FORMATS: &str = include_str!("../../docs/formats.md");

/// Reads tables with Python's csv and with the function that docs/formats.md gives; prints, in JSON, the bytes of
/// each process's name and those of each executed program's file and first argument, as hexadecimal digits.
const READ_BACK: &str = r#"
import csv, json, sys
page = open(sys.argv[1], encoding="utf-8").read()
code = page.split("are undone by\n\n", 1)[1].split("\n\n", 1)[0]
exec("\n".join(line[4:] for line in code.splitlines()))
def rows(path):
    raw = open(path, "rb").read().decode("utf-8")
    assert all(c.isprintable() or c == "\n" for c in raw), raw
    table = list(csv.DictReader(raw.splitlines(keepends=True), strict=True))
    assert raw.count("\n") == len(table) + 1
    for cell in (cell for row in table for cell in row.values()):
        assert not any(part.startswith(tuple("=+-@\t\r")) for part in cell.split(";")), cell
    return table
print(json.dumps({
    "processes": [[int(r["pid"]), text(r["comm"]).hex()] for r in rows(sys.argv[2])],
    "images": [[int(r["pid"]), text(r["filename"]).hex(),
                json.loads(r["argv"])[0].encode("utf-8", "surrogateescape").hex()]
               for r in rows(sys.argv[3]) if r["how"] == "exec"],
}))
"#;

#[derive(serde::Deserialize)]
struct ReadBack {
    processes: Vec<(u32, String)>,
    images: Vec<(u32, String, String)>,
}

#[test]
fn tables_are_harmless_and_say_the_same() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let command = [victim("actor").into_os_string(), "imitate".into()];
    let recorded = harness::record(&command)?;
    let report = recorded.complete_report()?;
    let folder = tempfile::tempdir()?;
    let export = |what: &str| -> anyhow::Result<PathBuf> {
        let path = folder.path().join(what);
        let output = Command::new(harness::binary()?)
            .args(["export", "--format", "csv", "--what", what, "-o"])
            .args([&path, &recorded.trace])
            .output()?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.success() && said.is_empty(), "{said}");
        Ok(path)
    };
    let page = folder.path().join("formats.md");
    fs::write(&page, FORMATS)?;
    let output = Command::new("/usr/bin/python3")
        .args(["-X", "utf8", "-c", READ_BACK])
        .args([page, export("processes")?, export("images")?])
        .output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.success(), "{said}");
    let read: ReadBack = serde_json::from_slice(&output.stdout)?;
    ensure!(read.processes.len() == report.processes.len());
    let hex = |bytes: &[u8]| -> String {
        bytes
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    };
    for (n, name) in NAMES.into_iter().enumerate() {
        let (renamed, executed) = imitators(&report, n)?;
        let row = (renamed.pid, hex(name));
        ensure!(read.processes.contains(&row), "no {row:?}");
        let row = (executed.pid, hex(b"/bin/true"), hex(name));
        ensure!(read.images.contains(&row), "no {row:?}");
    }
    Ok(())
}

/// What the kernel allows arguments and environment together: a quarter of the stack (execve(2)).
const LIMIT: usize = 2 << 20;
/// The same with the largest stack: three quarters of 8 MiB.
const LARGEST: usize = 6 << 20;
/// Longest single word with its NUL (`MAX_ARG_STRLEN`).
const WORD: usize = 128 << 10;

/// Records `/bin/true` with these arguments, with a stack of `limit` times four, whatever this machine's is.
/// What is kept of them is checked; whether they are cut is returned.
fn is_cut(words: Vec<String>, limit: usize) -> anyhow::Result<bool> {
    let command: Vec<String> = std::iter::once("/bin/true".to_owned())
        .chain(words)
        .collect();
    let set = format!("ulimit -s {}; exec \"$@\"", (4 * limit) >> 10);
    let shell = ["/bin/sh", "-c", &set, "sh"];
    let recorded = Recorder::new().under(&shell).record(&command)?;
    ensure!(recorded.status.success(), "{}", recorded.stderr);
    let report = recorded.complete_report()?;
    let image = report.root()?.image()?;
    let size: usize = command.iter().map(|word| word.len() + 1).sum();
    assert_eq!(image.argv_bytes, Some(size as u64));
    let kept = image.argv.as_ref().context("no arguments")?;
    let is_cut = image.argv_truncated.context("cut or not?")?;
    let (last, whole) = kept.split_last().context("no arguments")?;
    let is_same = |(kept, given): (&Text, &String)| kept.0 == given.as_bytes();
    ensure!(
        whole.iter().zip(&command).all(is_same),
        "words before the last differ"
    );
    let given = command.get(whole.len()).context("more words than given")?;
    if is_cut {
        ensure!(
            given.as_bytes().starts_with(&last.0),
            "the cut word differs"
        );
    } else {
        ensure!(kept.len() == command.len() && last.0 == given.as_bytes());
    }
    let bytes: usize = kept.iter().map(|word| word.0.len() + 1).sum();
    ensure!(
        is_cut == (bytes < size),
        "{bytes} of {size} bytes, said to be cut: {is_cut}"
    );
    let text = harness::text_report(&recorded.trace)?;
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "a line is too long"
    );
    Ok(is_cut)
}

/// Room for words beside the environment and what rtrace is called with.
fn room(limit: usize) -> usize {
    let of = |text: &OsStr| text.as_bytes().len() + 1;
    let environment: usize = env::vars_os()
        .map(|(name, value)| of(&name) + of(&value) + size_of::<usize>())
        .sum();
    limit - environment - (16 << 10)
}

/// As many words as there is room for, all but the last as long as may be.
fn longest_words(limit: usize) -> Vec<String> {
    let mut room = room(limit);
    let mut words = Vec::new();
    while room > size_of::<usize>() + 100 {
        let length = (room - size_of::<usize>()).min(WORD);
        let number = format!("{:08} ", words.len());
        let mut word = number.repeat(length / number.len() + 1);
        word.truncate(length - 1);
        words.push(word);
        room -= length + size_of::<usize>();
    }
    words
}

#[test]
fn the_longest_words_are_whole() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let words = longest_words(LIMIT);
    ensure!(words.len() > 15, "only {} words", words.len());
    ensure!(!is_cut(words, LIMIT)?, "they are cut");
    Ok(())
}

#[test]
fn what_only_a_larger_stack_allows_is_cut_and_said_to_be() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // The words come to the shell with this process's own stack.
    let (soft, hard) = getrlimit(Resource::RLIMIT_STACK)?;
    setrlimit(Resource::RLIMIT_STACK, hard, hard).context("the stack can't be made larger")?;
    let is_cut = is_cut(longest_words(LARGEST), LARGEST);
    setrlimit(Resource::RLIMIT_STACK, soft, hard)?;
    ensure!(is_cut?, "they aren't cut");
    Ok(())
}

#[test]
fn the_most_words_are_whole() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Each costs its letters, a NUL and a pointer.
    let count = room(LIMIT) / (6 + 1 + size_of::<usize>());
    let words: Vec<String> = (0..count).map(|n| format!("{n:06}")).collect();
    let different: BTreeSet<&String> = words.iter().collect();
    ensure!(different.len() == count && count > 100_000, "{count} words");
    ensure!(!is_cut(words, LIMIT)?, "they are cut");
    Ok(())
}
