//! `process.core_dumped`: a core was written.

use crate::findings::{
    Finding, Rule, Scene, Severity, Value,
    needs::Need,
    rule::Found,
    scene::{grouped_by, keys, signal},
};

/// Bit of a wait status that says so.
const CORE: u32 = 0x80;

pub(super) const RULE: Rule = Rule {
    id: "process.core_dumped",
    severity: Severity::Warning,
    title: "a process died and its core was written",
    meaning: "The kernel wrote the memory of a dying process to a file or to a crash handler. Writing a large core \
        takes long and much room, and the parent waits meanwhile.",
    measured: "The core bit of the status that `wait` gives.",
    advice: "find the core by `cat /proc/sys/kernel/core_pattern` or `coredumpctl`, and read it: gdb PROGRAM CORE",
    wrong: "The kernel sets the bit when it has begun a dump; the file may be cut by a limit or a full disk.",
    needs: &[Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let dumped = scene
        .tree
        .processes
        .iter()
        .filter(|p| p.status.is_some_and(|s| s & CORE != 0));
    for (of, members) in grouped_by(dumped, |p| (scene.name(p.key), signal(p))) {
        let rss = members
            .iter()
            .filter_map(|p| p.images.last()?.memory?.end_rss)
            .max();
        let finding = Finding::new(&RULE, keys(&members))
            .with_known("signal", of.1.map(Value::Signal))
            .with_known("rss_bytes", rss.map(Value::Bytes));
        found.push(finding.say(
            scene,
            "a core was written of {who}[, killed by {signal}][, with {rss_bytes} of RSS]",
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

    #[test]
    fn only_those_with_a_core() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["a"])
            .memory(20, 4)
            .fork(10, 21);
        story.end(20, 20, 6 | CORE).end(21, 21, 11).exit(10, 3);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert_eq!(
            found[0].text,
            "a core was written of a (pid 20), killed by SIGABRT, with 5.0 MiB of RSS"
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_death_without_a_core_is_none() {
        let mut story = Story::new();
        story.root(10, &["sh"]).fork(10, 20).end(20, 20, 6);
        story.reaped(20).exit(10, 3);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_ends_it_is_not_assessed() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .end(20, 20, 6 | CORE)
            .lost("exit")
            .reaped(20);
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
