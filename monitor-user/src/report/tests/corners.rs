//! Reports at the edges.

use super::*;
use crate::{event::Recording, model::Model};

#[test]
fn an_empty_trace() {
    let recording = Recording::default();
    let report = Report::new(&Model::new().finish(&recording), &recording);
    insta::assert_snapshot!(text(&report, 80));
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    assert!(value["root"].is_null());
    assert!(value["tree"]["peak_rss_sum_bytes"].is_null());
}

#[test]
fn one_process() {
    let mut story = Story::new();
    story.root(10, &["true"]).after(2).exit(10, 0).after(5);
    insta::assert_snapshot!(text(&report(&story), 80));
}

#[test]
fn threads_instead_of_workers_are_told_from_three_on() {
    for (threads, expected) in [(1, false), (2, true)] {
        let mut story = Story::new();
        story.root(10, &["serve"]).after(1);
        for n in 0..threads {
            story.thread(10, 11 + n);
        }
        let text = text(&report(story.after(5).exit(10, 0)), 80);
        let line = "  no pool of processes was seen; serve (pid 10) had 3 threads at once";
        assert_eq!(text.contains(line), expected, "{text}");
        assert_eq!(text.contains("POOLS"), expected, "{text}");
    }
}

#[test]
fn a_manager_is_told_from_workers() {
    let mut story = Story::new();
    story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
    story.fork(10, 15).after(1).thread(15, 16).after(5);
    story.thread_by(15, 16, 17).after(1).thread_exit(15, 17);
    story.exit(15, 0).reaped(15).exit(10, 0);
    let text = text(&report(&story), 80);
    assert!(text.contains("python3 x.py (manager)"), "{text}");
}

#[test]
fn a_pid_twice() {
    let mut story = Story::new();
    story.root(10, &["run"]);
    for (name, code) in [("first", 0), ("second", 7)] {
        story.after(1).fork(10, 11).after(1).exec(11, &[name]);
        story.after(1).exit(11, code).reaped(11);
    }
    let report = report(story.exit(10, 0));
    let text = text(&report, 80);
    assert_eq!(
        text.lines().filter(|l| l.contains("      11 ")).count(),
        2,
        "{text}"
    );
    assert_ne!(report.processes[1].id(), report.processes[2].id());
}

#[test]
fn zombies_and_the_living_are_said() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(11, 0)
        .fork(10, 12)
        .after(500);
    for (pid, zombie) in [(10, false), (11, true), (12, false)] {
        story.still_there(pid, zombie);
    }
    let text = text(&report(&story), 80);
    let ends: Vec<_> = text
        .lines()
        .filter(|l| l.contains("run (fork)  "))
        .collect();
    assert!(
        ends[0].ends_with("  zombie") && ends[1].ends_with("  alive"),
        "{text}"
    );
    assert!(
        text.contains("was still running when the recording ended"),
        "{text}"
    );
}

#[test]
fn who_takes_another_name_is_told_by_its_program() {
    let mut story = Story::new();
    story.root(10, &["/usr/bin/python3", "pool.py"]).after(1);
    for (pid, name) in [(11, "kworker/0:1"), (12, "sshd")] {
        story.fork(10, pid).after(1).rename(pid, pid, name);
        story.after(1).exit(pid, 0).reaped(pid);
    }
    let text = text(&report(story.exit(10, 0)), 80);
    for told in [
        "├─ python3 pool.py as kworker/0:1 (fo…",
        "└─ python3 pool.py as sshd (fork) ",
    ] {
        assert!(text.contains(told), "{text}");
    }
}

fn crowd(n: u32, name: impl Fn(u32) -> String) -> Story {
    let mut story = Story::new();
    story.root(10, &["run"]);
    for pid in 100..100 + n {
        story
            .after(1)
            .fork(10, pid)
            .exec(pid, &[&name(pid)])
            .exit(pid, 0)
            .reaped(pid);
    }
    story.exit(10, 0);
    story
}

#[test]
fn ten_thousand_processes_are_short() {
    let report = report(&crowd(10_000, |_| "true".into()));
    let folded = text(&report, 80);
    assert!(folded.contains("└─ 10,000 x true "), "{folded}");
    assert!(folded.lines().count() < 44, "{folded}");
    let options = text::TextOptions {
        all: true,
        ..text::TextOptions::default()
    };
    assert!(text_with(&report, options).lines().count() > 10_000);
}

#[test]
fn ten_thousand_different_processes_are_short_too() {
    let folded = text(&report(&crowd(10_000, |n| format!("job{n}"))), 80);
    assert!(
        folded.contains("9,980 more processes; --all shows them"),
        "{folded}"
    );
    assert!(folded.lines().count() < 68, "{folded}");
}

#[test]
fn siblings_with_the_same_children_are_folded_with_them() {
    let mut story = Story::new();
    story.root(10, &["run"]);
    for pid in (100..200).step_by(2) {
        story
            .after(1)
            .fork(10, pid)
            .exec(pid, &["sh", "-c", "work | sort"])
            .after(1);
        story
            .fork(pid, pid + 1)
            .exec(pid + 1, &["sort"])
            .after(1)
            .exit(pid + 1, 0);
        story.exit(pid, 0);
    }
    let text = text(&report(story.exit(10, 0)), 80);
    assert!(text.contains("└─ 50 x sh -c 'work | sort'"), "{text}");
    assert!(text.contains("   └─ 50 x sort"), "{text}");
}

#[test]
fn a_deep_chain_stays_within_its_lines() {
    let mut story = Story::new();
    story.root(1, &["run"]);
    for pid in 1..3000 {
        story.after(1).fork(pid, pid + 1);
    }
    let report = report(&story);
    let text = text(&report, 80);
    assert!(text.contains("… 100 deep run (fork)"), "{text}");
    assert!(text.contains("more processes; --all shows them"), "{text}");
    assert!(text.lines().count() < 250);
}

#[test]
fn hostile_names() {
    let mut story = Story::new();
    story
        .root(
            10,
            &["/bin/sh", "-c", "printf '\x1b[2J'\nrm -rf \u{202e}/\\"],
        )
        .after(1);
    story.fork(10, 11).after(1);
    story.exec_bytes(
        11,
        11,
        vec![b"/tmp/\x1b]0;title\x07\xff\xfe\n\r\t\xe2\x80\xae".to_vec()],
    );
    story.after(1).exit(11, 0).fork(10, 12).after(1);
    story
        .exec(12, &["/opt/日本語の長い名前のプログラムがここにあります"])
        .exit(12, 0);
    story
        .fork(10, 13)
        .rename(13, 13, "\u{200b}\x1b[31mred")
        .after(1)
        .exit(13, 0)
        .exit(10, 0);
    let report = report(&story);
    insta::assert_snapshot!(text(&report, 80));
    // Lone surrogates are no text for serde_json, so this is looked for in the JSON itself.
    assert!(json(&report).contains(r#""/tmp/\u001b]0;title\u0007\udcff\udcfe\n\r\t"#));
}

#[test]
fn narrow_terminals_get_sixty_columns() {
    let options = text::TextOptions {
        width: 60,
        ..text::TextOptions::default()
    };
    let sixty = text_with(&report(&pipeline()), options);
    let mut narrow = Vec::new();
    let options = text::TextOptions {
        width: 1,
        ..options
    };
    text::write(&report(&pipeline()), &options, &mut narrow).unwrap();
    assert_eq!(String::from_utf8(narrow).unwrap(), sixty);
}
