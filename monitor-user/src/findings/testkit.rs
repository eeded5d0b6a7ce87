//! What tests of rules ask.

use crate::{
    findings::{Assessment, Finding, Selection, assess},
    model::{pools::Pools, testkit::Story},
};

fn asked(story: &Story, selection: &Selection) -> Assessment {
    let tree = story.tree();
    assess(&tree, &Pools::of(&tree), &story.recorded(), selection)
}

/// What all rules say of a story.
pub(super) fn all(story: &Story) -> Assessment {
    asked(story, &Selection::default())
}

/// A `multiprocessing.Pool` of two copies, which have worked a little: owner 10, workers 20 and 21.
pub(super) fn pool() -> Story {
    let mut story = Story::new();
    story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
    story.fork(10, 20).after(1).fork(10, 21).after(1);
    for tid in 11..14 {
        story.thread(10, tid);
    }
    story.after(50);
    story
}

fn only(story: &Story, id: &str) -> Assessment {
    let selection = Selection::new(vec![id.to_owned()], Vec::new()).unwrap();
    asked(story, &selection)
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
