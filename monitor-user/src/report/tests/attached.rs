//! Recordings without a command.

use super::*;
use crate::event::{Container, RecordedGroup};
use crate::model::{Summary, testkit::START};

fn attached() -> Story {
    let mut story = Story::new();
    story.found(1, 10, &["/usr/bin/python3", "pool.py"]);
    story.found(10, 11, &[]).after(1).fork(10, 12).after(1);
    story.exit(12, 0).after(1);
    story.still_there(10, false).still_there(11, false);
    story.recording(|recording| {
        recording.attached_pids = vec![10, 99];
        recording.attached_ns = Some(START);
        recording.exit_status = None;
    });
    story
}

#[test]
fn the_head_says_what_was_recorded_instead_of_a_command() {
    let report = report(&attached());
    let text = text(&report, 80);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("processes 10, 99 with all descendants"));
    assert_eq!(
        lines.next(),
        Some("  recorded for 3.0 ms, 2 are still alive")
    );
    assert_eq!(lines.next(), Some("  3 processes (3 at once)"));
    // Who was found carries the program of whom it descends from.
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("pool.py"))
        .collect();
    assert!(rows.len() >= 3, "{text}");
    assert!(
        text.contains("2 processes were there before the recording began"),
        "{text}"
    );
}

#[test]
fn json_tells_who_was_there() {
    let value: serde_json::Value = serde_json::from_str(&json(&report(&attached()))).unwrap();
    assert_eq!(value["root"], serde_json::Value::Null);
    assert_eq!(
        value["recording"]["attached_pids"],
        serde_json::json!([10, 99])
    );
    assert_eq!(value["recording"]["attached_ns"], START);
    let process = |at: usize| &value["processes"][at];
    assert_eq!(process(0)["created_by"], serde_json::Value::Null);
    assert_eq!(process(0)["found_ns"], START);
    assert_eq!(process(1)["creator"]["pid"], 10);
    assert_eq!(process(1)["creator_from"], "parent_at_start");
    assert_eq!(process(2)["created_by"], "fork");
    assert_eq!(process(2).get("found_ns"), None);
}

#[test]
fn the_last_lines_speak_of_no_command() {
    let story = attached();
    let mut summary = Summary::new();
    for event in story.events() {
        summary.push(event);
    }
    let lines = closing_lines(&summary, &story.recorded(), "t", 80);
    assert!(
        lines.contains(&"time:      3.0 ms, no command".to_owned()),
        "{lines:?}"
    );
    let alive = lines.iter().find(|line| line.starts_with("alive:"));
    assert_eq!(
        alive.unwrap(),
        "alive:     python3 pool.py (pid 10), forked (pid 11)"
    );
}

fn in_a_group(story: &mut Story, group: RecordedGroup) {
    story.recording(|recording| {
        recording.attached_pids = Vec::new();
        recording.attached_ns = Some(START);
        recording.exit_status = None;
        recording.group = Some(group);
    });
}

#[test]
fn a_control_group_is_named_with_its_hierarchy() {
    let mut story = attached();
    let group = RecordedGroup {
        wanted: "4:memory:/a".to_owned(),
        path: Some("/a".to_owned()),
        hierarchy: Some("version 1, memory".to_owned()),
        first_ns: Some(START),
        container: None,
    };
    in_a_group(&mut story, group);
    let report = report(&story);
    let text = text(&report, 80);
    assert!(
        text.starts_with(
            "control group /a (version 1, memory)\n  recorded for 3.0 ms, 2 are still alive\n"
        ),
        "{text}"
    );
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    assert_eq!(value["recording"]["group"]["path"], "/a");
    assert_eq!(value["recording"]["group"]["first_ns"], START);
}

#[test]
fn a_control_group_that_never_had_a_process_is_waited_for_and_told() {
    let mut group = RecordedGroup {
        wanted: "/a\n".to_owned(),
        ..RecordedGroup::default()
    };
    let mut recording = crate::event::Recording {
        group: Some(group.clone()),
        ..Default::default()
    };
    let line = crate::report::expected_line(&recording).unwrap();
    assert!(
        line.starts_with("waiting for control group /a\\n to be made"),
        "{line}"
    );
    group.path = Some("/a".to_owned());
    recording.group = Some(group.clone());
    let line = crate::report::expected_line(&recording).unwrap();
    assert!(
        line.starts_with("waiting for the first process in control group /a"),
        "{line}"
    );
    let mut story = Story::new();
    in_a_group(&mut story, group.clone());
    let text = text(&report(&story), 80);
    assert!(
        text.contains("nobody was in it while it was recorded"),
        "{text}"
    );
    group.first_ns = Some(1);
    recording.group = Some(group);
    assert_eq!(crate::report::expected_line(&recording), None);
    recording.group = None;
    assert_eq!(crate::report::expected_line(&recording), None);
}

#[test]
fn a_container_is_named_beside_its_group() {
    let container = Container {
        id: Some("0123456789abcdef".repeat(4)),
        name: Some("app".to_owned()),
        runtime: Some("containerd".to_owned()),
        pod: Some("web-1".to_owned()),
        pod_id: Some("11-22".to_owned()),
        namespace: Some("shop".to_owned()),
    };
    let mut group = RecordedGroup {
        wanted: "web-1/app".to_owned(),
        container: Some(container),
        ..RecordedGroup::default()
    };
    assert_eq!(
        crate::report::awaited_line(&group).unwrap(),
        "waiting for container app of pod shop/web-1 (containerd, 0123456789ab) to be started (Ctrl-C stops waiting)"
    );
    group.path = Some("/kubepods/pod11-22/0".to_owned());
    group.hierarchy = Some("version 2".to_owned());
    group.first_ns = Some(START);
    assert_eq!(crate::report::awaited_line(&group), None);
    let mut story = attached();
    in_a_group(&mut story, group);
    let report = report(&story);
    let text = text(&report, 80);
    assert!(
        text.starts_with(
            "container app of pod shop/web-1 (containerd, 0123456789ab)\n  \
             control group /kubepods/pod11-22/0 (version 2)\n  recorded for 3.0 ms"
        ),
        "{text}"
    );
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let told = &value["recording"]["group"]["container"];
    assert_eq!(told["name"], "app");
    assert_eq!(
        (&told["pod"], &told["namespace"]),
        (&"web-1".into(), &"shop".into())
    );
    assert_eq!(told["pod_id"], "11-22");
}
