//! `pool.start_method`: how the workers of a pool were really started.

use crate::findings::{
    Finding, Rule, Scene, Severity, Value,
    needs::Need,
    rule::Found,
    scene::{found, keys},
};
use crate::model::pools::PoolKind;

pub(super) const RULE: Rule = Rule {
    id: "pool.start_method",
    severity: Severity::Info,
    title: "how the workers of a pool were started",
    meaning: "fork: a copy of the owner, quick, with all its memory and locks, dangerous if the owner has threads. spawn \
        and loky: a new interpreter, slow, with nothing inherited. forkserver: a copy of a small process that was \
        started for that. A program may ask for one and get another, by its platform, its version or a library.",
    measured: "From who made a worker, with a copy of memory or not, and which command line it executed.",
    advice: "see whether it is the method that was meant",
    wrong: "Programs that aren't Python's have methods of their own and are told without one.",
    needs: &[Need::Forks, Need::Execs],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        let Some(method) = pool.start_method else {
            continue;
        };
        let workers = found(scene, &pool.workers);
        let finding = Finding::new(&RULE, keys(&workers))
            .with("owner", Value::Process(pool.owner))
            .with("method", Value::Word(method.name()))
            .with_known("kind", pool.kind.map(|kind| Value::Word(kind.name())));
        out.push(finding.say(
            scene,
            match pool.kind {
                Some(PoolKind::Loky) => "{who} {was} started by {method}, in its pool of {owner}",
                _ => "{who} {was} started by {method}[, in a {kind}] of {owner}",
            },
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{pool, raised},
        model::testkit::Story,
    };

    #[test]
    fn copies_are_forked_and_interpreters_spawned() {
        let mut story = pool();
        story.exit(20, 0).exit(21, 0).exit(10, 0);
        let found = raised(&story, RULE.id);
        assert!(
            found[0].text.contains("started by fork, in a Pool of"),
            "{}",
            found[0].text
        );
        let spawn = [
            "/usr/bin/python3",
            "-c",
            "from multiprocessing.spawn import spawn_main; spawn_main(3)",
            "--multiprocessing-fork",
        ];
        let mut story = Story::new();
        story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
        story
            .vfork(10, 20)
            .after(1)
            .exec(20, &spawn)
            .after(1)
            .vfork(10, 21)
            .after(1)
            .exec(21, &spawn);
        story.after(50).exit(20, 0).exit(21, 0).exit(10, 0);
        assert!(raised(&story, RULE.id)[0].text.contains("started by spawn"));
    }

    #[test]
    fn processes_without_a_pool_have_none() {
        let mut story = Story::new();
        story
            .root(10, &["/bin/sh"])
            .after(1)
            .fork(10, 20)
            .after(1)
            .exec(20, &["/bin/true"]);
        assert_eq!(raised(story.exit(20, 0).exit(10, 0), RULE.id), []);
    }
}
