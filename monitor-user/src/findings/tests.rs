//! What holds for all rules.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::{model::testkit::Story, testing::documentation};

#[test]
fn the_documentation_is_made_from_the_rules() {
    let made = format!("\n{}\n", page());
    documentation("findings.md", &[("made from the rules", made)]);
}

#[test]
fn every_file_is_a_rule_in_the_registry() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/findings");
    let mut written = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let marker = "pub(super) const RULE: Rule = Rule {\n    id: \"";
        let ids = text.split(marker).skip(1);
        for id in ids {
            let id = id.split('"').next().unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                id.replace('.', "_").starts_with(name) || id.replace('.', "_") == name,
                "{id} in {name}"
            );
            written.insert(id.to_owned());
            for part in ["raised(&", "#[test]"] {
                assert!(text.contains(part), "{name} has no test");
            }
            let dense: String = text.split_whitespace().collect();
            let is_silent_once = ["RULE.id),[]", ".is_empty()"];
            assert!(
                is_silent_once.iter().any(|part| dense.contains(part)),
                "{name} has no test of its silence"
            );
        }
    }
    let registered: BTreeSet<String> = RULES.iter().map(|rule| rule.id.to_owned()).collect();
    assert_eq!(written, registered);
    assert_eq!(registered.len(), RULES.len());
}

#[test]
fn every_rule_says_all_it_has_to() {
    for rule in RULES {
        let (area, thing) = rule.id.split_once('.').unwrap();
        assert!(!area.is_empty() && !thing.contains('.'), "{}", rule.id);
        assert!(
            rule.id
                .chars()
                .all(|c| c.is_ascii_lowercase() || "._".contains(c))
        );
        assert!(
            !rule.title.ends_with('.') && rule.title.chars().count() <= 90,
            "{}",
            rule.title
        );
        assert!(
            rule.meaning.ends_with('.')
                && rule.measured.ends_with('.')
                && rule.wrong.ends_with('.')
        );
        assert!(!rule.advice.ends_with('.') && !rule.advice.is_empty());
        for other in rule.told_by {
            assert!(find(other).is_some(), "{other}");
        }
        for text in [
            rule.meaning,
            rule.measured,
            rule.advice,
            rule.wrong,
            rule.title,
        ] {
            assert!(!text.contains("  "), "{}: {text}", rule.id);
        }
    }
    assert!(RULES.is_sorted_by_key(|rule| rule.id));
}

#[test]
fn a_healthy_tree_has_no_findings() {
    let mut story = Story::new();
    story.root(10, &["make", "-j2"]).memory(10, 3);
    for pid in 20..40 {
        story
            .vfork(10, pid)
            .after(1)
            .exec(pid, &["cc", "-c", "a.c"])
            .memory(pid, 30)
            .after(20);
        story.exit(pid, 0).after(15).reaped(pid);
    }
    story.after(1).exit(10, 0).reaped(10);
    let all = testkit::all(&story);
    assert_eq!(all, Assessment::default());
}

#[test]
fn ids_and_areas_select() {
    let all = |select: &[&str], ignore: &[&str]| {
        let list = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let selection = Selection::new(list(select), list(ignore))?;
        let ids = RULES
            .iter()
            .filter(|rule| selection.has(rule))
            .map(|rule| rule.id);
        Ok::<_, UnknownId>(ids.collect::<Vec<_>>())
    };
    assert_eq!(all(&[], &[]).unwrap().len(), RULES.len());
    assert_eq!(all(&["pid.reused"], &[]).unwrap(), ["pid.reused"]);
    assert_eq!(all(&["pid"], &[]).unwrap(), ["pid.reused"]);
    assert_eq!(
        all(&["pid", "trust"], &["pid.reused"]).unwrap(),
        ["trust.incomplete"]
    );
    assert_eq!(all(&["no.such"], &[]).unwrap_err().id, "no.such");
    assert_eq!(all(&[], &["reused"]).unwrap_err().id, "reused");
}

#[test]
fn explanations_have_every_section() {
    for rule in RULES {
        let text = explanation(rule.id).unwrap();
        for part in [
            "What it means",
            "How it is measured",
            "What to do",
            "When it is wrong",
            rule.title,
        ] {
            assert!(text.contains(part), "{}", rule.id);
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 90),
            "{text}"
        );
        assert!(overview().contains(rule.id));
    }
    assert!(explanation("fork").unwrap().contains("fork.storm (info)"));
    assert_eq!(explanation("forks"), None);
}

#[test]
fn the_most_severe_come_first_and_what_is_told_steps_back() {
    let mut story = Story::new();
    story.root(10, &["a"]).thread(10, 11).fork(10, 20).after(5);
    let oom = crate::event::Oom::default();
    story
        .oom(20, oom)
        .killed(20, 9)
        .reaped(20)
        .exit(10, 0)
        .reaped(10);
    let all = testkit::all(&story);
    let ids: Vec<_> = all
        .findings
        .iter()
        .map(|f| (f.id, f.severity, f.is_told))
        .collect();
    assert_eq!(
        ids,
        [
            ("memory.oom_kill", Severity::Error, false),
            ("fork.multithreaded", Severity::Warning, false),
            ("process.killed", Severity::Info, true),
        ]
    );
}
