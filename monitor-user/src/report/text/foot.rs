//! How far the report can be trusted.

use super::{Style, TextOptions};
use crate::report::{Report, say};

/// What was lost, and how exact the numbers are.
pub(super) fn lines(report: &Report, options: TextOptions) -> Vec<String> {
    let mut out = vec![options.paint(Style::Heading, "TRUST")];
    for sentence in say::trust(report) {
        out.extend(options.paragraph(&sentence, 2, 4));
    }
    out
}
