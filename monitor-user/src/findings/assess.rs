//! Asks every rule.

use crate::{
    event::Recording,
    findings::{Finding, RULES, Rule, Scene, Severity, find, rule::Found},
    model::{Tree, pools::Pools},
};

/// What all selected rules say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assessment {
    /// What was found, the most severe first, then by time and id.
    pub findings: Vec<Finding>,
    /// Rules that found nothing and could not be judged, in the order of the registry.
    pub unassessed: Vec<Unassessed>,
}

/// A rule that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unassessed {
    /// Its id.
    pub id: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// Why, as a sentence without its full stop.
    pub why: String,
}

/// Which rules to ask: all at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    select: Vec<String>,
    ignore: Vec<String>,
}

/// An id that no rule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no finding {id}; `rtrace explain` lists them all")]
pub struct UnknownId {
    /// What was asked for.
    pub id: String,
}

impl Selection {
    /// Only the rules in `select`, all if it is empty, without those in `ignore`. Each is an id, or an area such as
    /// `worker` for all of its ids.
    ///
    /// # Errors
    /// An id or area that no rule has.
    pub fn new(select: Vec<String>, ignore: Vec<String>) -> Result<Self, UnknownId> {
        for wanted in select.iter().chain(&ignore) {
            if !RULES.iter().any(|rule| is_meant(wanted, rule)) {
                let id = wanted.clone();
                return Err(UnknownId { id });
            }
        }
        Ok(Self { select, ignore })
    }

    /// Whether the rule is to be asked.
    pub fn has(&self, rule: &Rule) -> bool {
        let is_in = |list: &[String]| list.iter().any(|wanted| is_meant(wanted, rule));
        (self.select.is_empty() || is_in(&self.select)) && !is_in(&self.ignore)
    }
}

/// Whether `wanted` is the rule's id or its area.
pub fn is_meant(wanted: &str, rule: &Rule) -> bool {
    let area = rule.id.split_once('.').map(|(area, _)| area);
    wanted == rule.id || area == Some(wanted)
}

/// Asks the selected rules about a tree.
pub fn assess(
    tree: &Tree,
    pools: &Pools,
    recording: &Recording,
    selection: &Selection,
) -> Assessment {
    let scene = Scene::new(tree, pools, recording);
    let mut all = Assessment::default();
    for rule in RULES.iter().filter(|rule| selection.has(rule)) {
        let mut found = Found::default();
        (rule.detect)(&scene, &mut found);
        let missing = rule.needs.iter().filter_map(|need| need.missing(&scene));
        for why in missing {
            found.unknown(why);
        }
        let why = (!found.unknown.is_empty()).then(|| found.unknown.join("; "));
        match why {
            Some(why) if found.findings.is_empty() => all.unassessed.push(Unassessed {
                id: rule.id,
                severity: rule.severity,
                why,
            }),
            doubt => all
                .findings
                .extend(found.findings.into_iter().map(|finding| Finding {
                    doubt: doubt.clone(),
                    ..finding
                })),
        }
    }
    all.findings
        .sort_by_key(|f| (std::cmp::Reverse(f.severity), f.at_ns, f.id));
    without_repetitions(&mut all.findings);
    all
}

/// A milder finding that says nothing about any process that a more telling one doesn't say better goes into the
/// background: it becomes information.
fn without_repetitions(findings: &mut [Finding]) {
    let telling: Vec<(usize, &'static [&'static str])> = findings
        .iter()
        .enumerate()
        .filter_map(|(at, finding)| Some((at, find(finding.id)?.told_by)))
        .filter(|(_, told_by)| !told_by.is_empty())
        .collect();
    for (at, told_by) in telling {
        let others = findings.iter().filter(|other| told_by.contains(&other.id));
        let covered: Vec<_> = others.flat_map(|other| other.subjects.clone()).collect();
        if findings[at]
            .subjects
            .iter()
            .all(|key| covered.contains(key))
        {
            findings[at].severity = Severity::Info;
            findings[at].is_told = true;
        }
    }
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.at_ns, f.id));
}
