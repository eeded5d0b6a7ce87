//! Text and JSON as they were agreed on. `cargo insta review` shows what a change does to them.

use super::*;
use crate::event::{Memory, Oom, OomScope, Usage};

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

#[test]
fn killed_for_memory_at_80() {
    let mut story = Story::new();
    let mem = Memory {
        anon: 190 << 20,
        file: 9 << 20,
        shmem: 1 << 20,
        swap: 0,
        vms: 650 << 20,
    };
    let usage = Usage {
        user_ns: Some(30_000_000),
        system_ns: Some(10_000_000),
        faults_minor: Some(60_000),
        faults_major: Some(12),
        switches_voluntary: Some(3),
        switches_involuntary: Some(4),
        read_chars: Some(3 << 20),
        written_chars: Some(5 << 30),
        read_bytes: Some(0),
        written_bytes: Some(5 << 30),
    };
    story.root(10, &["srun", "--mem=200M", "fit.py"]).after(1);
    let scopes = [
        (Some(OomScope::Cgroup), Some("job_\x1b42")),
        (Some(OomScope::Cgroup), None),
        (Some(OomScope::Host), None),
        (None, None),
        (Some(OomScope::Host), None),
    ];
    for (pid, (scope, cgroup)) in (11..).zip(scopes) {
        let oom = Oom {
            mm: None,
            memory: scope.map(|_| mem),
            scope,
            cgroup: cgroup.map(str::to_owned),
            limit: cgroup.map(|_| 200 << 20),
        };
        story.fork(10, pid).after(1).exec(pid, &["fit.py"]);
        story.memory(pid, 200).oom(pid, oom).after(1).killed(pid, 9);
        story.reaped_with(pid, 40_000_000, usage);
    }
    story.fork(10, 20).after(1).killed(20, 9).reaped(20);
    story.exit(10, 1);
    let report = report(&story);
    insta::assert_snapshot!(text(&report, 80));
    text(&report, 60);
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let (victim, spared) = (&value["processes"][1], &value["processes"][6]);
    assert_eq!(victim["exit"]["oom"], true);
    assert_eq!(victim["oom"]["rss_anon_bytes"], 190 << 20);
    assert_eq!(
        (&spared["exit"]["oom"], spared.get("oom")),
        (&false.into(), None)
    );
    assert_eq!(value["tree"]["oom_kills"], 5);
    for (key, expected) in [
        ("user_ns", 30_000_000),
        ("system_ns", 10_000_000),
        ("faults_minor", 60_000),
        ("faults_major", 12),
        ("switches_voluntary", 3),
        ("switches_involuntary", 4),
        ("read_chars", 3 << 20),
        ("written_chars", 5 << 30),
        ("read_bytes", 0),
        ("written_bytes", 5_u64 << 30),
    ] {
        assert_eq!(victim[key], expected, "{key}");
        assert!(spared[key].is_null(), "{key}");
    }
}
