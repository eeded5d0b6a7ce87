//! `process.stopped`: a signal had stopped a process for a while.

use crate::findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found};

/// Stops of less than this are no matter, ns.
const LONG_NS: u64 = 100_000_000;

pub(super) const RULE: Rule = Rule {
    id: "process.stopped",
    severity: Severity::Warning,
    title: "a signal had stopped a process for a while",
    meaning: "SIGSTOP, Ctrl-Z (SIGTSTP) or a read from the terminal in the background (SIGTTIN) halts a process until \
        SIGCONT. It keeps its memory and its locks, and whoever waits for it waits too. Schedulers suspend jobs so.",
    measured: "Time that the first thread of the process spent stopped, at least 0.1 s in all.",
    advice: "find who stops it (a scheduler's suspension, job control, a terminal that a background job reads from)",
    wrong: "Time under a debugger isn't counted.",
    needs: &[Need::Waits],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    for process in &scene.tree.processes {
        let Some(ns) = process.stopped_ns.filter(|ns| *ns >= LONG_NS) else {
            continue;
        };
        let first = process
            .waits
            .iter()
            .find(|wait| wait.state == crate::event::WaitState::Stopped);
        let finding = Finding::new(&RULE, vec![process.key])
            .at(first.map_or(process.key.start_ns, |wait| wait.since_ns))
            .with("stopped_ns", Value::Span(ns))
            .with_known("since_ns", first.map(|wait| Value::At(wait.since_ns)));
        found.push(finding.say(
            scene,
            "{who} was stopped by a signal for {stopped_ns} in all[, from {since_ns}]",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    fn stopped(ms: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .after(ms + 50)
            .stopped(20, ms)
            .after(5)
            .exit(20, 0)
            .reaped(20);
        story
    }

    #[test]
    fn a_stop_with_its_length() {
        let found = raised(&stopped(1_500), RULE.id);
        assert_eq!(
            found[0].text,
            "sh (pid 20) was stopped by a signal for 1.5 s in all, from 50.0 ms after the start"
        );
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&stopped(100), RULE.id).len(), 1);
        assert_eq!(raised(&stopped(99), RULE.id), []);
    }

    #[test]
    fn without_waits_it_is_not_assessed() {
        let mut story = stopped(0);
        story.recording(|r| r.missing_hooks.push("sched_switch".into()));
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
