//! Results by kernel and test program, for a terminal and for `docs/kernels.md`.

use std::{fs, path::Path};

use anyhow::{Context, ensure};

use crate::test::Counts;

/// Result of one test program on one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    Ran(Counts),
    /// It was started, or was to be, and its end was never said.
    NoEnd,
}

/// Results on one kernel with a number of CPUs.
#[derive(Debug)]
pub(crate) struct Column {
    kernel: String,
    cpus: u32,
    /// Version of control groups that is mounted; 0: this machine, as it is.
    cgroup: u32,
    /// The kernel was started locked down.
    is_locked: bool,
    was_run: bool,
    pub(super) cells: Vec<(String, Cell)>,
    /// Instructions that the verifier looked at, by program.
    pub(super) verified: Vec<(String, u64)>,
}

impl Column {
    pub(super) fn new(kernel: &str, cpus: u32, cgroup: u32) -> Self {
        Self {
            kernel: kernel.to_owned(),
            cpus,
            cgroup,
            is_locked: false,
            was_run: true,
            cells: Vec::new(),
            verified: Vec::new(),
        }
    }

    /// The same machine, its kernel started locked down.
    pub(super) fn locked_down(self) -> Self {
        Self {
            is_locked: true,
            ..self
        }
    }

    /// The machine couldn't be started.
    pub(super) fn not_run(self) -> Self {
        Self {
            was_run: false,
            ..self
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        if !self.was_run {
            sum.skipped = 1;
        }
        for (_, cell) in &self.cells {
            match cell {
                Cell::Ran(counts) => sum += *counts,
                Cell::NoEnd => sum.failed += 1,
            }
        }
        sum
    }

    pub(super) fn is_good(&self) -> bool {
        let counts = self.counts();
        self.was_run && counts.failed == 0 && counts.passed > 0
    }

    /// One line for the sum of a test run.
    pub(crate) fn line(&self) -> String {
        let locked = if self.is_locked { ", locked down," } else { "" };
        if !self.was_run {
            return format!(
                "kernel {} with {} CPUs{locked} NOT RUN",
                self.kernel, self.cpus
            );
        }
        let Counts {
            passed,
            failed,
            skipped,
        } = self.counts();
        format!(
            "kernel {} with {} CPUs{locked} run: {passed} passed, {failed} failed, {skipped} skipped",
            self.kernel, self.cpus
        )
    }

    fn head(&self) -> String {
        let cpus = if self.cpus == 1 { "CPU" } else { "CPUs" };
        let groups = match self.cgroup {
            0 => "this machine".to_owned(),
            version => format!("cgroup v{version}"),
        };
        let locked = if self.is_locked { ", LOCKED DOWN" } else { "" };
        format!("{}, {} {cpus}, {groups}{locked}", self.kernel, self.cpus)
    }

    fn cell(&self, test: &str) -> String {
        if !self.was_run {
            return "NOT RUN".to_owned();
        }
        match self.cells.iter().find(|(name, _)| name == test) {
            None => "-".to_owned(),
            Some((_, Cell::NoEnd)) => "NO END".to_owned(),
            Some((_, Cell::Ran(counts))) => words(*counts),
        }
    }
}

fn words(counts: Counts) -> String {
    let parts = [
        (counts.passed, "ok"),
        (counts.skipped, "skipped"),
        (counts.failed, "FAILED"),
    ];
    let told = parts.iter().filter(|(n, word)| *n > 0 || *word == "ok");
    let told: Vec<String> = told.map(|(n, word)| format!("{n} {word}")).collect();
    told.join(", ")
}

/// Names in the order in which they first appear.
fn rows<T>(columns: &[&Column], of: impl Fn(&Column) -> &[(String, T)]) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for column in columns {
        for (name, _) in of(column) {
            if !rows.contains(name) {
                rows.push(name.clone());
            }
        }
    }
    rows
}

/// Results as a table in Markdown.
pub(super) fn results(columns: &[Column]) -> String {
    let columns: Vec<&Column> = columns.iter().collect();
    let rows = rows(&columns, |column| &column.cells);
    table("test program", &columns, &rows, |column, row| {
        column.cell(row)
    })
}

/// Instructions that the verifier looked at, as a table in Markdown, of the kernels that told.
fn verified(columns: &[Column]) -> String {
    let columns: Vec<&Column> = columns
        .iter()
        .filter(|column| !column.verified.is_empty())
        .collect();
    let rows = rows(&columns, |column| &column.verified);
    table("program", &columns, &rows, |column, row| {
        let count = column.verified.iter().find(|(name, _)| name == row);
        count.map_or_else(|| "-".to_owned(), |(_, count)| count.to_string())
    })
}

fn table(
    corner: &str,
    columns: &[&Column],
    rows: &[String],
    cell: impl Fn(&Column, &str) -> String,
) -> String {
    let line = |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
    let mut out = line(corner, columns.iter().map(|column| column.head()).collect());
    out += &line("---", columns.iter().map(|_| "---".to_owned()).collect());
    for row in rows {
        let cells = columns.iter().map(|column| cell(column, row)).collect();
        out += &line(row, cells);
    }
    out
}

/// Puts the tables into the page, between its marks.
///
/// # Errors
/// The page has no such marks, or can't be written.
pub(super) fn write(page: &Path, columns: &[Column]) -> anyhow::Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("{}", page.display()))?;
    let text = between(&text, "results", &results(columns))?;
    let text = between(&text, "verified", &verified(columns))?;
    fs::write(page, text)?;
    Ok(())
}

fn between(text: &str, name: &str, new: &str) -> anyhow::Result<String> {
    let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {name}: {word} -->"));
    let parts = text
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    ensure!(parts.is_some(), "the page has no marks for {name}");
    let (before, after) = parts.unwrap_or_default();
    Ok(format!("{before}{begin}\n{new}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u32, failed: u32) -> Counts {
        Counts {
            passed,
            failed,
            skipped: 0,
        }
    }

    #[test]
    fn a_kernel_that_was_not_run_is_no_pass() {
        let missing = Column::new("7.2", 2, 2).not_run();
        assert!(!missing.is_good());
        assert_eq!(missing.counts().skipped, 1);
        let mut run = Column::new("6.1", 2, 2);
        run.cells
            .push(("forks".to_owned(), Cell::Ran(counts(4, 1))));
        assert!(!run.is_good());
        let text = results(&[run, missing]);
        assert_eq!(
            text,
            "| test program | 6.1, 2 CPUs, cgroup v2 | 7.2, 2 CPUs, cgroup v2 |\n| --- | --- | --- |\n\
             | forks | 4 ok, 1 FAILED | NOT RUN |\n"
        );
    }

    #[test]
    fn a_locked_down_machine_is_a_column_of_its_own() {
        let column = |name: &str| {
            let mut column = Column::new("6.1", 2, 2);
            column
                .cells
                .push((name.to_owned(), Cell::Ran(counts(3, 0))));
            column
        };
        let text = results(&[column("forks"), column("lockdown").locked_down()]);
        assert_eq!(
            text,
            "| test program | 6.1, 2 CPUs, cgroup v2 | 6.1, 2 CPUs, cgroup v2, LOCKED DOWN |\n| --- | --- | --- |\n\
             | forks | 3 ok | - |\n| lockdown | - | 3 ok |\n"
        );
    }

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n";
        let new = between(page, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n");
        assert!(between("nothing", "x", "new").is_err());
    }
}
