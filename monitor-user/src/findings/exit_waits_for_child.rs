//! `exit.waits_for_child`: a process had nothing left to do but wait for a child to end.

use std::collections::HashSet;

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found, scene::stayed_a_copy,
    },
    model::{Process, Wait},
    units::ProcessKey,
};

/// It waited for at least this long, ns.
const LONG_NS: u64 = 1_000_000_000;
/// It ran again within this time of the child's end, and ended itself within this time of that, ns.
const SOON_NS: u64 = 500_000_000;

pub(super) const RULE: Rule = Rule {
    id: "exit.waits_for_child",
    severity: Severity::Info,
    title: "a process was done except that it waited for a child to end",
    meaning: "At its exit Python joins every child that isn't a daemon, and other programs wait for theirs. If the main \
        program is long done, the command seems to hang while that child works on, or hangs itself.",
    measured: "A thread of the process waited in wait4 or waitid for at least 1 s until the child ended, and the \
        process ended within 0.5 s after that. The child was made by fork and never executed a program; workers of a \
        pool of a known kind don't count.",
    advice: "end the child when the work is done (an event, a sentinel in its queue, terminate), or start it with \
        daemon=True if it may be killed at exit",
    wrong: "A program whose purpose it is to wait for that child looks the same.",
    needs: &[Need::Waits, Need::Ends, Need::Forks],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    // Children that are only alike are no pool that joins its workers.
    let known = scene.pools.pools.iter().filter(|p| p.kind.is_some());
    let workers: HashSet<ProcessKey> = known.flat_map(|p| p.workers.iter().copied()).collect();
    let is_no_worker = |p: &&Process| !workers.contains(&p.key);
    let children = scene.tree.processes.iter().filter(|p| stayed_a_copy(p));
    for child in children.filter(is_no_worker) {
        let Some((parent, wait)) = scene
            .creator(child)
            .and_then(|parent| Some((parent, last_wait(parent, child)?)))
        else {
            continue;
        };
        let finding = Finding::new(&RULE, vec![child.key, parent.key])
            .at(wait.since_ns)
            .with("parent", Value::Process(parent.key))
            .with("child", Value::Process(child.key))
            .with("waited_ns", Value::Span(wait.ns()))
            .with("since_ns", Value::At(wait.since_ns));
        found.push(finding.say(
            scene,
            "{parent} did nothing from {since_ns} on but wait {waited_ns} for its child {child} to end, and ended then",
        ));
    }
}

/// The wait in which the parent spent its last time, until the child ended.
fn last_wait<'a>(parent: &'a Process, child: &Process) -> Option<&'a Wait> {
    let (child_end, parent_end) = (child.end_ns()?, parent.end_ns()?);
    let is_soon = |from: u64, to: u64| from <= to && to - from <= SOON_NS;
    let is_it = |wait: &&Wait| {
        let is_for_child = matches!(wait.call.as_deref(), Some("wait4" | "waitid"));
        is_for_child
            && wait.ns() >= LONG_NS
            && wait.since_ns < child_end
            && is_soon(child_end, wait.until_ns)
    };
    is_soon(child_end, parent_end).then(|| parent.waits.iter().find(is_it))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{pool, raised, unassessed},
        model::testkit::Story,
    };

    /// A program that waits for its child for `ms`, goes on for `then` ms, and ends.
    fn waiting(ms: u64, then: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["python3", "m.py"])
            .fork(10, 20)
            .after(300 + ms)
            .exit(20, 0)
            .slept(10, 10, ms, "wait4");
        story.after(then).reaped(20).exit(10, 0).reaped(10);
        story
    }

    #[test]
    fn a_program_that_is_done() {
        let story = waiting(1_500, 20);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20), story.key(10)]);
        assert_eq!(
            found[0].text,
            "python3 m.py (pid 10) did nothing from 300 ms after the start on but wait 1.5 s for its child python3 m.py \
             (pid 20) to end, and ended then"
        );
    }

    #[test]
    fn workers_of_a_pool_do_not_count() {
        let mut story = pool();
        story
            .after(1500)
            .exit(20, 0)
            .slept(10, 10, 1500, "wait4")
            .reaped(20);
        story.exit(21, 0).reaped(21).exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn children_that_are_only_alike_do() {
        let mut story = Story::new();
        story
            .root(10, &["python3", "m.py"])
            .fork(10, 20)
            .fork(10, 21);
        story
            .after(300)
            .signal(10, 20, 15)
            .killed(20, 15)
            .reaped(20);
        story.after(1500).exit(21, 0).slept(10, 10, 1500, "wait4");
        story.after(20).reaped(21).exit(10, 0);
        assert_eq!(raised(&story, RULE.id)[0].subjects[0], story.key(21));
    }

    #[test]
    fn at_the_thresholds() {
        assert_eq!(raised(&waiting(1_000, 500), RULE.id).len(), 1);
        assert_eq!(raised(&waiting(999, 500), RULE.id), []);
        assert_eq!(raised(&waiting(1_000, 501), RULE.id), []);
    }

    #[test]
    fn programs_that_are_executed_are_work() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["sleep"])
            .after(1_500)
            .exit(20, 0);
        story.slept(10, 10, 1_490, "wait4").exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_waits_it_is_not_assessed() {
        let mut story = waiting(10, 1);
        story.recording(|r| r.missing_hooks.push("sched_switch".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
