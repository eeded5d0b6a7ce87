//! Parents after the creator.

use super::*;

/// A daemon: its creator ends, and it lives on for so many ms.
fn daemon(ms: u64) -> Story {
    let mut story = Story::new();
    story.root(10, &["/bin/sh", "run"]).after(1).fork(10, 11);
    story.after(1).fork(11, 12).exec(12, &["/usr/bin/served"]);
    story.after(1).exit_to(11, 1).after(ms).exit(12, 0);
    story.exit(10, 0);
    story
}

#[test]
fn json_has_all_parents_the_creator_first() {
    let story = daemon(300);
    let value: serde_json::Value = serde_json::from_str(&json(&report(&story))).unwrap();
    let served = &value["processes"][2];
    let (created, middle) = (story.key(12).start_ns, story.key(11));
    assert_eq!(
        served["parents"],
        serde_json::json!([
            {"ns": created, "pid": 11, "start_ns": middle.start_ns},
            {"ns": created + 1_000_000, "pid": 1, "start_ns": null},
        ])
    );
    assert_eq!(
        value["processes"][1]["parents"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(value["processes"][0]["parents"], serde_json::json!([]));
}

#[test]
fn who_lives_on_is_listed_with_both() {
    let shown = text(&report(&daemon(300)), 80);
    let expected =
        "OTHER PARENTS\n      3.0 ms served (pid 12): to pid 1 from sh run (fork) (pid 11)\n\n";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn who_ends_soon_after_is_listed_only_with_all() {
    let report = report(&daemon(249));
    assert!(!text(&report, 80).contains("OTHER PARENTS"));
    let options = text::TextOptions {
        all: true,
        ..text::TextOptions::default()
    };
    assert!(text_with(&report, options).contains(": to pid 1 from "));
}
