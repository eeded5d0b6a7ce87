//! The order in which events come in doesn't matter, as far as it can be put right.

use super::*;
use crate::event::Event;

/// A stream over four CPUs with every kind of event.
fn busy() -> Story {
    let mut story = Story::new();
    story.root(10, &["run"]).after(1);
    for n in 0..40_u32 {
        let (pid, cpu) = (20 + n, u16::try_from(n % 4).unwrap());
        story.on_cpu(cpu).after(1);
        if n % 3 == 0 {
            story.vfork(10, pid);
        } else {
            story.copy_before_fork(10).after(1).fork(10, pid);
        }
        story.on_cpu((cpu + 1) % 4).after(1);
        if n % 2 == 0 {
            story.exec(pid, &["/bin/work", &n.to_string()]).after(1);
            story
                .memory(pid, u64::from(n))
                .thread(pid, 1000 + n)
                .after(1);
            story.thread_exit(pid, 1000 + n);
        }
        story
            .after(1)
            .on_cpu((cpu + 2) % 4)
            .rename(pid, pid, "named")
            .after(1);
        story.exit(pid, n % 2);
        if n % 5 != 0 {
            story.after(1).on_cpu(cpu).reaped(pid);
        }
    }
    story.after(1).exit(10, 0).after(400);
    story
}

fn tree_of(story: &Story, events: &[Event]) -> Tree {
    let mut model = Model::new();
    for event in events {
        model.push(event);
    }
    model.finish(&story.recorded())
}

/// Streams of CPUs, each in its own order, woven into each other by a fixed sequence of numbers.
fn woven(events: &[Event], seed: u64) -> Vec<Event> {
    let mut streams: Vec<Vec<Event>> = (0..4)
        .map(|cpu| {
            events
                .iter()
                .rev()
                .filter(|e| e.cpu == cpu)
                .cloned()
                .collect()
        })
        .collect();
    let mut out = Vec::new();
    let mut state = seed;
    while streams.iter().any(|s| !s.is_empty()) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 62).unwrap();
        out.extend(streams[at].pop());
    }
    out
}

#[test]
fn shuffled_cpus_give_the_same_tree() {
    let story = busy();
    let expected = tree_of(&story, story.events());
    assert_eq!(expected.processes.len(), 41);
    assert!(expected.trust.complete, "{:?}", expected.trust.notes);
    for seed in 0..50 {
        let events = woven(story.events(), seed);
        assert_ne!(events, story.events());
        let tree = tree_of(&story, &events);
        assert_eq!(tree.processes, expected.processes);
        assert_eq!(tree.totals, expected.totals);
        assert_eq!(tree.trust, expected.trust);
        assert_eq!(tree.summary.peak(), expected.summary.peak());
    }
}

/// A quiet life, long enough that nothing can be sorted any more; `late` comes after it.
fn much_later(mut story: Story, kind: &str) -> Tree {
    let events = story.events().to_vec();
    let late: Vec<_> = {
        story.vanished(kind);
        let kept = story.events();
        events
            .iter()
            .filter(|e| !kept.contains(e))
            .cloned()
            .collect()
    };
    assert_eq!(late.len(), 1, "{kind}");
    for _ in 0..10_000 {
        story.after(1).memory(10, 1);
    }
    story.event(late[0].clone()).exit(10, 0);
    story.tree()
}

#[test]
fn an_event_far_too_late_is_taken_at_its_own_time() {
    let story = || {
        let mut story = Story::new();
        story
            .root(10, &["run"])
            .after(1)
            .fork(10, 11)
            .after(1)
            .exec(11, &["true"]);
        story
            .after(1)
            .rename(11, 11, "named")
            .after(1)
            .exit(11, 4)
            .reaped(11);
        story
    };
    for kind in ["fork", "exec", "rename", "exit", "reaped", "mm_end"] {
        let tree = much_later(story(), kind);
        let child = of(&tree, 11);
        assert_eq!(names(child), some(&["run", "true"]), "{kind}");
        assert_eq!(child.comm.as_deref(), Some(b"named".as_slice()), "{kind}");
        assert_eq!(child.status, Some(4 << 8), "{kind}");
        assert_eq!(child.created.by, Some(CreatedBy::Fork), "{kind}");
        assert_eq!(peaks_mib(child), [Some(1), Some(1)], "{kind}");
        assert_clean(&tree);
    }
}
