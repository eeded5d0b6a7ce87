//! The result of a check, for people and for CI.

use std::fmt::Write as _;

use super::{Checked, Verdict};
use crate::report::escape::escape;

/// In which form a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line for each condition.
    Text,
    /// A test suite in XML, as most CI systems read it.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
    /// A table in Markdown, for the summary of a step.
    Markdown,
}

/// The result as text. `trace` is the name of the recording.
pub fn render(checked: &[Checked], trace: &str, format: Format) -> String {
    match format {
        Format::Text => text(checked),
        Format::Junit => junit(checked, trace),
        Format::Github => github(checked, trace),
        Format::Markdown => markdown(checked, trace),
    }
}

/// One word for a verdict, and its reasons.
fn parts(verdict: &Verdict) -> (&'static str, &[String]) {
    match verdict {
        Verdict::Holds => ("holds", &[]),
        Verdict::Violated(why) => ("VIOLATED", why),
        Verdict::Undecided(why) => ("not decidable", why),
    }
}

fn text(checked: &[Checked]) -> String {
    let mut out = String::new();
    for Checked { condition, verdict } in checked {
        let (word, why) = parts(verdict);
        // Writing to a string can't fail.
        let _infallible = writeln!(out, "{word:13}  {}", escape(condition.as_bytes()));
        for why in why {
            let _infallible = writeln!(out, "{:15}{}", "", escape(why.as_bytes()));
        }
    }
    out
}

fn junit(checked: &[Checked], trace: &str) -> String {
    let count = |is: fn(&Verdict) -> bool| checked.iter().filter(|c| is(&c.verdict)).count();
    let failures = count(|verdict| matches!(verdict, Verdict::Violated(_)));
    let errors = count(|verdict| matches!(verdict, Verdict::Undecided(_)));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rtrace check {}\" tests=\"{}\" \
         failures=\"{failures}\" errors=\"{errors}\">\n",
        xml(trace),
        checked.len()
    );
    for Checked { condition, verdict } in checked {
        let (_, why) = parts(verdict);
        let element = match verdict {
            Verdict::Holds => None,
            Verdict::Violated(_) => Some("failure"),
            Verdict::Undecided(_) => Some("error"),
        };
        let name = xml(condition);
        let _infallible = match element {
            None => writeln!(out, "  <testcase classname=\"rtrace\" name=\"{name}\"/>"),
            Some(element) => writeln!(
                out,
                "  <testcase classname=\"rtrace\" name=\"{name}\">\n    <{element} message=\"{}\">{}</{element}>\n  </testcase>",
                xml(why.first().map_or("", String::as_str)),
                xml(&why.join("\n"))
            ),
        };
    }
    out + "</testsuite>\n"
}

/// Text for XML; characters that XML can't have are shown escaped.
fn xml(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| escape(line.as_bytes()))
        .collect();
    let mut out = String::new();
    for c in lines.join("\n").chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

fn github(checked: &[Checked], trace: &str) -> String {
    let mut out = String::new();
    for Checked { condition, verdict } in checked {
        let (word, why) = parts(verdict);
        let level = match verdict {
            Verdict::Holds => continue,
            Verdict::Violated(_) => "error",
            Verdict::Undecided(_) => "warning",
        };
        let title = property(&format!("rtrace: {condition} {word}"));
        let message = data(&format!("{trace}: {}", why.join("\n")));
        let _infallible = writeln!(out, "::{level} title={title}::{message}");
    }
    out
}

/// A message of a workflow command: `%` and line ends are coded.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command: `:` and `,` are coded too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn markdown(checked: &[Checked], trace: &str) -> String {
    let mut out = format!(
        "### rtrace check {}\n\n| condition | result | why |\n|---|---|---|\n",
        cell(trace)
    );
    for Checked { condition, verdict } in checked {
        let (word, why) = parts(verdict);
        let why: Vec<String> = why.iter().map(|why| cell(why)).collect();
        let _infallible = writeln!(
            out,
            "| {} | {word} | {} |",
            cell(condition),
            why.join("<br>")
        );
    }
    out
}

/// Text in a cell: names of programs must not become markup.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in escape(text.as_bytes()).chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '|' | '*' | '_' | '`' | '[' | ']' | '!' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
