//! Conditions on a report, for tests and CI: `--deny` for findings, `--expect` for figures.
//!
//! A condition holds, is violated, or can't be decided: a figure is known between two bounds, and where events were lost
//! the upper one is open.

mod expression;
mod formats;
mod parted;
mod quantity;
#[cfg(test)]
mod tests;

use crate::{
    findings::{RULES, Severity, UnknownId, is_meant},
    report::{FindingReport, Report},
};

pub use expression::{Expectation, ExpressionError};
pub use formats::{Format, render};
pub use quantity::quantities;

/// What must not be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Findings that are at least so bad.
    Severity(Severity),
    /// Findings with this id, or of this area.
    Id(String),
}

impl Denial {
    /// From `info`, `warning`, `error`, an id or an area.
    ///
    /// # Errors
    /// A word that is none of these.
    pub fn parse(text: &str) -> Result<Self, UnknownId> {
        match text {
            "info" => Ok(Self::Severity(Severity::Info)),
            "warning" => Ok(Self::Severity(Severity::Warning)),
            "error" => Ok(Self::Severity(Severity::Error)),
            id if RULES.iter().any(|rule| is_meant(id, rule)) => Ok(Self::Id(id.to_owned())),
            id => Err(UnknownId { id: id.to_owned() }),
        }
    }

    fn means(&self, finding: &FindingReport) -> bool {
        match self {
            Self::Severity(least) => finding.severity >= *least,
            Self::Id(wanted) => RULES
                .iter()
                .any(|rule| rule.id == finding.id && is_meant(wanted, rule)),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Severity(severity) => format!("no finding of level {severity} or worse"),
            Self::Id(id) => format!("no finding {id}"),
        }
    }
}

/// How a condition came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It doesn't; each line says why.
    Violated(Vec<String>),
    /// The recording doesn't tell; each line says why.
    Undecided(Vec<String>),
}

/// A condition and how it came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The condition in words.
    pub condition: String,
    /// How it came out.
    pub verdict: Verdict,
}

/// What all conditions say together, in the order of severity: holds, undecided, violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All hold.
    Holds,
    /// Some can't be decided, and none is violated.
    Undecided,
    /// Some are violated.
    Violated,
}

/// Checks all conditions.
pub fn check(report: &Report, denials: &[Denial], expectations: &[Expectation]) -> Vec<Checked> {
    let denied = denials.iter().map(|denial| Checked {
        condition: denial.name(),
        verdict: denied(report, denial),
    });
    let expected = expectations.iter().map(|expectation| Checked {
        condition: expectation.text.clone(),
        verdict: expectation.verdict(report),
    });
    denied.chain(expected).collect()
}

/// What they say together.
pub fn outcome(checked: &[Checked]) -> Outcome {
    let of = |checked: &Checked| match checked.verdict {
        Verdict::Holds => Outcome::Holds,
        Verdict::Undecided(_) => Outcome::Undecided,
        Verdict::Violated(_) => Outcome::Violated,
    };
    checked.iter().map(of).max().unwrap_or(Outcome::Holds)
}

fn denied(report: &Report, denial: &Denial) -> Verdict {
    let meant = || {
        report
            .findings
            .iter()
            .filter(|finding| denial.means(finding))
    };
    let line = |finding: &FindingReport| format!("{}: {}", finding.id, finding.text);
    let found: Vec<String> = meant().filter(|f| f.assessed).map(line).collect();
    if !found.is_empty() {
        return Verdict::Violated(found);
    }
    let open = |finding: &FindingReport| format!("{} not assessed: {}", finding.id, finding.text);
    let open: Vec<String> = meant().filter(|f| !f.assessed).map(open).collect();
    if open.is_empty() {
        Verdict::Holds
    } else {
        Verdict::Undecided(open)
    }
}
