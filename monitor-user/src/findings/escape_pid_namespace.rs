//! `escape.pid_namespace`: a descendant has its own pid namespace.

use crate::{
    findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found},
    model::Process,
    units::ProcessKey,
};

const CLONE_NEWPID: u64 = 0x2000_0000;

pub(super) const RULE: Rule = Rule {
    id: "escape.pid_namespace",
    severity: Severity::Info,
    title: "a descendant runs in a pid namespace of its own",
    meaning: "Inside of it processes have other pids, so that logs from there name pids that mean somebody else \
        outside, and tools inside see nobody outside. The report's pids are those that the recorder sees.",
    measured: "A creation with CLONE_NEWPID, or of a process whose namespace is deeper than its creator's (after unshare or setns), \
        with all who descend from it.",
    advice: "match a log from inside by time and program, not by pid",
    wrong: "Recordings of before ABI 4 know of the flag alone: there `unshare --pid` isn't seen.",
    needs: &[Need::Forks],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let is_new = |p: &&Process| {
        let is_deeper = || Some(p.ns_level? > scene.creator(p)?.ns_level?);
        p.created
            .flags
            .is_some_and(|flags| flags & CLONE_NEWPID != 0)
            || is_deeper() == Some(true)
    };
    for first in scene.tree.processes.iter().filter(is_new) {
        let inside = descendants(scene, first.key);
        let finding = Finding::new(&RULE, inside.clone())
            .with("first", Value::Process(first.key))
            .with(
                "processes",
                Value::Count(inside.len() as u64, "process", "processes"),
            );
        found.push(finding.say(
            scene,
            "{first} is the first of a pid namespace of its own, with {processes} in it",
        ));
    }
}

/// The process and all who descend from it.
fn descendants(scene: &Scene<'_>, first: ProcessKey) -> Vec<ProcessKey> {
    let mut all = vec![first];
    let mut at = 0;
    while let Some(key) = all.get(at).copied() {
        all.extend(scene.children(key).map(|p| p.key));
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::What,
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// A child made with these flags that makes one itself.
    fn child(flags: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["init"])
            .after(1)
            .fork(20, 21)
            .after(1);
        let mut changed = Story::new();
        let recorded = story.recorded();
        changed.recording(|r| *r = recorded);
        for mut event in story.events().iter().cloned() {
            let pid = event.subject.map(|s| s.process.pid);
            if let (Some(20), What::Fork(fork)) = (pid, &mut event.what) {
                fork.clone_flags = Some(flags);
            }
            changed.event(event);
        }
        changed
    }

    #[test]
    fn a_namespace_and_all_in_it() {
        let found = raised(&child(CLONE_NEWPID), RULE.id);
        assert_eq!(
            found[0].subjects.iter().map(|k| k.pid).collect::<Vec<_>>(),
            [20, 21]
        );
        assert_eq!(
            found[0].text,
            "init (pid 20) is the first of a pid namespace of its own, with 2 processes in it"
        );
    }

    #[test]
    fn a_deeper_level_after_unshare() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["unshare"])
            .after(1)
            .fork(20, 21)
            .after(1);
        let mut changed = Story::new();
        let recorded = story.recorded();
        changed.recording(|r| *r = recorded);
        for mut event in story.events().iter().cloned() {
            let pid = event.subject.map(|s| s.process.pid);
            if let (Some(21), What::Fork(fork)) = (pid, &mut event.what) {
                fork.ns_level = Some(1);
            }
            changed.event(event);
        }
        assert_eq!(raised(&changed, RULE.id)[0].subjects[0].pid, 21);
    }

    #[test]
    fn other_namespaces_are_no_matter() {
        assert_eq!(raised(&child(0x4000_0000 | 0x2_0000), RULE.id), []);
    }

    #[test]
    fn without_forks_it_is_not_assessed() {
        let mut story = child(0);
        story.lost("fork");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
