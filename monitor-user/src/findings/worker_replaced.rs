//! `worker.replaced`: a pool made another worker in the place of one that died.

use crate::findings::{
    Finding, Rule, Scene, Severity, Value,
    needs::Need,
    rule::Found,
    scene::{found, keys},
};

pub(super) const RULE: Rule = Rule {
    id: "worker.replaced",
    severity: Severity::Warning,
    title: "a pool replaced workers that died",
    meaning: "The number of workers stays the same, so that from outside nothing seems to have happened. But the task \
        of the dead worker is lost: with multiprocessing.Pool its result never comes, and whoever waits for it waits \
        for ever.",
    measured: "Workers that ended by a signal or with another code than 0, each followed by the start of another \
        worker of the same pool.",
    advice: "find out why they died; wait for results with a time limit, or use an executor, which reports the death",
    wrong: "A pool that makes workers as tasks come may have made the next one anyway.",
    needs: &[Need::Forks, Need::Threads, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        if pool.replaced.is_none() {
            out.unknown("of some workers it isn't known how they ended");
        }
        let dead = found(scene, &pool.replaced_workers);
        let Some(first) = dead.iter().filter_map(|p| p.end_ns()).min() else {
            continue;
        };
        let finding = Finding::new(&RULE, keys(&dead))
            .at(first)
            .with("owner", Value::Process(pool.owner))
            .with("first_ns", Value::At(first));
        out.push(finding.say(
            scene,
            "{who} died in a pool of {owner}, the first {first_ns}, and another took the place of each",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testkit::{pool, raised, unassessed};

    #[test]
    fn a_death_that_another_start_follows() {
        let mut story = pool();
        story
            .killed(20, 9)
            .reaped(20)
            .after(5)
            .fork_by(10, 11, 22)
            .after(50);
        story
            .exit(21, 3)
            .reaped(21)
            .after(5)
            .fork_by(10, 11, 23)
            .after(5);
        story.exit(22, 0).exit(23, 0).exit(10, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20), story.key(21)]);
    }

    #[test]
    fn an_end_by_plan_or_without_another_is_none() {
        let mut story = pool();
        story
            .exit(20, 0)
            .reaped(20)
            .after(5)
            .fork_by(10, 11, 22)
            .after(50);
        story.killed(21, 9).exit(22, 0).exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn lost_ends_leave_it_open() {
        let mut story = pool();
        story.killed(20, 9).lost("exit").exit(21, 0).exit(10, 0);
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
