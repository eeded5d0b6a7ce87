//! Working directories.

use super::*;
use crate::event::Directory;

fn pipeline(nodes: u32) -> Story {
    let mut story = Story::new();
    story
        .root(10, &["/usr/bin/python3", "run.py"])
        .in_directory("/data/study");
    for n in 0..nodes {
        let pid = 20 + n;
        story
            .after(1)
            .fork(10, pid)
            .exec(pid, &["/usr/bin/fast", "-n"]);
        story.in_directory(&format!("/data/wf/node{n}"));
        story.exit(pid, 0);
    }
    story
        .after(1)
        .fork(10, 11)
        .exec(11, &["/bin/true"])
        .in_directory("/data/study");
    story.exit(11, 0).after(1).exit(10, 0).after(300);
    story
}

#[test]
fn a_node_is_named_by_its_directory_and_the_commands_own_is_not_repeated() {
    let shown = text(&report(&pipeline(1)), 80);
    let expected = "WORKING DIRECTORIES\n  other than the command's, /data/study\n  /data/wf/node0\n    fast (pid 20)\n\n";
    assert!(shown.contains(expected), "{shown}");
    assert!(!text(&report(&pipeline(0)), 80).contains("WORKING"));
}

#[test]
fn of_many_the_first_are_shown_and_of_long_ones_the_end() {
    let shown = text(&report(&pipeline(22)), 80);
    assert!(
        shown.contains("/node19\n") && !shown.contains("/node20\n"),
        "{shown}"
    );
    assert!(
        shown.contains("  2 more directories: --all shows them\n"),
        "{shown}"
    );
    let mut story = pipeline(0);
    story.fork(10, 40).exec(40, &["/bin/ls"]);
    story.in_directory(&format!("/{}/the-end", "x".repeat(200)));
    let shown = text(&report(&story), 80);
    let line = shown
        .lines()
        .find(|line| line.ends_with("x/the-end"))
        .unwrap();
    assert!(
        line.starts_with("  …x") && line.chars().count() == 80,
        "{line}"
    );
}

#[test]
fn what_is_odd_about_one_is_said_and_nothing_of_it_reaches_the_terminal() {
    let mut story = pipeline(0);
    for (pid, path, flags) in [
        (30, &b"/a\x1b[31m\n"[..], (false, true, false)),
        (31, b"b/c", (true, false, false)),
        (32, b"/d", (false, false, true)),
    ] {
        story.fork(10, pid).exec(pid, &["/bin/ls"]);
        story.in_directory_that_is(Directory {
            path: path.to_vec(),
            is_cut: flags.0,
            is_deleted: flags.1,
            is_unreachable: flags.2,
        });
    }
    let report = report(&story);
    let shown = text(&report, 80);
    for line in [
        "  /a\\x1b[31m\\n (removed)\n",
        "  …/b/c\n",
        "  /d (not mounted)\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let image = |pid: u64| {
        let processes = value["processes"].as_array().unwrap();
        let process = processes.iter().find(|process| process["pid"] == pid);
        process.unwrap()["images"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&image(30)["cwd_deleted"], &image(30)["cwd"]),
        (&true.into(), &"/a\u{1b}[31m\n".into())
    );
    assert_eq!(
        (&image(31)["cwd_truncated"], &image(31)["cwd"]),
        (&true.into(), &"b/c".into())
    );
    assert_eq!(image(32)["cwd_unreachable"], true);
    assert!(image(32).get("cwd_deleted").is_none());
}
