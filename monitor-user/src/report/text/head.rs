//! What happened, in the first lines.

use super::{Style, TextOptions};
use crate::report::{Report, escape::shorten, say};

/// Columns by which the facts stand in from the command.
const INDENT: usize = 2;

/// The command and what became of it.
pub(super) fn lines(report: &Report, options: TextOptions) -> Vec<String> {
    let columns = options.columns();
    let title = say::title(report);
    let mut lines = vec![options.paint(Style::Heading, &shorten(&title, columns))];
    for fact in say::facts(report) {
        lines.extend(options.paragraph(&fact, INDENT, INDENT + 2));
    }
    lines
}
