//! Marked moments.

use super::*;

fn marked(count: u32) -> Story {
    let mut story = Story::new();
    story.root(10, &["/bin/sh", "run"]).after(1);
    for n in 0..count {
        story.rename(10, 10, &format!("@part {n}")).after(1);
    }
    story.exit(10, 0).after(300);
    story
}

#[test]
fn marks_are_listed_by_time_and_only_where_there_are_any() {
    let shown = text(&report(&marked(2)), 80);
    let first = "      1.0 ms part 0 (pid 10, sh run)\n      2.0 ms part 1 (pid 10, sh run)\n";
    assert!(shown.contains(&format!("MARKS\n{first}")), "{shown}");
    assert!(!text(&report(&marked(0)), 80).contains("MARKS"));
}

#[test]
fn of_many_marks_the_first_are_shown_unless_all_are_wanted() {
    let report = report(&marked(25));
    let shown = text(&report, 80);
    assert!(
        shown.contains("part 19 ") && !shown.contains("part 20 "),
        "{shown}"
    );
    assert!(
        shown.contains("  5 more marks: --all shows them\n"),
        "{shown}"
    );
    let options = text::TextOptions {
        all: true,
        ..text::TextOptions::default()
    };
    let all = text_with(&report, options);
    assert!(
        all.contains("part 24 ") && !all.contains("more marks"),
        "{all}"
    );
}

#[test]
fn json_has_time_and_text_of_each() {
    let value: serde_json::Value = serde_json::from_str(&json(&report(&marked(1)))).unwrap();
    let marks = &value["processes"][0]["marks"];
    assert_eq!(marks.as_array().map(Vec::len), Some(1));
    assert_eq!(marks[0]["text"], "part 0");
    assert!(marks[0]["ns"].as_u64().is_some());
}
