//! `fork.spin_suspected`: a child of a process with threads burnt CPU time until it was killed.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{ended_with_its_pool, signal, stayed_a_copy},
    },
    model::Process,
};

/// It lived for at least this long, ns.
const LIFE_NS: u64 = 1_000_000_000;
/// Hundredths of its life that it was on a CPU.
const PERCENT: u64 = 80;
/// The same where it didn't give up its CPU by itself: it was ready to run all the time, and others had the CPU.
const PERCENT_OF_A_BUSY_HOST: u64 = 20;
/// Times in a second of its life that one may give up its CPU of which that is said.
const GIVEN_UP: u64 = 10;

pub(super) const RULE: Rule = Rule {
    id: "fork.spin_suspected",
    severity: Severity::Warning,
    title: "a child forked from a process with threads burnt CPU time until it was killed",
    meaning: "A spin lock, or a flag that another thread was to set, never changes in the child, because that thread \
        doesn't exist there. Unlike a lock in futex it shows as work: 100 % of a CPU.",
    measured: "The child has its own copy of memory, was made while its creator had more than one live thread, never \
        executed a program, lived for at least 1 s, was on a CPU for at least 80 % of that (20 % if it gave up its CPU at \
        most 10 times a second, so that it was ready to run all the time), and SIGKILL or SIGTERM ended it.",
    advice: "start the child before the threads, or by spawn or forkserver; perf top or py-spy dump shows the loop",
    wrong: "A child that was hard at work when somebody had enough of it looks the same.",
    needs: &[Need::Forks, Need::Execs, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    for child in scene
        .tree
        .processes
        .iter()
        .filter(|p| is_hit(p) && !ended_with_its_pool(scene, p))
    {
        let (Some(cpu), Some(end)) = (child.cpu_ns, child.end_ns()) else {
            continue;
        };
        let finding = Finding::new(&RULE, vec![child.key])
            .with("cpu_ns", Value::Span(cpu))
            .with(
                "life_ns",
                Value::Span(end.saturating_sub(child.key.start_ns)),
            )
            .with(
                "threads",
                Value::Count(
                    child.created.creator_threads.unwrap_or(0).into(),
                    "thread",
                    "threads",
                ),
            );
        found.push(finding.say(
            scene,
            "{who}, made by a process that had {threads}, was on a CPU for {cpu_ns} of its {life_ns} until it was killed",
        ));
    }
}

fn is_hit(process: &Process) -> bool {
    let is_threaded = process.created.creator_threads.is_some_and(|n| n > 1);
    let life = process
        .end_ns()
        .map_or(0, |end| end.saturating_sub(process.key.start_ns));
    let was_ready = process
        .usage
        .switches_voluntary
        .is_some_and(|times| times.saturating_mul(1_000_000_000) <= life.saturating_mul(GIVEN_UP));
    let percent = if was_ready {
        PERCENT_OF_A_BUSY_HOST
    } else {
        PERCENT
    };
    let is_busy = process
        .cpu_ns
        .is_some_and(|cpu| cpu.saturating_mul(100) >= life.saturating_mul(percent));
    let is_killed = matches!(signal(process), Some(9 | 15));
    is_threaded && life >= LIFE_NS && is_busy && is_killed && stayed_a_copy(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::Usage,
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    fn busy(ms: u64, cpu_ms: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["server"])
            .thread(10, 11)
            .fork(10, 20)
            .after(ms)
            .killed(20, 9)
            .reaped_with_cpu(20, cpu_ms);
        story
    }

    #[test]
    fn a_loop_that_only_a_signal_ends() {
        let found = raised(&busy(1_000, 990), RULE.id);
        assert!(
            found[0]
                .text
                .contains("was on a CPU for 990 ms of its 1.0 s"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn at_the_thresholds() {
        assert_eq!(raised(&busy(1_000, 800), RULE.id).len(), 1);
        assert_eq!(raised(&busy(1_000, 799), RULE.id), []);
        assert_eq!(raised(&busy(999, 999), RULE.id), []);
    }

    #[test]
    fn on_a_busy_host_it_is_enough_that_it_never_waited() {
        let shared = |cpu_ms: u64, given_up: u64| {
            let mut story = Story::new();
            let usage = Usage {
                switches_voluntary: Some(given_up),
                ..Usage::default()
            };
            story.root(10, &["server"]).thread(10, 11).fork(10, 20);
            story.after(2_000).killed(20, 9);
            story.reaped_with(20, cpu_ms * 1_000_000, usage);
            raised(&story, RULE.id).len()
        };
        assert_eq!(shared(400, 20), 1);
        assert_eq!(shared(399, 20), 0);
        assert_eq!(shared(400, 21), 0);
    }

    #[test]
    fn without_ends_it_is_not_assessed() {
        let mut story = busy(1_000, 100);
        story.lost("exit");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
