//! Text and JSON as they were agreed on. `cargo insta review` shows what a change does to them.

use super::*;

#[test]
fn pipeline_at_80() {
    insta::assert_snapshot!(text(&report(&pipeline()), 80));
}

#[test]
fn pipeline_at_120() {
    insta::assert_snapshot!(text(&report(&pipeline()), 120));
}

#[test]
fn small_tree_as_json() {
    let mut story = Story::new();
    story
        .root(10, &["/bin/sh", "-c", "x"])
        .memory(10, 2)
        .thread(10, 11)
        .after(1);
    story
        .vfork(10, 20)
        .after(1)
        .exec_bytes(20, 20, vec![b"/bin/x".to_vec(), b"\xff\"".to_vec()]);
    story
        .after(2)
        .end(20, 20, 139)
        .after(20)
        .reaped_with_cpu(20, 1);
    story.thread_exit(10, 11).exit(10, 0).after(5);
    insta::assert_snapshot!(json(&report(&story)));
}

#[test]
fn losses_at_80() {
    let mut story = Story::new();
    story
        .root(10, &["make", "-j8"])
        .memory(10, 5)
        .after(3)
        .fork(10, 11)
        .lost("fork");
    story
        .after(1)
        .exec(11, &["cc1", "a.c"])
        .lost("exec")
        .memory(11, 90)
        .after(50);
    story
        .exit(11, 0)
        .lost("exit")
        .after(20)
        .reaped(11)
        .after(1)
        .fork(10, 12)
        .lost("fork");
    story
        .after(5)
        .exit(12, 1)
        .reaped(12)
        .after(1)
        .exit(10, 2)
        .after(200);
    story.recording(|r| {
        r.exit_status = Some(2 << 8);
        r.missing_hooks.push("sched_process_free".into());
        r.recursion_misses.insert("rss_stat".into(), 3);
    });
    insta::assert_snapshot!(text(&report(&story), 80));
}

#[test]
fn cut_short_at_80() {
    let mut story = pipeline();
    story.recording(|r| {
        r.cut_short = true;
        r.exit_status = None;
    });
    let mut cut = Story::new();
    for event in story.events().iter().take(1400) {
        cut.event(event.clone());
    }
    let recording = story.recorded();
    cut.recording(|r| *r = recording);
    insta::assert_snapshot!(text(&report(&cut), 80));
}

#[test]
fn colour_only_if_asked() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .killed(11, 15)
        .exit(10, 1);
    let report = report(&story);
    let options = text::TextOptions {
        colour: true,
        ..text::TextOptions::default()
    };
    let coloured = text_with(&report, options);
    insta::assert_snapshot!(coloured.replace('\x1b', "<ESC>"));
    // Taking the colours away gives the plain text.
    let mut plain = coloured;
    for code in ["0", "1", "2", "31"] {
        plain = plain.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(plain, text(&report, 80));
}
