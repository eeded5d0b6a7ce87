//! The recorder's last lines.

use super::*;
use crate::{
    event::{Difference, Verification},
    model::Summary,
};

fn lines(story: &Story, trace: &str) -> Vec<String> {
    let mut summary = Summary::new();
    for event in story.events() {
        summary.push(event);
    }
    closing_lines(&summary, &story.recorded(), trace, 80)
}

#[test]
fn six_lines() {
    let lines = lines(&pipeline(), "trace.parquet");
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|l| escape::width(l) <= 80));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_was_checked_is_said_in_full() {
    let mut story = pipeline();
    let difference = Difference {
        pid: 4242,
        quantity: "anon".to_owned(),
        time_ns: story.recorded().start_ns + 2_000_000,
        recorded_bytes: 8192,
        proc_bytes: 12288,
        ..Difference::default()
    };
    story.recording(|r| {
        r.verification = Some(Verification {
            points: 3,
            largest: Some(difference.clone()),
            beyond: 1,
            shown: vec![difference],
            ..Verification::default()
        });
    });
    let lines = lines(&story, "trace.parquet");
    assert_eq!(lines.len(), 8);
    assert_eq!(
        lines[5..7],
        [
            "checked:   against /proc at 3 quiet points (0 values): 1 value differs by more than it may.",
            "           pid 4242, anon, 2.0 ms after the start: recorded 8,192 bytes, /proc/4242/status says 12,288; \
             they may differ by 0.",
        ]
    );
    // The report says the same, and JSON has it all.
    let report = report(&story);
    let text = text(&report, 80).replace("\n    ", " ");
    assert!(
        text.contains("recorded 8,192 bytes, /proc/4242/status says 12,288"),
        "{text}"
    );
    assert!(json(&report).contains("\"beyond\": 1"));
}

#[test]
fn losses_are_said() {
    let mut story = Story::new();
    story.root(10, &["x"]).after(1).fork(10, 11).lost("fork");
    story.recording(|r| r.full_maps = [("spaces".into(), 2)].into());
    let lines = lines(&story, "a b.parquet");
    // Memory isn't known, so nothing is asked for but what was seen of it.
    let at = lines
        .iter()
        .position(|line| line.starts_with("trust:"))
        .unwrap();
    assert_eq!(
        lines[at],
        "trust:     NOT complete: 1 event lost, 2 entries found no room"
    );
    assert_eq!(lines[at + 1], "next:      rtrace report 'a b.parquet'");
}

#[test]
fn the_next_command_can_be_typed() {
    let next = |trace| lines(&Story::new(), trace)[4].clone();
    assert_eq!(next("-o"), "next:      rtrace report ./-o");
    assert_eq!(next("it's"), "next:      rtrace report 'it'\\''s'");
    assert_eq!(next("a\nb'"), "next:      rtrace report $'a\\nb\\''");
    assert_eq!(next("x\\y"), "next:      rtrace report 'x\\y'");
}

#[test]
fn nothing_seen_is_said() {
    let lines = lines(&Story::new(), "t");
    assert_eq!(lines[0], "memory:    not known, no event of memory came");
    assert!(lines[1].ends_with("how the command ended is not known"));
}

#[test]
fn skipped_runs_that_hide_no_event_are_no_gap() {
    let trust = |hook: &str| {
        let mut story = pipeline();
        story.recording(|r| r.recursion_misses = [(hook.into(), 2)].into());
        let lines = lines(&story, "t");
        lines
            .into_iter()
            .find(|line| line.starts_with("trust:"))
            .unwrap()
    };
    assert!(trust("rss_stat").contains("nothing lost"));
    assert!(trust("page_fault_user").contains("nothing lost"));
    let lost = trust("sched_process_exit");
    assert_eq!(lost, "trust:     NOT complete: 2 runs of hooks skipped");
}
