//! `worker.leftover`: workers live on after their owner ended.

use crate::findings::{
    Rule, Scene, Severity, living_on::living_on, needs::Need, rule::Found, scene::signal,
};

pub(super) const RULE: Rule = Rule {
    id: "worker.leftover",
    severity: Severity::Warning,
    title: "workers live on after their owner ended",
    meaning: "The pool was never shut down, or its workers don't notice that nobody is there any more. They keep their memory, \
        files, locks and ports until somebody kills them.",
    measured: "The owner of the pool ended by itself, and workers lived for more than 250 ms after that.",
    advice: "shut the pool down (`with`, close and join, shutdown) on every way out of the program; make workers daemons",
    wrong: "Workers that were meant to finish what they had begun are listed too.",
    needs: &[Need::Forks, Need::Threads, Need::Ends, Need::End],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for (finding, owner) in living_on(scene, &RULE) {
        if signal(owner).is_none() {
            out.push(finding.say(
                scene,
                "{who} lived on for {after_ns} after the owner of their pool, {owner}, had ended",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testkit::{pool, raised, unassessed};

    #[test]
    fn after_the_owner_ended() {
        let mut story = pool();
        story.exit(10, 0).after(251).exit(20, 0).exit(21, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20), story.key(21)]);
    }

    #[test]
    fn a_moment_or_an_owner_that_was_killed_is_none() {
        let mut story = pool();
        story.exit(10, 0).after(250).exit(20, 0).exit(21, 0);
        assert_eq!(raised(&story, RULE.id), []);
        let mut story = pool();
        story.killed(10, 9).after(900).exit(20, 0).exit(21, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_an_end_it_is_not_assessed() {
        let mut story = pool();
        story
            .exit(10, 0)
            .recording(|recording| recording.cut_short = true);
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
