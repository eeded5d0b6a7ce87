//! Findings as a part of the report.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    findings::{Assessment, Finding, Severity, Unassessed, Value},
    report::{ByteText, Id},
    units::{ProcessKey, errno_name, signal_name},
};

/// Something that went wrong or is worth knowing, or a kind of that which could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingReport {
    /// Its id: `rtrace explain ID` tells more.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Whether it could be judged; if not, `text` says why.
    pub assessed: bool,
    /// Processes that it is about.
    pub subjects: Vec<Id>,
    /// When it began; `None` if it is about the recording as a whole.
    pub at_ns: Option<u64>,
    /// What happened, with the evidence.
    pub text: String,
    /// What to do.
    pub advice: String,
    /// The evidence as values.
    pub evidence: BTreeMap<&'static str, Evidence>,
    /// What makes it doubtful: events that were lost. `None` if nothing does.
    pub doubt: Option<String>,
    /// A more telling finding is about the same processes: the text of the report leaves this one out.
    pub told_elsewhere: bool,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Evidence {
    /// A number, in the unit that its name ends in.
    Number(u64),
    /// A process.
    Process(Id),
    /// Processes.
    Processes(Vec<Id>),
    /// A name.
    Text(ByteText),
}

/// All that were found, and all that could not be judged.
pub(super) fn findings(all: &Assessment, id: &impl Fn(ProcessKey) -> Id) -> Vec<FindingReport> {
    let found = all.findings.iter().map(|finding| report(finding, id));
    found.chain(all.unassessed.iter().map(unassessed)).collect()
}

fn report(finding: &Finding, id: &impl Fn(ProcessKey) -> Id) -> FindingReport {
    let evidence = finding
        .evidence
        .iter()
        .map(|(name, value)| (*name, piece(value, id)));
    FindingReport {
        id: finding.id,
        severity: finding.severity,
        assessed: true,
        subjects: finding.subjects.iter().copied().map(id).collect(),
        at_ns: finding.at_ns,
        text: finding.text.clone(),
        advice: finding.advice.clone(),
        evidence: evidence.collect(),
        doubt: finding.doubt.clone(),
        told_elsewhere: finding.is_told,
    }
}

fn unassessed(rule: &Unassessed) -> FindingReport {
    FindingReport {
        id: rule.id,
        severity: rule.severity,
        assessed: false,
        subjects: Vec::new(),
        at_ns: None,
        text: rule.why.clone(),
        advice: String::new(),
        evidence: BTreeMap::new(),
        doubt: None,
        told_elsewhere: false,
    }
}

fn piece(value: &Value, id: &impl Fn(ProcessKey) -> Id) -> Evidence {
    match value {
        Value::Count(n, ..) | Value::Bytes(n) | Value::Span(n) | Value::At(n) => {
            Evidence::Number(*n)
        }
        Value::Process(key) => Evidence::Process(id(*key)),
        Value::Processes(keys) => Evidence::Processes(keys.iter().copied().map(id).collect()),
        Value::Error(errno) => Evidence::Text(ByteText(errno_name(*errno).into_bytes())),
        Value::Signal(signal) => Evidence::Text(ByteText(signal_name(*signal).into_bytes())),
        Value::Text(bytes) => Evidence::Text(ByteText(bytes.clone())),
        Value::Word(word) => Evidence::Text(ByteText(word.as_bytes().to_vec())),
    }
}
