//! A line or two about each pool of workers.

use super::{Style, TextOptions};
use crate::report::{
    Report,
    escape::{width, wrap},
    forest::Forest,
    say, words,
};

/// Pools that are told of one by one.
const SHOWN: usize = 10;

/// The section, empty where nobody works for others.
pub(super) fn lines(report: &Report, forest: &Forest, options: TextOptions) -> Vec<String> {
    let mut out = vec![options.paint(Style::Heading, "POOLS")];
    if report.pools.is_empty() {
        let Some(sentence) = say::threads_only(report, forest) else {
            return Vec::new();
        };
        out.extend(wrap(&format!("  {sentence}"), options.columns(), 4));
        return out;
    }
    let shown = if options.all { usize::MAX } else { SHOWN };
    for pool in report.pools.iter().take(shown) {
        out.push(say::pool_title(report, forest, pool));
        out.extend(filled(&say::pool_facts(pool), options.columns()));
    }
    let rest = report.pools.len().saturating_sub(shown) as u64;
    if rest > 0 {
        out.push(format!(
            "and {}",
            words::count(rest, "more pool", "more pools")
        ));
    }
    out
}

/// Facts with commas in lines of a width, indented.
fn filled(facts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (n, fact) in facts.iter().enumerate() {
        let comma = if n + 1 < facts.len() { "," } else { "" };
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(fact) <= columns => {
                line.push(' ');
                line.push_str(fact);
                line.push_str(comma);
            }
            _ => lines.push(format!("  {fact}{comma}")),
        }
    }
    lines
}
