//! The light fold: sums, and a memory that doesn't grow with the past.

use super::*;
use crate::{
    event::{Event, Memory, What},
    model::testkit::{MS, START},
};

fn summary(story: &Story) -> Summary {
    let mut summary = Summary::new();
    for event in story.events() {
        summary.push(event);
    }
    summary
}

#[test]
fn the_peak_names_who_had_most() {
    let mut story = Story::new();
    story
        .root(10, &["/bin/sh", "run.sh"])
        .memory(10, 9)
        .after(1)
        .fork(10, 11);
    story
        .exec(11, &["/usr/bin/python3", "-u", "/x/pool.py"])
        .after(5)
        .memory(11, 499);
    let open = summary(&story).peak().unwrap();
    story
        .after(5)
        .memory(11, 1)
        .memory(10, 99)
        .after(1)
        .killed(11, 9)
        .reaped(11);
    let summary = summary(&story.exit(10, 3).clone());
    let peak = summary.peak().unwrap();
    // The answer is the same while the peak lasts and when it is over.
    assert_eq!(peak, open);
    assert_eq!((peak.rss, peak.time_ns), (510 * MIB, START + 6 * MS));
    let top = peak.top().unwrap();
    assert_eq!(top.process, Some(story.key(11)));
    assert_eq!(&*top.program, b"python3 pool.py");
    assert_eq!(top.memory.rss(), 500 * MIB);
    let shares: Vec<_> = peak.shares.iter().map(|s| s.memory.rss()).collect();
    assert_eq!(shares, [10 * MIB, 500 * MIB]);
    assert_eq!((summary.bad_exits(), summary.deaths_by_signal()), (1, 1));
    assert_eq!(
        (summary.live(), summary.processes(), summary.rss()),
        (0, 2, 0)
    );
    assert_eq!(summary.peak_vms(), Some(516 * MIB));
}

#[test]
fn the_dead_are_dropped() {
    let mut story = Story::new();
    story.root(10, &["run"]);
    for n in 0..20_000_u32 {
        let pid = 100 + n % 1000;
        story
            .after(1)
            .fork(10, pid)
            .after(1)
            .exec(pid, &["true"])
            .exit(pid, 0)
            .reaped(pid);
    }
    let summary = summary(&story);
    assert_eq!(summary.processes(), 20_001);
    assert_eq!(summary.held(), 2);
    assert_eq!(summary.max_live(), 2);
    assert_eq!(summary.unclosed(), 0);
}

#[test]
fn the_dead_are_dropped_even_if_nobody_says_so() {
    let mut story = Story::new();
    story.root(10, &["run"]);
    for pid in 100..20_100_u32 {
        story.after(1).fork(10, pid).after(1).exit_row(pid, pid, 0);
    }
    let summary = summary(&story);
    assert_eq!(summary.live(), 1);
    assert!(summary.held() < 10_000, "{}", summary.held());
}

#[test]
fn a_million_events_leave_a_bounded_timeline() {
    let mut story = Story::new();
    story.root(10, &["run"]);
    let (mm, first) = (story.mm(10), story.events().to_vec());
    let mut model = Model::new();
    for event in &first {
        model.push(event);
    }
    for n in 0..1_000_000_u64 {
        let now = Memory {
            anon: if n == 777_777 {
                1 << 40
            } else {
                n % 100 * 4096
            },
            ..Memory::default()
        };
        model.push(&Event {
            time_ns: START + n * 50_000,
            cpu: 0,
            subject: None,
            what: What::Memory {
                mm,
                now,
                parts: None,
                churn: None,
                cpu_ns: None,
                charge: None,
            },
        });
    }
    let tree = model.finish(&story.recorded());
    assert_eq!(tree.trust.events, 1_000_000 + first.len() as u64);
    assert!(tree.timeline.points().count() <= 1024);
    let highest = tree.timeline.points().map(|(_, b)| b.max_rss).max();
    assert_eq!(highest, Some(1 << 40));
    assert_eq!(tree.summary.peak().unwrap().rss, 1 << 40);
    assert_eq!(
        tree.summary.peak().unwrap().time_ns,
        START + 777_777 * 50_000
    );
}
