//! `escape.session`: a descendant is in another session than the command.

use crate::{
    findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found},
    model::Process,
    units::ProcessKey,
};

pub(super) const RULE: Rule = Rule {
    id: "escape.session",
    severity: Severity::Info,
    title: "a descendant is in a session of its own",
    meaning: "setsid takes a process out of its session and process group: Ctrl-C in the terminal, a kill of the \
        process group and the hang-up of the terminal don't reach it any more. Daemons and programs that are \
        started with start_new_session do that on purpose; others are left behind when the command is stopped.",
    measured: "Successful calls of setsid, with all whom such a process made afterwards.",
    advice: "stop such processes by pid or by control group; a kill of the command's group doesn't reach them",
    wrong: "A process that left its process group by setpgid alone, as shells do for jobs, isn't listed.",
    needs: &[Need::Sessions, Need::Forks],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    if scene
        .tree
        .processes
        .iter()
        .any(|p| p.exec_failures.is_none())
    {
        found.unknown("calls of setsid were not recorded");
    }
    for leader in &scene.tree.processes {
        let Some(since) = leader.session_ns else {
            continue;
        };
        let inside = members(scene, leader, since);
        let finding = Finding::new(&RULE, inside.clone())
            .at(since)
            .with("leader", Value::Process(leader.key))
            .with("since_ns", Value::At(since))
            .with(
                "processes",
                Value::Count(inside.len() as u64, "process", "processes"),
            );
        found.push(finding.say(
            scene,
            "{leader} made a session of its own {since_ns}, with {processes} in it",
        ));
    }
}

/// The leader and all whom it and they have made since, but for those with a session of their own.
fn members(scene: &Scene<'_>, leader: &Process, since: u64) -> Vec<ProcessKey> {
    let mut all = vec![leader.key];
    let mut at = 0;
    while let Some(key) = all.get(at).copied() {
        let made = scene.children(key).filter(|p| p.key.start_ns >= since);
        all.extend(made.filter(|p| p.session_ns.is_none()).map(|p| p.key));
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    #[test]
    fn a_daemon_and_who_comes_after() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .fork(20, 21)
            .after(1)
            .setsid(20)
            .after(1)
            .fork(20, 22)
            .exit(20, 0);
        let found = raised(&story, RULE.id);
        // The child of before stays in the old session.
        assert_eq!(
            found[0].subjects.iter().map(|k| k.pid).collect::<Vec<_>>(),
            [20, 22]
        );
        assert_eq!(
            found[0].text,
            "sh (pid 20) made a session of its own 1.0 ms after the start, with 2 processes in it"
        );
    }

    #[test]
    fn who_stays_is_silent() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).exit(20, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_the_calls_it_is_not_assessed() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .recording(|r| r.missing_hooks.push("sys_exit".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
