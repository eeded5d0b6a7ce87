//! `process.zombie`: a process of the tree was not reaped for long.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{grouped_by, keys},
    },
    model::Process,
};

/// Not reaped for longer than this, ns: half a second, and the kernel's delay after a reaping.
const LONG_NS: u64 = 550_000_000;
/// So many of one parent are no carelessness any more but a leak of pids.
const MANY: usize = 20;

pub(super) const RULE: Rule = Rule {
    id: "process.zombie",
    severity: Severity::Info,
    title: "an ended process was not reaped for more than half a second",
    meaning: "A process that has ended keeps its pid and its exit code until its parent asks for it. One or two are \
        the normal result of a parent that is busy; many use up pids and the limit of processes of a user, and mean \
        that nobody looks at how they ended. From 20 of one parent on it is a warning.",
    measured: "From the end of the last thread to the moment at which the kernel freed the process, more than 550 ms: \
        10 to 50 ms of that are the kernel's own delay after the reaping. The parent is in the tree.",
    advice: "let the parent wait for its children (waitpid, Popen.wait or poll, Process.join, a handler of SIGCHLD)",
    wrong: "A parent that is stopped, or debugged, can't reap. Where a parent ends without reaping, the time is \
        that until its own end.",
    needs: &[Need::Reaping, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let zombies = scene
        .tree
        .processes
        .iter()
        .filter(|p| waited(scene, p).is_some_and(|ns| ns > LONG_NS));
    for (parent, members) in grouped_by(zombies, |p| p.final_parent) {
        let longest = members
            .iter()
            .filter_map(|p| waited(scene, p))
            .max()
            .unwrap_or(0);
        let severity = if members.len() >= MANY {
            Severity::Warning
        } else {
            Severity::Info
        };
        let finding = Finding::new(&RULE, keys(&members))
            .severity(severity)
            .with("longest_ns", Value::Span(longest))
            .with_known("parent", parent.map(Value::Process));
        found.push(finding.say(
            scene,
            "{who} had ended and {was} not reaped by {parent} for up to {longest_ns}",
        ));
    }
}

/// For how long it was a zombie of a process of the tree, ns.
fn waited(scene: &Scene<'_>, process: &Process) -> Option<u64> {
    scene.process(process.final_parent?)?;
    if process.zombie_at_end == Some(true) {
        return Some(scene.tree.end_ns.saturating_sub(process.end_ns()?));
    }
    process.zombie_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    fn unreaped(ms: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["daemon"])
            .fork(10, 20)
            .fork(10, 21)
            .after(1)
            .exit(20, 3)
            .exit(21, 0);
        story.after(20).reaped(21).after(ms - 20).reaped(20);
        story
    }

    #[test]
    fn a_child_that_nobody_asked_for() {
        let story = unreaped(1_000);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert_eq!(
            found[0].text,
            "daemon (pid 20) had ended and was not reaped by daemon (pid 10) for up to 1.0 s"
        );
        assert_eq!(found[0].severity, Severity::Info);
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&unreaped(550), RULE.id), []);
        assert_eq!(raised(&unreaped(551), RULE.id).len(), 1);
    }

    #[test]
    fn many_are_worse_and_those_of_others_are_theirs() {
        let mut story = Story::new();
        story.root(10, &["daemon"]);
        for pid in 100..120 {
            story.fork(10, pid).exit(pid, 0);
        }
        story.after(700);
        for pid in 100..120 {
            story.still_there(pid, true);
        }
        assert_eq!(raised(&story, RULE.id)[0].severity, Severity::Warning);
        let mut story = Story::new();
        story
            .root(10, &["daemon"])
            .fork(10, 20)
            .reparent(20, 1)
            .exit(20, 0)
            .after(2_000)
            .reaped(20);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_the_hook_it_is_not_assessed() {
        let mut story = Story::new();
        story.root(10, &["daemon"]);
        story.recording(|r| r.missing_hooks.push("sched_process_free".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
