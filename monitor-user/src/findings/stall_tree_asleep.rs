//! `stall.tree_asleep`: nothing of the tree ran for long, and nothing was about to.

use crate::{
    event::WaitState,
    findings::{
        Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found, scene::ended_with_its_pool,
    },
    model::{Process, Stall, Wait},
    units::ProcessKey,
};

/// Processes that are named.
const NAMED: usize = 3;
/// Calls that end by themselves, or by what comes from outside: a sleep, a timer, a server's wait for its clients.
const IDLE: &[&str] = &[
    "nanosleep",
    "clock_nanosleep",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "accept",
    "accept4",
    "pause",
    "rt_sigtimedwait",
    "io_getevents",
];
/// Who dies within this time after a stall may have been killed because of it, ns.
const AFTER_NS: u64 = 1_000_000_000;
/// Calls by which a parent waits for its children.
const FOR_CHILDREN: &[&str] = &["wait4", "waitid"];

pub(super) const RULE: Rule = Rule {
    id: "stall.tree_asleep",
    severity: Severity::Warning,
    title: "no process of the tree ran for more than a second",
    meaning: "Every thread of every process was stopped, or waited for another one of the tree: nothing could go on \
        by itself. A stop by a signal, a deadlock, a reader of a pipe that nobody writes to look like that. A tree \
        that sleeps on purpose, or serves and has nothing to do, isn't meant.",
    measured: "Waits of at least 0.1 s of all threads leave more than 1 s in which none ran. Of those who waited all \
        that time at least one was stopped, or waited for storage; or none was in a sleep, a poll or a wait for \
        clients, not all were parents that wait for children, and it didn't end by itself: the recording ended \
        meanwhile, or within 1 s one of them was killed or ended with an error.",
    advice: "look at who waited for whom in what: stopped processes need SIGCONT; for locks take stacks of all \
        processes (gdb, py-spy dump) while they hang",
    wrong: "A process outside of the tree may have been at work for it, and storage or a network may have been slow. \
        A deadlock that a time limit of its own ends, without an error, is taken for sleep on purpose.",
    needs: &[Need::Waits],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let Some(stalls) = &scene.tree.stalls else {
        found.unknown("waits of threads were not recorded");
        return;
    };
    let meant: Vec<&Stall> = stalls
        .iter()
        .filter(|stall| is_meant(scene, stall))
        .collect();
    let Some(longest) = meant.iter().max_by_key(|stall| stall.ns()) else {
        return;
    };
    let mut who = waiting(scene, longest);
    // The stopped ones first, then those that no parent's wait explains.
    who.sort_by_key(|(_, wait)| {
        (
            wait.state != WaitState::Stopped,
            is_of(wait, FOR_CHILDREN),
            is_of(wait, IDLE),
        )
    });
    let subjects: Vec<ProcessKey> = who.iter().map(|(process, _)| process.key).collect();
    let named: Vec<String> = who
        .iter()
        .take(NAMED)
        .map(|(process, wait)| said(scene, process, wait))
        .collect();
    let finding = Finding::new(&RULE, subjects)
        .at(longest.since_ns)
        .with("longest_ns", Value::Span(longest.ns()))
        .with("since_ns", Value::At(longest.since_ns))
        .with("stalls", Value::Count(meant.len() as u64, "time", "times"))
        .with("waited", Value::Text(named.join("; ").into_bytes()));
    found.push(finding.say(
        scene,
        "nothing ran for {longest_ns}, from {since_ns} ({stalls} in all): {waited}",
    ));
}

/// Whether nothing in it was about to go on by itself.
fn is_meant(scene: &Scene<'_>, stall: &Stall) -> bool {
    let who = all_waiting(scene, stall);
    let is_in = |state| who.iter().any(|(_, wait)| wait.state == state);
    if is_in(WaitState::Stopped) {
        return true;
    }
    let is_idle = who.iter().any(|(_, wait)| is_of(wait, IDLE));
    let is_known = who
        .iter()
        .any(|(_, wait)| wait.call.is_some() && !is_of(wait, FOR_CHILDREN));
    let could_not_go_on =
        is_in(WaitState::Uninterruptible) || !went_on_by_itself(scene, stall, &who);
    is_known && !is_idle && could_not_go_on
}

/// Whether those who waited went on without having been killed: a wait with a time limit looks like one without.
fn went_on_by_itself(scene: &Scene<'_>, stall: &Stall, who: &[(&Process, &Wait)]) -> bool {
    let ended_badly = |process: &Process| {
        let until = stall.until_ns.saturating_add(AFTER_NS);
        process.end_ns().is_some_and(|end| end <= until)
            && process.status.is_some_and(|status| status != 0)
            && !ended_with_its_pool(scene, process)
    };
    stall.until_ns < scene.tree.end_ns && !who.iter().any(|(process, _)| ended_badly(process))
}

/// Waits that cover the stall, of all threads.
fn all_waiting<'a>(scene: &Scene<'a>, stall: &Stall) -> Vec<(&'a Process, &'a Wait)> {
    let covers = |wait: &&Wait| wait.since_ns <= stall.since_ns && wait.until_ns >= stall.until_ns;
    let processes = scene.tree.processes.iter();
    let of = |p: &'a Process| p.waits.iter().filter(covers).map(move |wait| (p, wait));
    processes.flat_map(of).collect()
}

/// The longest of them, for each process that has one.
fn waiting<'a>(scene: &Scene<'a>, stall: &Stall) -> Vec<(&'a Process, &'a Wait)> {
    let mut longest: Vec<(&Process, &Wait)> = Vec::new();
    for (process, wait) in all_waiting(scene, stall) {
        match longest
            .last_mut()
            .filter(|(last, _)| last.key == process.key)
        {
            Some((_, last)) if wait.ns() >= last.ns() => *last = wait,
            Some(_) => {}
            None => longest.push((process, wait)),
        }
    }
    longest
}

fn is_of(wait: &Wait, calls: &[&str]) -> bool {
    wait.call
        .as_deref()
        .is_some_and(|call| calls.contains(&call))
}

fn said(scene: &Scene<'_>, process: &Process, wait: &Wait) -> String {
    let name = scene.name(process.key).unwrap_or_default();
    let pid = process.key.pid;
    match (wait.state, &wait.call) {
        (WaitState::Stopped, _) => format!("{name} (pid {pid}) was stopped by a signal"),
        (WaitState::Traced, _) => format!("{name} (pid {pid}) was stopped by a debugger"),
        (_, Some(call)) => format!("{name} (pid {pid}) waited in {call}"),
        (_, None) => format!("{name} (pid {pid}) waited"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// The command waits in `first` and its child in `second` for `ms`, until somebody kills the child.
    fn asleep(ms: u64, first: &str, second: &str) -> Story {
        let mut story = slept(ms, first, second);
        story.killed(20, 9).reaped(20).exit(10, 0);
        story
    }

    /// The same without an end.
    fn slept(ms: u64, first: &str, second: &str) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["a"])
            .fork(10, 20)
            .exec(20, &["b"])
            .after(500 + ms);
        story
            .slept(10, 10, ms, first)
            .slept(20, 20, ms, second)
            .after(50);
        story
    }

    #[test]
    fn waits_that_end_by_themselves_had_a_time_limit() {
        let mut story = slept(2_000, "wait4", "futex");
        story.exit(20, 0).reaped(20).exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
        // An error is what a deadlock that somebody noticed ends with, but not if it comes much later.
        for (later, expected) in [(900, 1), (1_000, 0)] {
            let mut story = slept(2_000, "wait4", "futex");
            story.after(later).exit(20, 1).reaped(20).exit(10, 0);
            assert_eq!(raised(&story, RULE.id).len(), expected, "{later}");
        }
    }

    #[test]
    fn a_sleep_in_any_thread_is_one() {
        let mut story = Story::new();
        story.root(10, &["a"]).thread(10, 11).after(2_500);
        story
            .slept(10, 10, 2_000, "clock_nanosleep")
            .slept(10, 11, 2_400, "futex")
            .after(50)
            .killed(10, 9);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn a_tree_in_a_deadlock() {
        let story = asleep(2_000, "wait4", "futex");
        let found = raised(&story, RULE.id);
        assert_eq!(
            found[0].text,
            "nothing ran for 2.0 s, from 500 ms after the start (1 time in all): b (pid 20) waited in futex; \
             a (pid 10) waited in wait4"
        );
        assert_eq!(found[0].subjects, [story.key(20), story.key(10)]);
    }

    #[test]
    fn a_stop_counts_whoever_else_sleeps() {
        let mut story = Story::new();
        story.root(10, &["a"]).fork(10, 20).after(2_000);
        story
            .stopped(10, 1_500)
            .slept(20, 20, 1_900, "clock_nanosleep")
            .after(50)
            .exit(20, 0)
            .exit(10, 0);
        let found = raised(&story, RULE.id);
        assert!(
            found[0].text.contains(
                "a (pid 10) was stopped by a signal; a (pid 20) waited in clock_nanosleep"
            )
        );
    }

    #[test]
    fn sleep_on_purpose_is_none() {
        for (first, second) in [
            ("wait4", "clock_nanosleep"),
            ("wait4", "epoll_wait"),
            ("read", "nanosleep"),
        ] {
            assert_eq!(
                raised(&asleep(2_000, first, second), RULE.id),
                [],
                "{first} {second}"
            );
        }
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&asleep(1_001, "wait4", "futex"), RULE.id).len(), 1);
        assert_eq!(raised(&asleep(1_000, "wait4", "futex"), RULE.id), []);
    }

    #[test]
    fn without_waits_it_is_not_assessed() {
        let mut story = asleep(10, "wait4", "futex");
        story.recording(|r| r.missing_hooks.push("sched_switch".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
