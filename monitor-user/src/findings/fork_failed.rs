//! `fork.failed`: a call of fork, vfork or clone failed.

use crate::{
    event::{ForkFailed, RefusedBy},
    findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found},
};

const EAGAIN: u32 = 11;
const ENOMEM: u32 = 12;

pub(super) const RULE: Rule = Rule {
    id: "fork.failed",
    severity: Severity::Error,
    title: "a process or thread could not be created",
    meaning: "The kernel refused a call of fork, vfork or clone. EAGAIN: a limit of processes and threads was reached, \
        of the user (ulimit -u), of the control group (pids.max) or of the host. ENOMEM: no memory, or strict \
        overcommit, which counts a large parent's private memory again for its child; or the first process of the pid \
        namespace that children come into has ended.",
    measured: "Negative results of the calls, counted by error and by what refused them, for each process. What refused \
        a call is named if it had no room at the call's end. Where nothing of that is seen to be full, it isn't known: \
        the host's threads-max and want of memory can't be seen.",
    advice: "for EAGAIN look at ulimit -u, pids.max and at who holds so many processes; for ENOMEM make the parent \
        smaller, use vfork or posix_spawn, or look at vm.overcommit_memory",
    wrong: "A program that tries again and succeeds is listed too. If others made processes at the same moment, a limit \
        may have been reached just after the call had failed for something else.",
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
        for (failed, calls) in failures {
            let finding = Finding::new(&RULE, vec![process.key])
                .with("calls", Value::Count(*calls, "call", "calls"))
                .with("errno", Value::Error(failed.errno))
                .with_known("by", failed.refused_by.map(|by| Value::Word(by.name())))
                .with_known(
                    "limit",
                    failed.limit.map(|limit| Value::Count(limit, "", "")),
                )
                .with_known(
                    "cgroup",
                    failed
                        .cgroup
                        .clone()
                        .map(|name| Value::Text(name.into_bytes())),
                )
                .with(
                    "live",
                    Value::Count(scene.tree.summary.max_live(), "process", "processes"),
                );
            let finding = match advice(failed) {
                Some(advice) => finding.advise(advice.into()),
                None => finding,
            };
            let text = format!(
                "{{who}}: {{calls}} of fork or clone failed with {{errno}}{}; the tree had up to {{live}} at once",
                cause(failed)
            );
            found.push(finding.say(scene, &text));
        }
    }
}

/// What refused the calls, as a part of a template.
fn cause(failed: &ForkFailed) -> &'static str {
    match failed.refused_by {
        Some(RefusedBy::UserLimit) => {
            ", since the user had as many processes and threads as the process was allowed[ ({limit})]"
        }
        Some(RefusedBy::PidNumbers) => {
            ", since all numbers of the pid namespace were in use[ (pid_max is {limit})]"
        }
        Some(RefusedBy::Cgroup) if failed.cgroup.is_none() => {
            ", since a control group had as many processes and threads as it was allowed[ ({limit})]"
        }
        Some(RefusedBy::Cgroup) => {
            ", since control group {cgroup} had as many processes and threads as it was allowed[ ({limit})]"
        }
        Some(RefusedBy::EndedNamespace) => {
            ", since the first process of the pid namespace for its children had ended"
        }
        None => "",
    }
}

fn advice(failed: &ForkFailed) -> Option<&'static str> {
    Some(match (failed.refused_by, failed.errno) {
        (Some(RefusedBy::UserLimit), _) => {
            "raise ulimit -u, or look at who of this user holds so many processes and threads"
        }
        (Some(RefusedBy::PidNumbers), _) => {
            "raise kernel.pid_max in that pid namespace, or look at who holds so many processes and threads"
        }
        (Some(RefusedBy::Cgroup), _) => {
            "raise the group's pids.max (a container's --pids-limit, systemd's TasksMax), or start fewer threads"
        }
        (Some(RefusedBy::EndedNamespace), _) => {
            "keep the first process of the namespace alive, as unshare --fork does, or make a new namespace"
        }
        (None, EAGAIN) => {
            "raise the limit that was reached: ulimit -u, the group's pids.max, kernel.threads-max"
        }
        (None, ENOMEM) => {
            "make the parent smaller before it forks, use posix_spawn, or look at vm.overcommit_memory"
        }
        (None, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    fn text_of(by: RefusedBy, limit: u64, cgroup: Option<&str>) -> String {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork_refused(10, by, limit, cgroup)
            .exit(10, 5);
        let found = raised(&story, RULE.id);
        assert_eq!(found.len(), 1);
        found[0].text.clone()
    }

    #[test]
    fn what_refused_them_is_said() {
        let user = text_of(RefusedBy::UserLimit, 64, None);
        assert!(user.contains("failed with EAGAIN, since the user had as many processes and threads as the process was allowed (64); the tree"), "{user}");
        let group = text_of(RefusedBy::Cgroup, 12, Some("job_7"));
        assert!(group.contains(", since control group job_7 had as many processes and threads as it was allowed (12); "), "{group}");
        let nameless = text_of(RefusedBy::Cgroup, 12, None);
        assert!(
            nameless.contains(", since a control group had as many"),
            "{nameless}"
        );
        let numbers = text_of(RefusedBy::PidNumbers, 301, None);
        assert!(
            numbers.contains("were in use (pid_max is 301); "),
            "{numbers}"
        );
    }

    #[test]
    fn what_is_not_known_is_told_apart_and_not_blamed() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork_refused(10, RefusedBy::UserLimit, 64, None)
            .fork_failed(10, EAGAIN)
            .exit(10, 5);
        let found = raised(&story, RULE.id);
        let since = found.iter().filter(|f| f.text.contains(", since ")).count();
        assert_eq!((found.len(), since), (2, 1));
    }

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
