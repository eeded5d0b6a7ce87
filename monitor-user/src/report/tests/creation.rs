//! What making processes took.

use super::*;

fn forked(calls: &[u64]) -> Story {
    let mut story = Story::new();
    story
        .root(10, &["/usr/bin/python3", "pool.py"])
        .memory(10, 500)
        .after(1);
    for (pid, ns) in (20..).zip(calls) {
        story
            .fork(10, pid)
            .call_took(*ns, 1 << 20)
            .after(1)
            .exit(pid, 0)
            .after(1);
    }
    story.exit(10, 0).after(300);
    story
}

#[test]
fn the_longest_calls_are_listed_with_what_there_was_to_copy() {
    let shown = text(
        &report(&forked(&[40_000, 12_300_000, 60_000, 2_000_000])),
        100,
    );
    let expected = "CREATION\n  4 calls that made processes took the kernel 14.4 ms: each 60.0 us (median) to 12.3 ms\n     \
        12.3 ms pid 21, page tables 1.0 MiB, RSS 501 MiB, VMS 504 MiB: by python3 pool.py (pid 10)\n      \
        2.0 ms pid 23, page tables";
    assert!(shown.contains(expected), "{shown}");
    // A line for each of those that took a millisecond, and no more.
    assert_eq!(shown.matches("page tables").count(), 2, "{shown}");
}

#[test]
fn short_calls_are_not_worth_a_section() {
    let report = report(&forked(&[40_000, 999_999]));
    assert!(!text(&report, 80).contains("CREATION"));
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let child = &value["processes"][1];
    assert_eq!(
        (&child["fork_ns"], &child["creator_page_tables_bytes"]),
        (&40_000.into(), &(1 << 20).into())
    );
    assert_eq!(
        (&child["creator_rss_bytes"], &child["creator_vms_bytes"]),
        (&(501_u64 << 20).into(), &(504_u64 << 20).into())
    );
    assert!(value["processes"][0]["fork_ns"].is_null());
}
