//! `process.killed`: a signal ended a process.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{by_creator, grouped_by, keys, signal},
    },
    model::Process,
};

const SIGINT: u32 = 2;
const SIGKILL: u32 = 9;
const SIGPIPE: u32 = 13;
const SIGALRM: u32 = 14;
const SIGTERM: u32 = 15;
const SIGHUP: u32 = 1;
const SIGUSR1: u32 = 10;
const SIGUSR2: u32 = 12;

pub(super) const RULE: Rule = Rule {
    id: "process.killed",
    severity: Severity::Warning,
    title: "a signal ended a process",
    meaning: "The process didn't end by itself. A fault (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS) is a defect \
        of the program or of what it was given: an error. SIGKILL leaves no chance to clean up: a warning. \
        SIGTERM, SIGINT, SIGHUP and SIGPIPE are how programs are told to stop: information, and so is any death \
        that the process's own creator had asked for.",
    measured: "The status that `wait` gives, and where signals are recorded who sent the last deadly one.",
    advice: "read what the program said last; a core or a debugger shows where a fault was; for SIGKILL look for \
        a limit (memory, CPU time), a scheduler or a watchdog",
    wrong: "Programs that end themselves by a signal on purpose, as shells do after Ctrl-C, are listed too.",
    needs: &[Need::Ends],
    told_by: &[
        "memory.oom_kill",
        "worker.killed",
        "fork.deadlock_suspected",
    ],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let killed = scene.tree.processes.iter().filter(|p| signal(p).is_some());
    let by = |p: &Process| p.sender.as_ref().map(|sender| sender.process);
    for ((_, of, severity, sender), members) in grouped_by(killed, |p| {
        (scene.name(p.key), signal(p), severity(p), by(p))
    }) {
        let Some(of) = of else { continue };
        let last = members.iter().filter_map(|p| p.end_ns()).min();
        let mut finding = Finding::new(&RULE, keys(&members))
            .severity(severity)
            .with("signal", Value::Signal(of))
            .with_known("first_ns", last.map(Value::At));
        finding = match sender {
            Some(Some(key)) if keys(&members) == [key] => {
                finding.with("sender", Value::Word("itself"))
            }
            Some(Some(key)) => finding.with("sender", Value::Process(key)),
            Some(None) => finding.with("sender", Value::Word("the kernel")),
            None => finding,
        };
        if let Some(at) = last {
            finding = finding.at(at);
        }
        found.push(finding.say(
            scene,
            "{who} {was} killed by {signal}[ from {sender}][, {first_ns}]",
        ));
    }
}

/// How bad such a death is.
fn severity(process: &Process) -> Severity {
    match signal(process) {
        // From 32 on they are real-time signals, which mean what the program wants them to.
        Some(SIGINT | SIGPIPE | SIGALRM | SIGTERM | SIGHUP | SIGUSR1 | SIGUSR2 | 32..) => {
            Severity::Info
        }
        Some(SIGKILL) if by_creator(process) == Some(true) => Severity::Info,
        Some(SIGKILL) => Severity::Warning,
        _ => Severity::Error,
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
    fn severity_goes_by_the_signal() {
        for (with, expected) in [
            (11, Severity::Error),
            (6, Severity::Error),
            (9, Severity::Warning),
            (15, Severity::Info),
            (13, Severity::Info),
            (40, Severity::Info),
        ] {
            let mut story = Story::new();
            story
                .root(10, &["sh"])
                .fork(10, 20)
                .exec(20, &["a"])
                .after(2)
                .killed(20, with)
                .exit(10, 0);
            let found = raised(&story, RULE.id);
            assert_eq!(found.len(), 1);
            assert_eq!(
                (found[0].severity, found[0].subjects[0]),
                (expected, story.key(20))
            );
        }
    }

    #[test]
    fn equal_deaths_are_one_finding() {
        let mut story = Story::new();
        story.root(10, &["sh"]);
        for pid in 20..26 {
            story.fork(10, pid).exec(pid, &["a"]);
        }
        story.after(3);
        for pid in 20..26 {
            story.killed(pid, 9);
        }
        let found = raised(&story, RULE.id);
        assert_eq!(
            found[0].text,
            "6 processes a (pids 20, 21, 22, 23 and 2 more) were killed by SIGKILL, 3.0 ms after the start"
        );
    }

    #[test]
    fn who_sent_it_is_said() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["a"])
            .fork(10, 21)
            .exec(21, &["b"])
            .after(2);
        story
            .signal(20, 21, 9)
            .killed(21, 9)
            .signal(10, 20, 9)
            .killed(20, 9)
            .exit(10, 0);
        let found = raised(&story, RULE.id);
        let said: Vec<_> = found
            .iter()
            .map(|f| (f.severity, f.text.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                (
                    Severity::Warning,
                    "b (pid 21) was killed by SIGKILL from a (pid 20), 2.0 ms after the start"
                ),
                (
                    Severity::Info,
                    "a (pid 20) was killed by SIGKILL from sh (pid 10), 2.0 ms after the start"
                ),
            ]
        );
    }

    #[test]
    fn codes_are_no_signals() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exit(20, 137)
            .exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_ends_it_is_not_assessed() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .killed(20, 9)
            .lost("exit")
            .reaped(20);
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
