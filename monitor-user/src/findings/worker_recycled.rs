//! `worker.recycled`: a pool renews its workers by plan.

use crate::findings::{
    Finding, Rule, Scene, Severity, Value,
    needs::Need,
    rule::Found,
    scene::{found, keys},
};

pub(super) const RULE: Rule = Rule {
    id: "worker.recycled",
    severity: Severity::Info,
    title: "a pool renews its workers",
    meaning: "Workers end after some tasks and others take their places (maxtasksperchild, max_tasks_per_child, loky's \
        recycling). That gives memory back that tasks left behind, and costs the start of a worker each time.",
    measured: "Workers that ended with code 0, each followed by the start of another worker of the same pool.",
    advice: "if starting a worker takes long compared with its tasks, let it do more of them",
    wrong: "A worker that leaves by itself with code 0 in the middle of a task looks the same.",
    needs: &[Need::Forks, Need::Threads, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        let ended = found(scene, &pool.recycled_workers);
        let lives = || {
            ended
                .iter()
                .filter_map(|p| Some(p.end_ns()? - p.key.start_ns))
        };
        let (Some(shortest), Some(longest)) = (lives().min(), lives().max()) else {
            continue;
        };
        let finding = Finding::new(&RULE, keys(&ended))
            .with("owner", Value::Process(pool.owner))
            .with("shortest_ns", Value::Span(shortest))
            .with("longest_ns", Value::Span(longest));
        out.push(finding.say(
            scene,
            "{who}, in a pool of {owner}, ended by plan after {shortest_ns} to {longest_ns}, and another took the \
             place of each",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testkit::{pool, raised};

    #[test]
    fn an_end_by_plan_that_another_start_follows() {
        let mut story = pool();
        story
            .exit(20, 0)
            .reaped(20)
            .after(5)
            .fork_by(10, 11, 22)
            .after(50);
        story.exit(21, 0).exit(22, 0).exit(10, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
    }

    #[test]
    fn the_end_of_the_pool_or_a_death_is_none() {
        let mut story = pool();
        story
            .killed(20, 9)
            .reaped(20)
            .after(5)
            .fork_by(10, 11, 22)
            .after(50);
        assert_eq!(
            raised(story.exit(21, 0).exit(22, 0).exit(10, 0), RULE.id),
            []
        );
    }
}
