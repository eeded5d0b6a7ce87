//! `process.survivor`: a process lived on after the command had ended.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{grouped_by, keys},
    },
    model::{Ending, Process},
};

pub(super) const RULE: Rule = Rule {
    id: "process.survivor",
    severity: Severity::Warning,
    title: "a process lived on after the command had ended",
    meaning: "Whoever waits for the command believes that all is over. What it left goes on using memory and CPU, \
        may hold locks, ports and files, and in a batch job is killed without notice. A daemon is meant to do that; \
        workers, trackers and servers of a pool aren't.",
    measured: "Made before the command's process ended, and alive more than 250 ms after that: helpers that leave by \
        themselves when their pipe is closed take up to about 50 ms.",
    advice: "join or terminate what you start (a `with` block, Pool.close and join, executor.shutdown, `wait` in a \
        shell); if it is a daemon on purpose, stop it by its own command",
    wrong: "A recording that stops early can't tell whether the process would have ended soon.",
    needs: &[Need::Forks, Need::Ends],
    told_by: &["worker.orphaned", "worker.leftover"],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let open = scene
        .tree
        .processes
        .iter()
        .filter(|p| p.survived_root.is_none())
        .count();
    if open > 0 {
        found.unknown("of some processes it isn't known whether they outlived the command");
    }
    let survivors = scene
        .tree
        .processes
        .iter()
        .filter(|p| p.survived_root == Some(true));
    let root_end = scene.root().and_then(Process::end_ns);
    for (_, members) in grouped_by(survivors, |p| scene.name(p.key)) {
        let alive = members.iter().filter(|p| p.ending == Ending::Alive).count();
        let last = members.iter().filter_map(|p| p.end_ns()).max();
        let after = last
            .zip(root_end)
            .map(|(last, root)| last.saturating_sub(root));
        let rss = members
            .iter()
            .filter_map(|p| p.images.last()?.memory)
            .map(|m| m.peak.rss())
            .max();
        let mut finding = Finding::new(&RULE, keys(&members))
            .with_known("lived_on_ns", after.filter(|_| alive == 0).map(Value::Span))
            .with_known("peak_rss_bytes", rss.map(Value::Bytes));
        if alive > 0 {
            finding = finding.with("alive_at_end", Value::Count(alive as u64, "", ""));
        }
        if let Some(end) = root_end {
            finding = finding.at(end);
        }
        found.push(finding.say(
            scene,
            "{who} lived on after the command had ended[, for up to {lived_on_ns}]\
             [; {alive_at_end} still alive when the recording ended][; up to {peak_rss_bytes} of RSS each]",
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

    fn left_for(ms: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["sh", "x.sh"])
            .fork(10, 20)
            .exec(20, &["daemon"])
            .after(10)
            .exit(10, 0)
            .reaped(10);
        story.after(ms).exit(20, 0);
        story
    }

    #[test]
    fn what_lives_on() {
        let found = raised(&left_for(1_000), RULE.id);
        assert_eq!(
            found[0].text,
            "daemon (pid 20) lived on after the command had ended, for up to 1.0 s; up to 1.0 MiB of RSS each"
        );
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["daemon"])
            .after(10)
            .exit(10, 0)
            .reaped(10);
        story.after(400).still_there(20, false);
        let found = raised(&story, RULE.id);
        assert!(
            found[0]
                .text
                .contains("; 1 still alive when the recording ended"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&left_for(250), RULE.id), []);
        assert_eq!(raised(&left_for(251), RULE.id).len(), 1);
    }

    #[test]
    fn an_end_that_was_lost_leaves_it_open() {
        let mut story = left_for(1_000);
        story.lost("exit");
        assert_eq!(raised(&story, RULE.id), []);
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
