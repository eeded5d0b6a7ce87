//! `pid.reused`: two processes of the tree had the same pid.

use crate::{
    findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found},
    units::ProcessKey,
};

pub(super) const RULE: Rule = Rule {
    id: "pid.reused",
    severity: Severity::Info,
    title: "two processes of the tree had the same pid",
    meaning: "The kernel gave a pid out again. Tools that tell processes apart by pid alone take the two for one, and \
        a signal that is sent to a remembered pid may hit the wrong one.",
    measured: "Identity in a recording is the pid together with the start; two starts with one pid are two processes.",
    advice: "hold children by pidfd or by Popen objects, not by bare pids; raise kernel.pid_max if pids run out",
    wrong: "It sees pids of this tree only: one may also have been used by a process outside of it meanwhile.",
    needs: &[Need::Forks],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let mut keys: Vec<ProcessKey> = scene.tree.processes.iter().map(|p| p.key).collect();
    keys.sort_by_key(|key| (key.pid, key.start_ns));
    let again: Vec<&[ProcessKey]> = keys
        .chunk_by(|a, b| a.pid == b.pid)
        .filter(|run| run.len() > 1)
        .collect();
    let Some(first) = again.first() else {
        return;
    };
    let subjects: Vec<ProcessKey> = again.iter().flat_map(|run| run.iter().copied()).collect();
    let finding = Finding::new(&RULE, subjects)
        .with("pids", Value::Count(again.len() as u64, "pid", "pids"))
        .with("first", Value::Process(first[0]))
        .with("second", Value::Process(first[1]))
        .with(
            "between_ns",
            Value::Span(first[1].start_ns - first[0].start_ns),
        )
        .at(first[1].start_ns);
    found.push(finding.say(
        scene,
        "{pids} stood for more than one process, for instance {first} and, {between_ns} later, {second}",
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    #[test]
    fn a_pid_that_comes_again() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["a"])
            .after(1)
            .exit(20, 0)
            .reaped(20);
        let before = story.key(20);
        assert_eq!(raised(&story, RULE.id), []);
        story
            .after(7)
            .fork(10, 20)
            .exec(20, &["b"])
            .after(1)
            .exit(20, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [before, story.key(20)]);
        assert_eq!(
            found[0].text,
            "1 pid stood for more than one process, for instance a (pid 20) and, 8.0 ms later, b (pid 20)"
        );
    }

    #[test]
    fn lost_forks_leave_it_open() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).lost("fork");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
