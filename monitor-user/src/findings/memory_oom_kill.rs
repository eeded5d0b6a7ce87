//! `memory.oom_kill`: the kernel killed for memory.

use crate::{
    event::{Oom, OomScope},
    findings::{Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found},
    model::Process,
};

pub(super) const RULE: Rule = Rule {
    id: "memory.oom_kill",
    severity: Severity::Error,
    title: "the kernel's OOM killer ended a process",
    meaning: "A control group had reached its limit, or the host had no memory left, and the kernel killed a process \
        to get some back. Its work is lost. Who is killed isn't always who used most of what ran out, and the \
        parent often shows nothing but a missing result.",
    measured: "The kernel's own choice (`oom:mark_victim`) of a process, or of another one in the same memory, that \
        then ended by SIGKILL.",
    advice: "ask for more memory, run fewer processes at once, or make them smaller; the highest charge is the figure \
        to ask for, not the sum of RSS",
    wrong: "A process that somebody else killed at the same moment counts as a victim.",
    needs: &[Need::Victims, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    for process in &scene.tree.processes {
        match process.killed_for_memory {
            Some(true) => found.push(finding(scene, process)),
            None if super::scene::signal(process) == Some(9) => {
                found.unknown("whether a process that was killed by SIGKILL was one of its victims is not known");
            }
            _ => {}
        }
    }
}

fn finding(scene: &Scene<'_>, process: &Process) -> Finding {
    let oom = process.oom.as_ref().map(|(_, oom)| oom);
    let memory = oom.and_then(|oom| oom.memory);
    let at = process.oom.as_ref().map(|(at, _)| *at).or(process.end_ns());
    let limit = oom.and_then(|oom| oom.limit);
    let cgroup = oom.and_then(|oom| oom.cgroup.clone());
    let finding = Finding::new(&RULE, vec![process.key])
        .with_known("at_ns", at.map(Value::At))
        .with_known("rss_bytes", memory.map(|m| Value::Bytes(m.rss())))
        .with_known("anon_bytes", memory.map(|m| Value::Bytes(m.anon)))
        .with_known("limit_bytes", limit.map(Value::Bytes))
        .with_known("cgroup", cgroup.map(|name| Value::Text(name.into_bytes())));
    let finding = match at {
        Some(at) => finding.at(at),
        None => finding,
    };
    let cause = cause(oom);
    finding.say(
        scene,
        &format!("{{who}} was killed by the OOM killer[ {{at_ns}}][ with {{rss_bytes}} of RSS, {{anon_bytes}} of it anonymous]: {cause}"),
    )
}

/// What had run out, as a part of a template.
fn cause(oom: Option<&Oom>) -> &'static str {
    match oom.map(|oom| (oom.scope, oom.cgroup.is_some())) {
        Some((Some(OomScope::Cgroup), true)) => {
            "control group {cgroup} had reached its limit[ of {limit_bytes}]"
        }
        Some((Some(OomScope::Cgroup), false)) => {
            "a control group had reached its limit[ of {limit_bytes}]"
        }
        Some((Some(OomScope::Host), _)) => "the host had no memory left",
        _ => "what had run out is not known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::Memory,
        findings::testkit::{raised, unassessed},
        model::testkit::{MIB, Story},
    };

    fn victim() -> Story {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["big"])
            .after(1_000);
        let oom = Oom {
            memory: Some(Memory {
                anon: 190 * MIB,
                file: MIB,
                ..Memory::default()
            }),
            scope: Some(OomScope::Cgroup),
            cgroup: Some("job_7".into()),
            limit: Some(200 * MIB),
            ..Oom::default()
        };
        story.oom(20, oom);
        story
    }

    #[test]
    fn a_victim_with_what_it_had() {
        let mut story = victim();
        story.killed(20, 9).reaped(20).exit(10, 1);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert_eq!(
            found[0].text,
            "big (pid 20) was killed by the OOM killer 1.0 s after the start with 191 MiB of RSS, 190 MiB of it \
             anonymous: control group job_7 had reached its limit of 200 MiB"
        );
    }

    #[test]
    fn somebody_elses_kill_is_none() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).killed(20, 9);
        story.recording(|r| r.abi_version = 99);
        assert_eq!(raised(&story, RULE.id), []);
        assert_eq!(unassessed(&story, RULE.id), None);
        // A victim that ended by itself before the signal came.
        let mut story = victim();
        story.exit(20, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_the_hook_it_is_not_assessed() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).killed(20, 9);
        story.recording(|r| r.missing_hooks.push("mark_victim".into()));
        assert_eq!(raised(&story, RULE.id), []);
        assert!(
            unassessed(&story, RULE.id)
                .unwrap()
                .contains("hook mark_victim")
        );
    }
}
