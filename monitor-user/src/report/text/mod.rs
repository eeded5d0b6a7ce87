//! The report for people.
//!
//! First what happened, then the tree, then totals, then how far all of it can be trusted.

mod creation;
mod directories;
mod findings;
mod foot;
mod head;
mod marks;
mod memory;
mod parents;
mod pools;
mod rows;
mod work;

use std::io::{self, Write};

use crate::report::{Report, escape::wrap, forest::Forest, say::Sentence};

/// How the text should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of a line. Less than 60 is taken as 60.
    pub width: usize,
    /// With colours of a terminal.
    pub colour: bool,
    /// Every process in a line of its own: similar ones aren't folded and none is left out.
    pub all: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            width: 80,
            colour: false,
            all: false,
        }
    }
}

impl TextOptions {
    fn columns(self) -> usize {
        self.width.max(60)
    }

    /// Text in a style, if colour is wanted.
    fn paint(self, style: Style, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Heading => "1",
            Style::Bad => "31",
            Style::Faint => "2",
            Style::Plain => return text.to_owned(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A sentence in lines: the first is `indent` columns in, the others `hanging`.
    fn paragraph(self, sentence: &Sentence, indent: usize, hanging: usize) -> Vec<String> {
        let text = format!("{:indent$}{}", "", sentence.text);
        let lines = wrap(&text, self.columns(), hanging).into_iter();
        if sentence.is_bad {
            lines.map(|line| self.paint(Style::Bad, &line)).collect()
        } else {
            lines.collect()
        }
    }
}

#[derive(Clone, Copy)]
enum Style {
    Heading,
    Bad,
    Faint,
    Plain,
}

/// Writes the report as text.
///
/// # Errors
/// Those of the writer.
pub fn write(
    report: &Report,
    options: &TextOptions,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let forest = Forest::new(report);
    let mut lines = head::lines(report, *options);
    lines.push(String::new());
    let findings = findings::lines(report, *options);
    if !findings.is_empty() {
        lines.extend(findings);
        lines.push(String::new());
    }
    lines.extend(rows::lines(report, &forest, *options));
    lines.push(String::new());
    lines.extend(memory::lines(report, &forest, *options));
    lines.push(String::new());
    let marks = marks::lines(report, &forest, *options);
    if !marks.is_empty() {
        lines.extend(marks);
        lines.push(String::new());
    }
    let parents = parents::lines(report, &forest, *options);
    if !parents.is_empty() {
        lines.extend(parents);
        lines.push(String::new());
    }
    let directories = directories::lines(report, &forest, *options);
    if !directories.is_empty() {
        lines.extend(directories);
        lines.push(String::new());
    }
    let pools = pools::lines(report, &forest, *options);
    if !pools.is_empty() {
        lines.extend(pools);
        lines.push(String::new());
    }
    let creation = creation::lines(report, &forest, *options);
    if !creation.is_empty() {
        lines.extend(creation);
        lines.push(String::new());
    }
    let work = work::lines(report, &forest, *options);
    if !work.is_empty() {
        lines.extend(work);
        lines.push(String::new());
    }
    lines.extend(foot::lines(report, *options));
    for line in lines {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
