//! `fork.deadlock_suspected`: a child of a process with threads waits for a lock for ever.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{ended_with_its_pool, signal, stayed_a_copy},
    },
    model::Process,
};

/// It waited for at least this long, ns.
const LONG_NS: u64 = 300_000_000;

pub(super) const RULE: Rule = Rule {
    id: "fork.deadlock_suspected",
    severity: Severity::Error,
    title: "a child forked from a process with threads waited for a lock until its end",
    meaning: "A thread of the parent held a lock at the moment of the fork. In the child that thread doesn't exist, so \
        nobody will ever release the child's copy of it, and whoever asks for it there waits for ever. The parent \
        then waits for the child, and all stands still without an error.",
    measured: "The child has its own copy of memory, was made while its creator had more than one live thread, never \
        executed a program, and all its threads slept in futex without interruption, for at least 0.3 s, until a \
        signal ended it or the recording ended. Workers that their own pool ended don't count: they wait for work \
        in the same way.",
    advice: "start the child before the threads, or by spawn or forkserver; to see the lock: py-spy dump --pid PID, or \
        gdb -p PID -batch -ex bt, while it hangs",
    wrong: "It may wait for something in shared memory that somebody alive would have given, such as a queue's \
        semaphore: whose lock it is no event says.",
    needs: &[Need::Forks, Need::Waits, Need::Execs],
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
        let Some(blocked) = &child.blocked_at_end else {
            continue;
        };
        let threads = child.created.creator_threads.unwrap_or(0);
        let finding = Finding::new(&RULE, vec![child.key])
            .with("threads", Value::Count(threads.into(), "thread", "threads"))
            .with("waited_ns", Value::Span(blocked.ns))
            .with_known("creator", child.created.creator.map(Value::Process))
            .with_known("signal", signal(child).map(Value::Signal));
        let until = if signal(child).is_some() {
            "until {signal} ended it"
        } else {
            "until the recording ended"
        };
        found.push(finding.say(
            scene,
            &format!(
                "{{who}} waited for a lock (futex) for {{waited_ns}} {until}; [{{creator}} ]had {{threads}} when it made it, and \
                 a thread that held the lock then doesn't exist in the child"
            ),
        ));
    }
}

fn is_hit(process: &Process) -> bool {
    let is_threaded = process.created.creator_threads.is_some_and(|n| n > 1);
    let is_blocked = process
        .blocked_at_end
        .as_ref()
        .is_some_and(|b| b.kind() == "futex" && b.ns >= LONG_NS);
    is_threaded && is_blocked && stayed_a_copy(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    #[test]
    fn a_worker_that_waits_for_work_until_its_pool_ends_is_not_stuck() {
        let mut story = Story::new();
        story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
        story.fork(10, 20).after(1).fork(10, 21).after(1);
        for tid in 11..14 {
            story.thread(10, tid);
        }
        // One ends by plan; the one that takes its place is forked while its owner has threads.
        story
            .after(50)
            .exit(20, 0)
            .reaped(20)
            .after(5)
            .fork_by(10, 11, 22)
            .after(5000);
        for pid in 21..23 {
            story
                .signal(10, pid, 15)
                .slept(pid, pid, 4900, "futex")
                .killed(pid, 15);
        }
        assert_eq!(raised(story.exit(10, 0), RULE.id), []);
    }

    /// A child of a process with `threads` extra threads that waits in `call` for `ms` and is killed.
    fn stuck(threads: u32, call: &str, ms: u64) -> Story {
        let mut story = Story::new();
        story.root(10, &["server"]);
        for tid in 11..11 + threads {
            story.thread(10, tid);
        }
        story
            .fork(10, 20)
            .after(ms)
            .signal(10, 20, 9)
            .slept(20, 20, ms, call)
            .killed(20, 9)
            .reaped(20);
        story
    }

    #[test]
    fn a_lock_that_nobody_will_release() {
        let story = stuck(1, "futex", 1_000);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert_eq!(
            found[0].text,
            "server (pid 20) waited for a lock (futex) for 1.0 s until SIGKILL ended it; server (pid 10) had 2 threads \
             when it made it, and a thread that held the lock then doesn't exist in the child"
        );
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&stuck(1, "futex", 300), RULE.id).len(), 1);
        assert_eq!(raised(&stuck(1, "futex", 299), RULE.id), []);
    }

    #[test]
    fn other_waits_and_single_threads_are_none() {
        assert_eq!(raised(&stuck(0, "futex", 1_000), RULE.id), []);
        assert_eq!(raised(&stuck(2, "clock_nanosleep", 1_000), RULE.id), []);
    }

    #[test]
    fn without_waits_it_is_not_assessed() {
        let mut story = stuck(0, "futex", 1_000);
        story.recording(|r| r.missing_hooks.push("sched_switch".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
