//! What a virtual machine says on its console (see `init.sh`).

use super::table::{Cell, Column};
use crate::test::{Counts, result_line};

/// Reads the console line by line.
#[derive(Debug, Default)]
pub(super) struct Console {
    running: Option<(String, Counts)>,
    ended: Vec<(String, Cell)>,
    verified: Vec<(String, u64)>,
}

impl Console {
    pub(super) fn line(&mut self, line: &str) {
        if let Some((_, counts)) = &mut self.running
            && let Some(result) = result_line(line)
        {
            *counts += result;
        }
        let Some(said) = line.strip_prefix("-- ") else {
            return;
        };
        let words: Vec<&str> = said.split(' ').collect();
        match words[..] {
            ["verified", program, count] => {
                if let Ok(count) = count.parse() {
                    self.verified.push((program.to_owned(), count));
                }
            }
            [name, "ended", "with", status] => self.end(name, status == "0"),
            [name] => self.running = Some((name.to_owned(), Counts::default())),
            _ => {}
        }
    }

    fn end(&mut self, name: &str, is_good: bool) {
        let Some((running, mut counts)) = self.running.take() else {
            return;
        };
        if running != name {
            return;
        }
        // A crash counts as a failure, and so does a program in which nothing ran.
        if (!is_good && counts.failed == 0) || counts == Counts::default() {
            counts.failed += 1;
        }
        self.ended.push((running, Cell::Ran(counts)));
    }

    /// The results; a program whose end was never said failed.
    pub(super) fn column(self, mut column: Column, tests: &[String]) -> Column {
        column.verified = self.verified;
        for test in tests {
            let cell = self.ended.iter().find(|(name, _)| name == test);
            let cell = cell.map_or(Cell::NoEnd, |(_, cell)| *cell);
            column.cells.push((test.clone(), cell));
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(lines: &[&str], tests: &[&str]) -> Column {
        let mut console = Console::default();
        for line in lines {
            console.line(line);
        }
        let tests: Vec<String> = tests.iter().map(|test| (*test).to_owned()).collect();
        console.column(Column::new("6.1", 2, 2), &tests)
    }

    #[test]
    fn results_belong_to_the_program_that_ran() {
        let column = column(
            &[
                "[    0.1] noise",
                "-- verified rss_stat 99",
                "-- forks",
                "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1s",
                "-- forks ended with 0",
                "-- all done after 3.00 s",
            ],
            &["forks"],
        );
        assert_eq!(column.verified, [("rss_stat".to_owned(), 99)]);
        let counts = column.counts();
        assert_eq!((counts.passed, counts.failed, counts.skipped), (4, 0, 1));
        assert!(column.is_good());
    }

    #[test]
    fn what_crashed_or_never_ended_or_ran_nothing_has_failed() {
        for lines in [
            &["-- forks", "-- forks ended with 139"][..],
            &["-- forks"],
            &["-- forks", "-- forks ended with 0"],
            &[],
        ] {
            let column = column(lines, &["forks"]);
            assert_eq!(column.counts().failed, 1, "{lines:?}");
            assert!(!column.is_good());
        }
    }
}
