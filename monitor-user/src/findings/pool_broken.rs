//! `pool.broken`: a pool gave up after a worker had died.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{found, is_shut_down, keys},
    },
    model::{
        Process,
        pools::{Pool, PoolKind},
    },
};

pub(super) const RULE: Rule = Rule {
    id: "pool.broken",
    severity: Severity::Error,
    title: "an executor gave up after a worker had died",
    meaning: "ProcessPoolExecutor and loky end all workers once one of them dies, since they can't know what it left \
        undone: all tasks that are waiting fail (BrokenProcessPool, TerminatedWorkerError), those of healthy workers \
        too.",
    measured: "A pool of one of these kinds of which a worker ended by a signal, or with another code than 0, which \
        its owner didn't send.",
    advice: "find out why the worker died, by its signal and its memory; make the executor anew and hand the tasks in \
        again",
    wrong: "A worker that dies while the pool is being shut down breaks nothing any more.",
    needs: &[Need::Forks, Need::Threads, Need::Ends, Need::Signals],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        if !matches!(
            pool.kind,
            Some(PoolKind::ProcessPoolExecutor | PoolKind::Loky)
        ) {
            continue;
        }
        let workers = found(scene, &pool.workers);
        let died = |worker: &&&Process| has_died(pool, worker);
        let dead: Vec<&Process> = workers.iter().filter(died).copied().collect();
        let Some(first) = dead.iter().filter_map(|p| p.end_ns()).min() else {
            continue;
        };
        let others = workers.iter().filter(|worker| {
            let ended_after = worker.end_ns().is_none_or(|end| end >= first);
            worker.key.start_ns <= first && ended_after && !has_died(pool, worker)
        });
        let finding = Finding::new(&RULE, keys(&dead))
            .at(first)
            .with("owner", Value::Process(pool.owner))
            .with("first_ns", Value::At(first))
            .with(
                "others",
                Value::Count(others.count() as u64, "other worker", "other workers"),
            );
        out.push(finding.say(
            scene,
            "{who} died in an executor of {owner}, {first_ns}, which gave up with it, and {others} that did no harm",
        ));
    }
}

/// Whether a worker ended in a way that wasn't meant.
fn has_died(pool: &Pool, worker: &Process) -> bool {
    worker.status.is_some_and(|status| status != 0) && is_shut_down(pool, worker) != Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{findings::testkit::raised, model::testkit::Story};

    /// A `ProcessPoolExecutor` of two copies.
    fn executor() -> Story {
        let mut story = Story::new();
        story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
        story.fork(10, 20).after(1).fork(10, 21).after(1);
        story
            .thread(10, 11)
            .after(1)
            .thread_by(10, 11, 12)
            .after(50);
        story
    }

    #[test]
    fn one_death_ends_all() {
        let mut story = executor();
        story.kernel_signal(20, 11).killed(20, 11).after(2);
        story.signal(10, 21, 15).killed(21, 15).exit(10, 1);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert!(
            found[0].text.contains("1 other worker"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn a_code_is_a_death_too() {
        let mut story = executor();
        story
            .exit(20, 3)
            .after(2)
            .signal(10, 21, 15)
            .killed(21, 15)
            .exit(10, 1);
        assert_eq!(raised(&story, RULE.id).len(), 1);
    }

    #[test]
    fn a_shutdown_breaks_nothing() {
        let mut story = executor();
        assert_eq!(
            raised(story.exit(20, 0).exit(21, 0).exit(10, 0), RULE.id),
            []
        );
        let mut story = executor();
        story
            .signal(10, 20, 15)
            .killed(20, 15)
            .signal(10, 21, 15)
            .killed(21, 15);
        assert_eq!(raised(story.exit(10, 0), RULE.id), []);
    }

    #[test]
    fn a_pool_of_multiprocessing_replaces_and_does_not_break() {
        let mut story = Story::new();
        story
            .root(10, &["/usr/bin/python3", "x.py"])
            .after(10)
            .fork(10, 20);
        for tid in 11..14 {
            story.thread(10, tid);
        }
        story
            .after(50)
            .kernel_signal(20, 11)
            .killed(20, 11)
            .exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }
}
