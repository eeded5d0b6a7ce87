//! `exec.failed`: a process tried to become a program and never did.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{grouped_by, keys},
    },
    model::{ExecFailure, How, Process},
};

pub(super) const RULE: Rule = Rule {
    id: "exec.failed",
    severity: Severity::Warning,
    title: "all attempts of a process to execute a program failed",
    meaning: "The program isn't there (ENOENT; for a script also if its interpreter isn't), may not be executed \
        (EACCES), is no program (ENOEXEC), or has too many arguments (E2BIG). What was to be done wasn't, and often all \
        that shows is exit code 127 or 126 of a process that nobody asks.",
    measured: "Failed calls of execve and execveat with their error, of processes that executed nothing after them. A \
        search through PATH that succeeds in the end is none.",
    advice: "check the name, PATH, the first line of the script and its rights, as the user and in the folder in which \
        the command ran",
    wrong: "A program that tries whether another one is there, and can do without, is listed too.",
    needs: &[Need::FailedCalls, Need::Execs],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    if scene
        .tree
        .processes
        .iter()
        .any(|p| p.exec_failures.is_none())
    {
        found.unknown("failed calls of exec were not recorded");
    }
    let failed = scene
        .tree
        .processes
        .iter()
        .filter(|p| last_failure(p).is_some());
    let what = |p: &Process| last_failure(p).map(|f| (f.errno, f.filename.clone()));
    for (of, members) in grouped_by(failed, |p| (p.created.creator, what(p))) {
        let Some((errno, filename)) = of.1 else {
            continue;
        };
        let first = last_failure(members[0]).map_or(0, |failure| failure.time_ns);
        let tries = members[0].failed_execs.unwrap_or(1);
        let finding = Finding::new(&RULE, keys(&members))
            .at(first)
            .with("errno", Value::Error(errno))
            .with("tries", Value::Count(tries, "call", "calls"))
            .with("first_ns", Value::At(first))
            .with(
                "filename",
                Value::Text(if filename.is_empty() {
                    b"a program".to_vec()
                } else {
                    filename
                }),
            );
        found.push(finding.say(
            scene,
            "{who} could not execute {filename}: {errno} after {tries} of exec, {first_ns}",
        ));
    }
}

/// The last failed exec, if no program was executed after it.
fn last_failure(process: &Process) -> Option<&ExecFailure> {
    let last = process.exec_failures.as_ref()?.last()?;
    let executed = process.images.iter().filter(|image| image.how == How::Exec);
    let is_last = executed
        .filter_map(|image| image.start_ns)
        .all(|start| start < last.time_ns);
    is_last.then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    #[test]
    fn a_program_that_is_not_there() {
        let mut story = Story::new();
        story.root(10, &["sh"]).vfork(10, 20).after(1);
        story
            .exec_failed(20, 2, "/bin/nothing")
            .exec_failed(20, 2, "/usr/bin/nothing")
            .exit(20, 127);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert_eq!(
            found[0].text,
            "sh (pid 20) could not execute /usr/bin/nothing: ENOENT after 2 calls of exec, 1.0 ms after the start"
        );
    }

    #[test]
    fn a_search_that_succeeds_is_none() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).after(1);
        story
            .exec_failed(20, 2, "/bin/ls")
            .after(1)
            .exec(20, &["/usr/bin/ls"])
            .exit(20, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_failed_calls_it_is_not_assessed() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).exit(20, 127);
        story.recording(|r| r.missing_hooks.push("sys_exit".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
