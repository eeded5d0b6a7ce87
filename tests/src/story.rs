//! The text report without what differs from run to run: times, sizes, pids, places.
//!
//! What is left is the story: who was there, in which pools, how it ended and what was found. The sections about memory
//! and work are left out, since nearly all of them is figures.

use std::collections::BTreeMap;

const TIMES: &[&str] = &["ns", "us", "ms", "s", "min", "h"];
const SIZES: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB"];
/// Sections that are kept.
const KEPT: &[&str] = &["FINDINGS", "PROCESSES", "POOLS", "TRUST"];

/// What is left out of one program's report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave<'a> {
    /// Folders, and what stands for them.
    pub places: &'a [(&'a str, &'a str)],
    /// Findings that come and go with sizes and times.
    pub findings: &'a [&'a str],
    /// Findings about processes of which it is chance which ones they are: only how many is told.
    pub subjects: &'a [&'a str],
    /// How many processes there were at once and how many threads.
    pub counts: bool,
}

/// The story of a text report that is wide enough not to be wrapped.
pub fn story(report: &str, leave: Leave<'_>) -> String {
    let mut pids = Pids::default();
    let mut section = None;
    let mut out = String::new();
    for line in report.lines() {
        if let Some(heading) = KEPT.iter().find(|name| line.starts_with(**name)) {
            section = Some(*heading);
        } else if line
            .split_whitespace()
            .next()
            .is_some_and(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase()))
            && !line.starts_with(' ')
        {
            section = Some("");
        }
        if !is_kept(line, section, leave) {
            continue;
        }
        let mut line = line.to_owned();
        if leave
            .subjects
            .iter()
            .any(|id| line.contains(&format!(" {id}: ")))
            && let Some(at) = line.find(" (pid")
        {
            line.truncate(at);
        }
        for (place, name) in leave.places {
            line = line.replace(place, name);
        }
        let told = told(&line, section == Some("PROCESSES"), &mut pids);
        out += &counts(&told, section, leave);
        out.push('\n');
    }
    out
}

fn is_kept(line: &str, section: Option<&str>, leave: Leave<'_>) -> bool {
    let text = line.trim_start();
    match section {
        None => !line.starts_with(' ') || text.starts_with("ran ") || is_count(text),
        Some("TRUST") => ["TRUST", "Complete", "Not "]
            .iter()
            .any(|start| text.starts_with(start)),
        Some("FINDINGS") => {
            !text.starts_with("FINDINGS")
                && !leave
                    .findings
                    .iter()
                    .any(|id| text.contains(&format!("{id}:")))
        }
        Some("") => false,
        Some(_) => true,
    }
}

/// "4 processes (3 at once)"
fn is_count(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(" process")
}

/// Numbers of processes at once and of threads are chance where jobs follow each other.
fn counts(line: &str, section: Option<&str>, leave: Leave<'_>) -> String {
    if section.is_none() && leave.counts && is_count(line.trim_start()) {
        let end = line.find(" (").or_else(|| line.find(" and "));
        return line[..end.unwrap_or(line.len())].to_owned();
    }
    line.to_owned()
}

/// Names of processes in place of their pids, in the order in which they are told of.
#[derive(Debug, Default)]
struct Pids {
    names: BTreeMap<String, usize>,
}

impl Pids {
    fn name(&mut self, pid: &str) -> String {
        let next = self.names.len() + 1;
        format!("P{}", self.names.entry(pid.to_owned()).or_insert(next))
    }
}

/// A line with words in place of figures.
fn told(line: &str, is_row: bool, pids: &mut Pids) -> String {
    let indent = line.len() - line.trim_start().len();
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    let mut is_pid = false;
    while let Some(word) = words.get(at) {
        let (opening, bare) = split_start(word);
        let (number, end) = split_end(bare);
        let (unit, unit_end) = words.get(at + 1).map_or(("", ""), |next| split_end(next));
        if is_number(number) && end.is_empty() && kind(unit).is_some() {
            let kind = kind(unit).unwrap_or_default();
            // "1 to 2 ms", "900 us to 2 ms"
            if out.ends_with(&[kind.to_owned(), "to".to_owned()]) {
                out.truncate(out.len() - 2);
            }
            out.push(format!("{opening}{kind}{unit_end}"));
            at += 2;
            continue;
        }
        let is_range = words.get(at + 1) == Some(&"to")
            && words.get(at + 2).is_some_and(|next| is_number(next));
        if is_number(word) && is_range {
            let unit = words.get(at + 3).map_or("", |next| split_end(next).0);
            out.push(kind(unit).unwrap_or_default().to_owned());
            at += 1;
            continue;
        }
        // "4395 308 ms"
        let is_before_time = words
            .get(at + 2)
            .is_some_and(|next| kind(next) == Some("TIME"));
        let is_column = is_row && end.is_empty() && is_number(unit) && is_before_time;
        if is_number(number) && (is_pid || is_column) {
            out.push(format!("{}{end}", pids.name(number)));
        } else if is_number(number) && unit.starts_with("event") {
            out.push("some".to_owned());
        } else {
            is_pid = ["pid", "pids"].contains(&word.trim_start_matches('('));
            out.push((*word).to_owned());
        }
        is_pid &= !end.contains(')');
        at += 1;
    }
    format!("{:indent$}{}", "", out.join(" "))
}

/// The bracket before a word, and the word.
fn split_start(word: &str) -> (&str, &str) {
    word.split_at(usize::from(word.starts_with('(')))
}

/// A word and the punctuation after it.
fn split_end(word: &str) -> (&str, &str) {
    let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
    word.split_at(bare.len())
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || ",.".contains(c))
}

fn kind(unit: &str) -> Option<&'static str> {
    if TIMES.contains(&unit) {
        Some("TIME")
    } else if SIZES.contains(&unit) {
        Some("SIZE")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
/tmp/x/bin/python pool.py
  ran 1.4 s and ended with exit code 0
  4 processes (4 at once) and 3 more threads
  polling would have seen, on average: 4 processes and 1 MiB every 1 s
  highest sum of RSS: 45.2 MiB, 299 ms after the start, of it 12.8 MiB in python (pid 4395)

FINDINGS  2 notes
  note pool.start_method: 2 processes python (pids 4398, 4399) were started by fork of python (pid 4395)
  note fork.storm: 300 processes within 2.3 s

PROCESSES                 pid   lifetime  peak RSS  end
python pool.py           4395     308 ms  12.8 MiB
├─ sleep 3               4398     1.2 ms   1.7 MiB  zombie
├─ 2 x python (fork)          222 to 223 ms  10.8 MiB
└─ 2 x true             874 us to 27.3 ms   2.2 MiB

MEMORY
  highest sum of RSS      45.2 MiB

POOLS
Pool of python (pid 4395)
  3 workers, 2 at once, 1 never gave a result (75.2 MiB RSS at the peak)

TRUST
  Complete: 3,216 events, none lost.
  Peaks of RSS are exact.
";

    #[test]
    fn figures_become_words() {
        let places = [("/tmp/x/bin", "BIN")];
        let leave = Leave {
            places: &places,
            ..Leave::default()
        };
        let expected = "\
BIN/python pool.py
  ran TIME and ended with exit code 0
  4 processes (4 at once) and 3 more threads

  note pool.start_method: 2 processes python (pids P1, P2) were started by fork of python (pid P3)
  note fork.storm: 300 processes within TIME

PROCESSES pid lifetime peak RSS end
python pool.py P3 TIME SIZE
├─ sleep 3 P1 TIME SIZE zombie
├─ 2 x python (fork) TIME SIZE
└─ 2 x true TIME SIZE

POOLS
Pool of python (pid P3)
  3 workers, 2 at once, 1 never gave a result (SIZE RSS at the peak)

TRUST
  Complete: some events, none lost.
";
        assert_eq!(story(REPORT, leave), expected);
    }

    #[test]
    fn what_is_chance_is_left_out() {
        let leave = Leave {
            findings: &["fork.storm"],
            subjects: &["pool.start_method"],
            counts: true,
            ..Leave::default()
        };
        let told = story(REPORT, leave);
        assert!(told.contains("\n  4 processes\n"), "{told}");
        assert!(!told.contains("fork.storm"), "{told}");
        assert!(
            told.contains("pool.start_method: 2 processes python\n"),
            "{told}"
        );
    }
}
