//! Golden reports of stories on a fixed host.

mod attached;
mod charge;
mod closing;
mod corners;
mod creation;
mod directories;
mod golden;
mod marks;
mod parents;
mod same;
mod titles;

use super::*;
use crate::model::testkit::Story;

fn report(story: &Story) -> Report {
    Report::new(&story.tree(), &story.recorded())
}

fn text_with(report: &Report, options: text::TextOptions) -> String {
    let mut out = Vec::new();
    text::write(report, &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    if !options.colour {
        for line in text.lines() {
            assert!(escape::width(line) <= options.width, "too wide: {line}");
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
    text
}

fn text(report: &Report, width: usize) -> String {
    let options = text::TextOptions {
        width,
        ..text::TextOptions::default()
    };
    text_with(report, options)
}

fn json(report: &Report) -> String {
    let mut out = Vec::new();
    json::write(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A shell script that runs 200 short programs and a Python pool, one worker of which is killed.
fn pipeline() -> Story {
    let mut story = Story::new();
    story
        .root(100, &["/bin/sh", "run.sh", "--all subjects"])
        .memory(100, 2);
    for n in 0..198_u32 {
        let pid = 200 + n;
        story
            .after(1)
            .fork(100, pid)
            .after(1)
            .exec(pid, &["/bin/true"]);
        story
            .after(1 + u64::from(n % 3))
            .exit(pid, 0)
            .after(20)
            .reaped(pid);
    }
    story.after(10).fork(100, 500).after(1);
    story.exec(
        500,
        &["/usr/bin/python3", "-u", "/data/project/pool.py", "8"],
    );
    story
        .after(100)
        .memory(500, 150)
        .thread(500, 501)
        .thread(500, 502);
    for pid in 510..514 {
        story.after(2).fork(500, pid).after(3).memory(pid, 170);
    }
    story
        .after(40)
        .memory(512, 620)
        .after(50)
        .killed(512, 9)
        .after(12)
        .reaped(512);
    for pid in [510, 511, 513] {
        story.after(5).exit(pid, 0).after(11).reaped(pid);
    }
    story.thread_exit(500, 501).thread_exit(500, 502);
    story
        .vfork(500, 600)
        .after(1)
        .exec(600, &["git", "rev-parse", "HEAD"]);
    story.after(4).exit(600, 128).after(12).reaped(600);
    story
        .after(30)
        .exit(500, 1)
        .after(15)
        .reaped(500)
        .exit(100, 3)
        .after(260);
    story.recording(|r| r.exit_status = Some(3 << 8));
    story
}
