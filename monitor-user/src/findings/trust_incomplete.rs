//! `trust.incomplete`: something is missing from the recording.

use crate::findings::{Finding, Rule, Scene, Severity, Value, rule::Found};

pub(super) const RULE: Rule = Rule {
    id: "trust.incomplete",
    severity: Severity::Warning,
    title: "the recording isn't complete",
    meaning: "Events were lost or not recorded, the file was cut short, or events don't fit together. What rests on \
        them is \"not known\" in the report, and findings that could be wrong because of it say so.",
    measured: "Counts of lost records and of skipped runs of BPF programs, hooks that were missing, the file's end, and \
        processes, programs and memory without the event that must have made them.",
    advice: "record again with a larger --buffer, or without what else keeps the CPUs busy; `rtrace doctor` says \
        which hooks this host has",
    wrong: "It may be about events that nobody asked for.",
    needs: &[],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let trust = &scene.tree.trust;
    if trust.complete {
        return;
    }
    let first = trust
        .notes
        .first()
        .map(|note| note.trim_end_matches('.').to_owned().into_bytes());
    let more = trust.notes.len().saturating_sub(1) as u64;
    let mut finding = Finding::new(&RULE, Vec::new())
        .with("events", Value::Count(trust.events, "event", "events"))
        .with_known("first_note", first.map(Value::Text));
    if trust.lost_events > 0 {
        finding = finding.with("lost", Value::Count(trust.lost_events, "", ""));
    }
    if more > 0 {
        finding = finding.with("more", Value::Count(more, "more note", "more notes"));
    }
    found.push(finding.say(
        scene,
        "beside {events}[, {lost} are missing]; the report says what is not known[: {first_note}][ ({more} under TRUST)]",
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{findings::testkit::raised, model::testkit::Story};

    #[test]
    fn losses_are_said() {
        let mut story = Story::new();
        story
            .root(10, &["make"])
            .fork(10, 20)
            .after(1)
            .exit(20, 0)
            .lost("exit")
            .reaped(20)
            .exit(10, 0);
        let found = raised(&story, RULE.id);
        assert!(
            found[0].text.contains(", 1 are missing; "),
            "{}",
            found[0].text
        );
        assert!(
            found[0].text.contains("1 record was lost on the way"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn a_whole_recording_is_quiet() {
        let mut story = Story::new();
        story.root(10, &["make"]).exit(10, 0).reaped(10);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn a_file_that_was_cut_short() {
        let mut story = Story::new();
        story.root(10, &["make"]).recording(|r| r.cut_short = true);
        assert!(raised(&story, RULE.id)[0].text.contains("cut short"));
    }
}
