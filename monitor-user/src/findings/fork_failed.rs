//! `fork.failed`: a call of fork, vfork or clone failed.

use crate::findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found};

const EAGAIN: u32 = 11;
const ENOMEM: u32 = 12;

pub(super) const RULE: Rule = Rule {
    id: "fork.failed",
    severity: Severity::Error,
    title: "a process or thread could not be created",
    meaning: "The kernel refused a call of fork, vfork or clone. EAGAIN: a limit of processes and threads was reached, \
        of the user (ulimit -u), of the control group (pids.max) or of the host. ENOMEM: no memory, or strict \
        overcommit, which counts a large parent's private memory again for its child.",
    measured: "Negative results of the calls, counted by error, for each process.",
    advice: "for EAGAIN look at ulimit -u, pids.max and at who holds so many processes; for ENOMEM make the parent \
        smaller, use vfork or posix_spawn, or look at vm.overcommit_memory",
    wrong: "A program that tries again and succeeds is listed too.",
    needs: &[Need::FailedCalls],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    for process in &scene.tree.processes {
        let Some(failures) = &process.fork_failures else {
            found.unknown("failed calls of fork were not recorded");
            continue;
        };
        for (errno, n) in failures {
            let mut finding = Finding::new(&RULE, vec![process.key])
                .with("calls", Value::Count(*n, "call", "calls"))
                .with("errno", Value::Error(*errno))
                .with(
                    "live",
                    Value::Count(scene.tree.summary.max_live(), "process", "processes"),
                );
            finding = match *errno {
                EAGAIN => finding.advise("raise the limit that was reached: ulimit -u, the group's pids.max, kernel.threads-max".into()),
                ENOMEM => finding.advise("make the parent smaller before it forks, use posix_spawn, or look at vm.overcommit_memory".into()),
                _ => finding,
            };
            found.push(finding.say(scene, "{who}: {calls} of fork or clone failed with {errno}; the tree had up to {live} at once"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    #[test]
    fn refused_forks() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .fork_failed(20, EAGAIN)
            .fork_failed(20, EAGAIN)
            .exit(20, 5);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert_eq!(
            found[0].text,
            "sh (pid 20): 2 calls of fork or clone failed with EAGAIN; the tree had up to 2 processes at once"
        );
        assert!(found[0].advice.contains("ulimit -u"));
    }

    #[test]
    fn forks_that_work_are_none() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).exit(20, 0);
        assert_eq!(raised(&story, RULE.id), []);
        assert_eq!(unassessed(&story, RULE.id), None);
    }

    #[test]
    fn without_failed_calls_it_is_not_assessed() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .recording(|r| r.missing_hooks.push("sys_exit".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
