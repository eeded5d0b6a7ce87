//! What belongs to a diagnosis.

use crate::findings::{Finding, Scene, Severity, needs::Need};

/// A diagnosis: what it is called, what it means, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its id, `area.thing`. It never changes, and is never given to another rule.
    pub id: &'static str,
    /// How bad it is as a rule.
    pub severity: Severity,
    /// One line: what it says.
    pub title: &'static str,
    /// What it means and why it matters.
    pub meaning: &'static str,
    /// How it is measured: from which events, with which thresholds and errors.
    pub measured: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// When it is wrong, or says more than it knows.
    pub wrong: &'static str,
    /// Without these it can't be judged.
    pub needs: &'static [Need],
    /// Rules that tell more of the same: a finding all of whose processes are in theirs is only information, and no
    /// line of the report's text.
    pub told_by: &'static [&'static str],
    /// Finds it.
    pub detect: fn(&Scene<'_>, &mut Found),
}

/// What a rule's function hands back.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What it found.
    pub findings: Vec<Finding>,
    /// Why it could not judge, or not all: sentences without their full stops.
    pub unknown: Vec<String>,
}

impl Found {
    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Says why something could not be judged.
    pub fn unknown(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.unknown.contains(&why) {
            self.unknown.push(why);
        }
    }
}
