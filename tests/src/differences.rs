//! A list of what doesn't agree, so that one run shows everything that is wrong.

use std::fmt::{self, Debug, Display};

/// What doesn't agree between a report and the truth.
#[derive(Debug, Default)]
pub struct Differences(Vec<String>);

impl Differences {
    /// Notes one.
    pub fn add(&mut self, text: impl Into<String>) {
        self.0.push(text.into());
    }

    /// Notes one unless both are equal.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "values are made for the comparison at every call"
    )]
    pub fn same<T: PartialEq + Debug>(&mut self, what: impl Display, reported: T, truth: T) {
        if reported != truth {
            self.add(format!("{what}: reported {reported:?}, truth {truth:?}"));
        }
    }

    /// Notes one unless `time` is known and lies between two stamps, ns since boot.
    pub fn between(&mut self, what: impl Display, time: Option<u64>, low: u64, high: u64) {
        if time.is_none_or(|time| time < low || time > high) {
            self.add(format!("{what}: reported {time:?}, truth {low} to {high}"));
        }
    }

    /// Whether everything agrees.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An error that shows the first of them, if there are any.
    ///
    /// # Errors
    /// There are differences.
    pub fn into_result(self) -> anyhow::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(anyhow::anyhow!("{self}"))
    }
}

impl Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        writeln!(f, "{} differences", self.0.len())?;
        for difference in self.0.iter().take(SHOWN) {
            writeln!(f, "  {difference}")?;
        }
        Ok(())
    }
}
