//! `fork.multithreaded`: a process with several threads made a copy of itself that went on without exec.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{grouped_by, keys, stayed_a_copy},
    },
    model::Process,
};

/// A thread that ends within this time, ns, was on its way out.
const LEAVING_NS: u64 = 5_000_000;

pub(super) const RULE: Rule = Rule {
    id: "fork.multithreaded",
    severity: Severity::Warning,
    title: "a process with several threads forked, and the child went on without exec",
    meaning: "Only the thread that calls fork exists in the child. A lock that another thread holds at that moment \
        stays locked in the child for ever: of the allocator, of logging, of BLAS or OpenMP, of the program itself. \
        Mostly nothing happens; sometimes, depending on the moment, the child hangs. POSIX allows such a child \
        nothing but async-signal-safe functions until it executes a program, and Python warns of it since 3.12.",
    measured: "The kernel's count of the creator's live threads at the fork (`signal->nr_threads`), for every child \
        that has its own copy of memory and never executed a program. A child of vfork or posix_spawn doesn't count, \
        nor does a thread that ended within 5 ms after the fork: it was on its way out.",
    advice: "start workers before threads, or by another method: \
        multiprocessing.set_start_method('spawn') or 'forkserver'; in C, exec right after fork, or posix_spawn",
    wrong: "A thread that has been joined and takes longer than that to leave is still counted. That a child could hang doesn't mean that it did: see fork.deadlock_suspected.",
    needs: &[Need::Forks, Need::Execs],
    told_by: &["fork.deadlock_suspected"],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let children = scene.tree.processes.iter().filter(|p| is_hit(scene, p));
    for (creator, children) in grouped_by(children, |p| p.created.creator) {
        let threads = children.iter().filter_map(|p| p.created.creator_threads);
        let threads = threads.max().unwrap_or(0);
        let first = children[0];
        let finding = Finding::new(&RULE, keys(&children))
            .with(
                "children",
                Value::Count(children.len() as u64, "child", "children"),
            )
            .with("threads", Value::Count(threads.into(), "thread", "threads"))
            .with("first_ns", Value::At(first.key.start_ns))
            .with_known("creator", creator.map(Value::Process));
        found.push(finding.say(
            scene,
            "[{creator}: ]forked {children} that went on without exec while it had up to {threads}, first {first_ns}: {who}",
        ));
    }
}

fn is_hit(scene: &Scene<'_>, process: &Process) -> bool {
    let threads = process.created.creator_threads;
    stayed_a_copy(process) && threads.is_some_and(|n| u64::from(n) > 1 + leaving(scene, process))
}

/// Threads of the creator that were on their way out when it made the process: whoever waited for them in their own
/// program goes on a little before they have left.
fn leaving(scene: &Scene<'_>, process: &Process) -> u64 {
    let fork_ns = process.key.start_ns;
    let creator = scene.creator(process);
    let threads = creator.and_then(|creator| creator.threads.as_ref());
    let ends = threads.into_iter().flatten().filter(|thread| {
        let end = thread.end_ns.unwrap_or(u64::MAX);
        thread.start_ns <= fork_ns && (fork_ns..=fork_ns + LEAVING_NS).contains(&end)
    });
    ends.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{findings::testkit::raised, model::testkit::Story};

    fn threaded() -> Story {
        let mut story = Story::new();
        story.root(10, &["server"]).thread(10, 11).thread(10, 12);
        story
    }

    #[test]
    fn a_copy_of_a_process_with_threads() {
        let mut story = threaded();
        story
            .after(5)
            .fork(10, 20)
            .after(1)
            .fork(10, 21)
            .after(9)
            .exit(20, 0)
            .exit(21, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subjects, [story.key(20), story.key(21)]);
        assert_eq!(
            found[0].text,
            "server (pid 10): forked 2 children that went on without exec while it had up to 3 threads, \
             first 5.0 ms after the start: 2 processes server (pids 20, 21)"
        );
        assert_eq!(found[0].doubt, None);
    }

    #[test]
    fn one_thread_exec_and_vfork_are_no_hazard() {
        let mut story = Story::new();
        story.root(10, &["server"]).fork(10, 19).thread(10, 11);
        story
            .fork(10, 20)
            .exec(20, &["ls"])
            .vfork(10, 21)
            .exit(21, 127);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn a_thread_on_its_way_out_does_not_count() {
        for (ms, expected) in [(5, 0), (6, 1)] {
            let mut story = Story::new();
            story.root(10, &["server"]).thread(10, 11).after(5);
            story.fork(10, 20).after(ms).thread_exit(10, 11).after(9);
            story.exit(20, 0).exit(10, 0);
            assert_eq!(raised(&story, RULE.id).len(), expected, "{ms} ms");
        }
        // Another one stays.
        let mut story = threaded();
        story
            .fork(10, 20)
            .after(1)
            .thread_exit(10, 11)
            .after(9)
            .exit(20, 0);
        assert_eq!(raised(&story, RULE.id).len(), 1);
    }

    #[test]
    fn the_threads_are_those_at_the_fork() {
        let mut story = threaded();
        story.thread_exit(10, 11).thread_exit(10, 12).fork(10, 20);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn lost_execs_are_said() {
        let mut story = threaded();
        story
            .fork(10, 20)
            .exec(20, &["ls"])
            .lost("exec")
            .exit(20, 0);
        let found = raised(&story, RULE.id);
        let doubts: Vec<_> = found.iter().filter_map(|f| f.doubt.as_deref()).collect();
        assert!(
            doubts.iter().all(|d| d.contains("of programs was lost")),
            "{found:?}"
        );
        let unassessed = crate::findings::testkit::unassessed(&story, RULE.id);
        assert!(!found.is_empty() || unassessed.is_some());
    }
}
