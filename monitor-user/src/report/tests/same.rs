//! Text and JSON say the same.

use super::*;
use crate::units::Bytes;

#[test]
fn totals_agree() {
    for story in [
        pipeline(),
        Story::new().root(10, &["x"]).after(1).exit(10, 9).clone(),
    ] {
        let report = report(&story);
        let (text, json) = (text(&report, 120), json(&report));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let tree = |key: &str| value["tree"][key].as_u64().unwrap();
        let says = |words: String| assert!(text.contains(&words), "no '{words}' in:\n{text}");
        says(format!("{} process", tree("processes")));
        if tree("threads_created") > 0 {
            says(format!("and {} more threads", tree("threads_created")));
        }
        let sum = Bytes(tree("peak_rss_sum_bytes"));
        says(format!(
            "{sum} ± {}",
            Bytes(tree("peak_rss_sum_bound_bytes"))
        ));
        says(format!("highest sum of RSS      {sum}"));
        says(format!(
            "highest sum of VMS      {}",
            Bytes(tree("peak_vms_sum_bytes"))
        ));
        let code = value["recording"]["exit"]["code"].as_u64().unwrap();
        says(format!("ended with exit code {code}"));
        let events = value["trust"]["events"].as_u64().unwrap();
        says(format!(
            "nothing was lost ({} events)",
            words::grouped(events)
        ));
        assert_eq!(
            value["processes"].as_array().unwrap().len() as u64,
            tree("processes")
        );
    }
}

#[test]
fn an_unknown_process_has_no_start() {
    let mut story = Story::new();
    story
        .root(10, &["x"])
        .after(1)
        .fork(10, 11)
        .reparent(11, 1)
        .exit(11, 0)
        .exit(10, 0);
    let value: serde_json::Value = serde_json::from_str(&json(&report(&story))).unwrap();
    let child = &value["processes"][1];
    assert_eq!(
        child["final_parent"],
        serde_json::json!({"pid": 1, "start_ns": null})
    );
    assert_eq!(child["creator"]["pid"], 10);
    assert_eq!(child["alive_at_end"], false);
    assert!(child.get("creator_from").is_none());
}

#[test]
fn a_peak_that_rests_on_rows_has_a_wider_bound() {
    let mut story = Story::new();
    story
        .root(10, &["x"])
        .memory(10, 9)
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(11, 0);
    let report = report(story.still_there(10, false));
    let bound = |n: usize| report.processes[n].images[0].peak_rss_bound_bytes;
    assert_eq!(bound(1), Some(3 * (256 << 10)));
    assert_eq!(bound(0), Some(3 * ((256 << 10) + (64 << 10))));
    assert_eq!(
        report.tree.peak_rss_sum_bound_bytes,
        Some(2 * 3 * (320 << 10))
    );
}

#[test]
fn a_sum_of_which_looks_were_skipped_may_have_been_higher_by_the_resolution() {
    let bound = |skips: bool| {
        let mut story = Story::new();
        story.root(10, &["x"]).memory(10, 99).after(1).exit(10, 0);
        story.recording(|r| {
            r.rss_bound_bytes = 0;
            r.skips_looks = skips;
            r.resolution_share = 256;
            r.peak_rss_sum_bytes = Some(512 << 20);
            r.peak_rss_sum_ns = Some(1);
        });
        report(&story).tree.peak_rss_sum_bound_bytes
    };
    assert_eq!(bound(false), Some(0));
    // Of the one address space that there was at a time, and a 256th of the sum.
    assert_eq!(bound(true), Some((64 << 10) + (2 << 20)));
}

#[test]
fn a_bound_for_each_thread_grows_with_the_threads() {
    let mut story = Story::new();
    story
        .root(10, &["x"])
        .thread(10, 11)
        .thread(10, 12)
        .after(1)
        .fork(10, 20)
        .after(1)
        .exec(20, &["y"])
        .memory(20, 9)
        .exit(20, 0)
        .exit(10, 0)
        .recording(|r| r.rss_bound_per_thread = true);
    let report = report(&story);
    let bound = |n: usize| {
        let images = &report.processes[n].images;
        images.last().and_then(|image| image.peak_rss_bound_bytes)
    };
    assert_eq!(bound(0), Some(3 * 3 * (256 << 10)));
    assert_eq!(bound(1), Some(3 * (256 << 10)));
    let one_space = 3 * (3 * (256 << 10) + (64 << 10));
    assert_eq!(
        report.tree.peak_rss_sum_bound_bytes.map(|b| b % one_space),
        Some(0)
    );
}
