//! What tests of rules ask.

use crate::{
    findings::{Assessment, Finding, Selection, assess},
    model::testkit::Story,
};

fn only(story: &Story, id: &str) -> Assessment {
    let selection = Selection::new(vec![id.to_owned()], Vec::new()).unwrap();
    assess(&story.tree(), &story.recorded(), &selection)
}

/// What the rule found in a story.
pub(super) fn raised(story: &Story, id: &str) -> Vec<Finding> {
    let findings = only(story, id).findings;
    for finding in &findings {
        assert_eq!(finding.id, id);
        assert!(
            !finding.text.is_empty(),
            "a sentence names evidence that isn't there: {finding:?}"
        );
        assert!(
            !finding.text.contains(['{', '}', '[', ']']),
            "{}",
            finding.text
        );
    }
    findings
}

/// Why the rule could not be judged, if it couldn't.
pub(super) fn unassessed(story: &Story, id: &str) -> Option<String> {
    only(story, id).unassessed.into_iter().next().map(|u| u.why)
}
