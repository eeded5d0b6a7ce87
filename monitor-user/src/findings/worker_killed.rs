//! `worker.killed`: a signal ended a worker of a pool in the middle of its work.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{found, grouped_by, is_shut_down, keys, signal},
    },
    model::{Process, pools::Pool},
};

const SIGTERM: u32 = 15;

pub(super) const RULE: Rule = Rule {
    id: "worker.killed",
    severity: Severity::Error,
    title: "a signal ended a worker of a pool",
    meaning: "What the worker was doing is lost. multiprocessing.Pool makes another worker without a word, and the \
        result of the task never comes, so that the caller waits for ever; ProcessPoolExecutor and loky give up the \
        whole pool.",
    measured: "The status that `wait` gives and who sent the signal. A worker that its own pool killed and that no \
        other followed was shut down, and doesn't count.",
    advice: "look for what killed it: the OOM killer, a fault in C code, a limit, a watchdog; use an executor, which \
        tells the caller, rather than Pool, which doesn't",
    wrong: "A program that kills the workers of its own pool by hand and makes no other is taken for one that shuts \
        the pool down.",
    needs: &[Need::Forks, Need::Threads, Need::Ends, Need::Signals],
    told_by: &["memory.oom_kill"],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        let workers = found(scene, &pool.workers);
        let killed = workers.into_iter().filter(|worker| is_loss(pool, worker));
        for (of, members) in grouped_by(killed, signal) {
            let Some(of) = of else { continue };
            let first = members.iter().filter_map(|p| p.end_ns()).min();
            let mut finding = Finding::new(&RULE, keys(&members))
                .with("signal", Value::Signal(of))
                .with("owner", Value::Process(pool.owner))
                .with_known("first_ns", first.map(Value::At));
            if let Some(at) = first {
                finding = finding.at(at);
            }
            let senders: Vec<_> = members
                .iter()
                .filter_map(|p| Some((p.key, p.sender.as_ref()?.process)))
                .collect();
            if !senders.is_empty() && senders.iter().all(|(own, by)| *by == Some(*own)) {
                finding = finding.with("sender", Value::Word("itself"));
            } else if !senders.is_empty() && senders.iter().all(|(_, by)| by.is_none()) {
                finding = finding.with("sender", Value::Word("the kernel"));
            }
            out.push(finding.say(
                scene,
                "{who}, in a pool of {owner}, {was} killed by {signal}[ from {sender}][, {first_ns}]",
            ));
        }
    }
}

/// Whether a worker was killed otherwise than by the end of its pool, as far as that is known: of those that were
/// told to stop by somebody who isn't known, it isn't.
fn is_loss(pool: &Pool, worker: &Process) -> bool {
    let Some(signal) = signal(worker) else {
        return false;
    };
    let is_shut_down = is_shut_down(pool, worker).unwrap_or(signal == SIGTERM);
    !is_shut_down || pool.replaced_workers.contains(&worker.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testkit::{pool, raised, unassessed};

    #[test]
    fn whoever_but_the_pool_did_it() {
        let mut story = pool();
        story
            .signal(20, 20, 9)
            .killed(20, 9)
            .after(5)
            .fork_by(10, 11, 22)
            .after(50);
        story
            .signal(10, 21, 15)
            .killed(21, 15)
            .signal(10, 22, 15)
            .killed(22, 15)
            .exit(10, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert!(
            found[0].text.contains("killed by SIGKILL from itself"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn a_worker_that_its_owner_killed_and_that_another_followed_was_not_shut_down() {
        let mut story = pool();
        story
            .signal(10, 20, 9)
            .killed(20, 9)
            .after(5)
            .fork_by(10, 11, 22)
            .after(50);
        story.exit(21, 0).exit(22, 0).exit(10, 0);
        assert_eq!(raised(&story, RULE.id).len(), 1);
    }

    #[test]
    fn a_pool_that_is_shut_down_or_ends_is_silent() {
        let mut story = pool();
        story
            .signal(10, 20, 15)
            .killed(20, 15)
            .signal(10, 21, 15)
            .killed(21, 15);
        assert_eq!(raised(story.exit(10, 0), RULE.id), []);
        let mut story = pool();
        assert_eq!(
            raised(story.exit(20, 0).exit(21, 0).exit(10, 0), RULE.id),
            []
        );
    }

    #[test]
    fn where_signals_are_not_seen_it_may_be_a_shutdown() {
        let mut story = pool();
        story.signal(20, 20, 9).lost("signal").killed(20, 9);
        story.exit(21, 0).exit(10, 0);
        assert!(raised(&story, RULE.id)[0].doubt.is_some());
        let mut story = pool();
        story.killed(20, 15).killed(21, 15).exit(10, 0);
        story.recording(|recording| recording.missing_hooks.push("signal_generate".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
