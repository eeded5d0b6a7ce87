//! Tables of stories, read back.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::{
    event::{Memory, Oom, OomScope},
    model::{Tree, testkit::Story},
    report::escape::is_harmful,
    testing::{documentation, python},
};

fn export(story: &Story, table: Table, format: Format) -> String {
    let tree: Tree = story.tree();
    let report = Report::new(&tree, &story.recorded());
    let mut out = Vec::new();
    write(&report, &tree.timeline, table, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Nothing but line ends does more than show itself.
fn assert_harmless(text: &str) {
    let is_harmless = |c: char| c == '\n' || !is_harmful(c);
    assert!(text.chars().all(is_harmless), "{text:?}");
}

/// Rows of CSV by name of the column.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

/// What `escape` did, undone.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.to_string().bytes());
            continue;
        }
        match chars.next().unwrap() {
            '\\' => out.push(b'\\'),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'x' => {
                let digits: String = chars.by_ref().take(2).collect();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            'u' => {
                let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&digits, 16).unwrap();
                out.extend(char::from_u32(code).unwrap().to_string().bytes());
            }
            other => panic!("\\{other} in {text}"),
        }
    }
    out
}

/// Names that would do harm where they are taken for more than text.
const NAMES: [&[u8]; 10] = [
    b"=HYPERLINK(\"http://x\",\"y\")",
    b"@SUM(1)",
    b"-2+3",
    b"\t=1+1",
    b"a,b\"c\r\nd",
    b"x;=cmd|' /C calc'!A0",
    b"\x1b]0;x\x07\x1b[2J",
    b"\xff\xfe\\",
    "\u{202e}gnp.exe\u{ff1d}".as_bytes(),
    b"<script>alert(1)</script>",
];

fn hostile() -> Story {
    let mut story = Story::new();
    story.root(10, &["run"]).memory(10, 3);
    for (pid, name) in (100..).zip(NAMES) {
        story.after(1).fork(10, pid).after(1);
        story.exec_bytes(pid, pid, vec![name.to_vec(), b"-c".to_vec()]);
        story.memory(pid, 5).exit(pid, 0).reaped(pid);
    }
    story.exit(10, 0);
    story
}

#[test]
fn hostile_names_come_back_and_begin_no_formula() {
    let text = export(&hostile(), Table::Images, Format::Csv);
    assert_harmless(&text);
    // A line for each row: no cell holds a line end.
    let rows = rows(&text);
    assert_eq!(text.lines().count(), rows.len() + 1);
    for (pid, name) in (100..).zip(NAMES) {
        let pid = format!("{pid}");
        let image = rows
            .iter()
            .find(|row| row["pid"] == pid && row["how"] == "exec");
        let image = image.unwrap();
        assert_eq!(unescape(&image["filename"]), name);
        for cell in image.values().flat_map(|cell| cell.split(';')) {
            assert!(
                !cell.starts_with(['=', '+', '-', '@', '\u{ff1d}']),
                "{cell}"
            );
        }
        if let Ok(name) = std::str::from_utf8(name) {
            let argv: Vec<String> = serde_json::from_str(&image["argv"]).unwrap();
            assert_eq!(argv, [name, "-c"]);
        }
    }
    assert!(text.contains(r#"[""\udcff\udcfe\\"",""-c""]"#), "{text}");
}

#[test]
fn values_are_those_of_the_report() {
    let mut story = Story::new();
    story.root(10, &["run"]).memory(10, 3).after(2).fork(10, 11);
    story
        .after(1)
        .memory(11, 9)
        .after(4)
        .killed(11, 9)
        .after(3)
        .reaped_with_cpu(11, 7);
    story
        .fork(10, 12)
        .after(1)
        .vfork(12, 13)
        .exit(10, 3)
        .after(400);
    let processes = rows(&export(&story, Table::Processes, Format::Csv));
    assert_eq!(processes.len(), 4);
    let (root, killed, alive) = (&processes[0], &processes[1], &processes[2]);
    for (row, column, value) in [
        (root, "exit_code", "3"),
        (root, "exit_signal", ""),
        (root, "created_by", "root"),
        (root, "program", "run"),
        (root, "peak_rss_bytes", "4194304"),
        (killed, "exit_signal", "9"),
        (killed, "exit_code", ""),
        (killed, "creator_pid", "10"),
        (killed, "creator_start_ns", &root["start_ns"]),
        (killed, "peak_rss_bytes", "10485760"),
        (killed, "cpu_ns", "7000000"),
        (killed, "zombie_ns", "3000000"),
        (alive, "end_ns", ""),
        // Not known is another thing than none.
        (alive, "exit_core", ""),
        (killed, "exit_core", "false"),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
    let memory = rows(&export(&story, Table::Memory, Format::Csv));
    let highest = memory
        .iter()
        .map(|row| row["max_rss_bytes"].parse::<u64>().unwrap())
        .max();
    assert_eq!(
        Some(highest),
        Some(
            Report::new(&story.tree(), &story.recorded())
                .tree
                .peak_rss_sum_bytes
        )
    );
    for pair in memory.windows(2) {
        assert_eq!(pair[0]["end_ns"], pair[1]["start_ns"]);
    }
}

/// Keys of JSON with those of what is within; lists are one value.
fn keys(value: &Value, prefix: &str, out: &mut BTreeMap<String, bool>) {
    let Value::Object(map) = value else { return };
    for (key, value) in map {
        let name = format!("{prefix}{key}");
        let is_map = ["env", "fork_failures"].contains(&name.as_str());
        if value.is_object() && !is_map {
            keys(value, &format!("{name}_"), out);
        } else {
            out.insert(name, value.is_null());
        }
    }
}

#[test]
fn every_key_of_the_report_has_its_column() {
    let mut story = Story::new();
    let oom = Oom {
        mm: None,
        memory: Some(Memory::default()),
        scope: Some(OomScope::Host),
        cgroup: Some("job".into()),
        limit: Some(1),
    };
    story.root(10, &["run"]).after(1).fork(10, 11).after(1);
    story
        .exec(11, &["fit"])
        .memory(11, 5)
        .oom(11, oom)
        .after(1)
        .killed(11, 9);
    story
        .found(10, 12, &["old"])
        .vfork(11, 13)
        .reaped(11)
        .exit(10, 0);
    let names: Vec<&str> = processes::COLUMNS
        .iter()
        .map(|column| column.name)
        .collect();
    let image_names: Vec<&str> = images::columns().iter().map(|column| column.name).collect();
    let check = |table, names: &[&str]| {
        let text = export(&story, table, Format::JsonLines);
        let mut seen = BTreeMap::new();
        for line in text.lines() {
            keys(&serde_json::from_str(line).unwrap(), "", &mut seen);
        }
        assert!(seen.len() > 20);
        for (key, is_null) in seen {
            let key = key
                .strip_prefix("process_pid")
                .map_or(key.as_str(), |_| "pid");
            let is_there = names.contains(&key);
            let is_prefix = names
                .iter()
                .any(|name| name.starts_with(&format!("{key}_")));
            assert!(is_there || (is_null && is_prefix), "no column for {key}");
        }
    };
    check(Table::Processes, &names);
    check(Table::Images, &image_names);
    for names in [names, image_names] {
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "a name comes twice");
    }
}

#[test]
fn json_lines_are_the_entries_of_the_report() {
    let story = hostile();
    let text = export(&story, Table::Processes, Format::JsonLines);
    assert_harmless(&text);
    let report = Report::new(&story.tree(), &story.recorded());
    assert_eq!(text.lines().count(), report.processes.len());
    for (line, process) in text.lines().zip(&report.processes) {
        // Lone surrogates are no text for serde_json: those are compared as they are written.
        let expected = serde_json::to_string(process).unwrap();
        match serde_json::from_str::<Value>(line) {
            Ok(value) => assert_eq!(value, serde_json::from_str::<Value>(&expected).unwrap()),
            Err(_) => assert_eq!(line, expected),
        }
    }
}

#[test]
fn python_reads_the_same() {
    let text = export(&hostile(), Table::Images, Format::Csv);
    let script = "import csv, sys, json\n\
        rows = list(csv.DictReader(sys.stdin))\n\
        print(json.dumps([[r['pid'], r['how'], r['filename']] for r in rows]))";
    let seen: Vec<[String; 3]> = serde_json::from_slice(&python(script, text.as_bytes())).unwrap();
    let names: Vec<Vec<u8>> = seen
        .iter()
        .filter(|[pid, how, _]| how == "exec" && pid != "10")
        .map(|[.., filename]| unescape(filename))
        .collect();
    assert_eq!(names, NAMES.map(<[u8]>::to_vec));
}

#[test]
fn the_documentation_has_the_columns() {
    let parts = [
        ("processes", Table::Processes),
        ("images", Table::Images),
        ("memory", Table::Memory),
    ];
    let parts = parts.map(|(name, table)| (name, super::documentation(table)));
    documentation("formats.md", &parts);
}
