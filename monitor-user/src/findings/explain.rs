//! What the rules say about themselves: for `rtrace explain` and for the documentation.

use std::fmt::Write as _;

use crate::findings::{RULES, Rule, assess::is_meant};

/// One line for each rule: id, severity, title.
pub fn overview() -> String {
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let line = |rule: &Rule| {
        format!(
            "{:width$}  {:7}  {}\n",
            rule.id,
            rule.severity.name(),
            rule.title
        )
    };
    RULES.iter().map(line).collect()
}

/// All that the rule with this id says, or all rules of this area; `None` if there is none.
pub fn explanation(wanted: &str) -> Option<String> {
    let meant: Vec<String> = RULES
        .iter()
        .filter(|rule| is_meant(wanted, rule))
        .map(text)
        .collect();
    (!meant.is_empty()).then(|| meant.join("\n"))
}

/// Headings and paragraphs of a rule.
pub fn sections(rule: &Rule) -> [(&'static str, &'static str); 4] {
    [
        ("What it means", rule.meaning),
        ("How it is measured", rule.measured),
        ("What to do", rule.advice),
        ("When it is wrong", rule.wrong),
    ]
}

fn text(rule: &Rule) -> String {
    let mut out = format!("{} ({})\n{}\n", rule.id, rule.severity, rule.title);
    for (heading, paragraph) in sections(rule) {
        // Writing to a string can't fail.
        let _infallible = write!(out, "\n{heading}\n{}", wrapped(&sentence(paragraph)));
    }
    out
}

/// Lines of at most 78 columns, indented by two.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 76 {
            let _infallible = writeln!(out, "  {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + &format!("  {line}\n")
}

/// With a capital and a full stop.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// The rules as Markdown.
pub fn page() -> String {
    let mut out = String::from("| id | severity | what it says |\n|---|---|---|\n");
    for rule in RULES {
        let anchor = rule.id.replace('.', "");
        let _infallible = writeln!(
            out,
            "| [`{}`](#{anchor}) | {} | {} |",
            rule.id, rule.severity, rule.title
        );
    }
    for rule in RULES {
        let _infallible = writeln!(
            out,
            "\n## {}\n\n{} ({}).",
            rule.id,
            sentence(rule.title).trim_end_matches('.'),
            rule.severity
        );
        for (heading, paragraph) in sections(rule) {
            let _infallible = writeln!(out, "\n**{heading}.** {}", sentence(paragraph));
        }
    }
    out
}
