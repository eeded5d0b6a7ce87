//! Processes that were there before the recording began.

use super::*;
use crate::{
    event::{Event, Found, RecordedGroup, Snapshot, Subject, What},
    model::testkit::START,
    units::ProcessKey,
};

const NOTE: &str = "2 processes were there before the recording began: how they were made, and what they did and used \
                    before, is not known.";

/// A pool whose owner and one worker are found; another worker is made afterwards.
fn pool() -> Story {
    let mut story = Story::new();
    story.found(1, 10, &["/usr/bin/python3", "pool.py"]);
    story.found(10, 11, &[]).memory(10, 4).after(1);
    story.fork(10, 12).memory(12, 3).after(1);
    story.exit(12, 0).exit(11, 3).exit(10, 0).after(300);
    story.recording(|recording| recording.attached_ns = Some(START));
    story
}

#[test]
fn who_was_there_has_no_creation_and_the_parent_that_it_had() {
    let story = pool();
    let tree = story.tree();
    assert_eq!(tree.root, None);
    assert_eq!(tree.processes.len(), 3);
    assert_eq!(tree.trust.notes, [NOTE]);
    assert!(tree.trust.complete);
    let created = |pid| of(&tree, pid).created;
    assert_eq!((created(10).by, created(10).creator), (None, None));
    assert_eq!(
        (created(11).by, created(11).creator),
        (None, Some(story.key(10)))
    );
    assert_eq!(created(11).creator_from, CreatorFrom::ParentAtStart);
    assert_eq!(created(12).by, Some(CreatedBy::Fork));
    assert_eq!(created(12).creator, Some(story.key(10)));
    assert_eq!(created(12).creator_from, CreatorFrom::Fork);
    let found = |pid| of(&tree, pid).found_ns;
    assert_eq!(
        (found(10), found(11), found(12)),
        (Some(START), Some(START), None)
    );
    // Of those before nobody knows how many there were.
    let threads = |pid| (of(&tree, pid).threads_created, of(&tree, pid).threads_max);
    assert_eq!(
        (threads(10), threads(12)),
        ((None, Some(1)), (Some(0), Some(1)))
    );
    assert_eq!(of(&tree, 11).status, Some(3 << 8));
    let own = of(&tree, 11);
    assert_eq!((own.ns_pid, own.ns_level), (Some(11), Some(0)));
}

#[test]
fn programs_and_memory_are_those_from_then_on() {
    let tree = pool().tree();
    let image = |pid| of(&tree, pid).images.first().unwrap();
    assert_eq!((image(10).how, image(10).start_ns), (How::Exec, None));
    let argv = [b"/usr/bin/python3".to_vec(), b"pool.py".to_vec()];
    assert_eq!(image(10).argv, Some(argv.to_vec()));
    assert_eq!(image(10).argv_bytes, Some(25));
    assert_eq!((image(11).how, &image(11).argv), (How::Inherited, &None));
    for pid in [10, 11, 12] {
        assert_eq!(of(&tree, pid).images.len(), 1, "{pid}");
    }
    assert_eq!(peaks_mib(of(&tree, 10)), [Some(4)]);
    assert_eq!(image(10).memory.unwrap().start, None);
}

#[test]
fn the_same_process_is_taken_once() {
    let mut story = pool();
    let key = story.key(12);
    let snapshot = Snapshot {
        parent: Some(ProcessKey {
            pid: 1,
            start_ns: 1,
        }),
        first_run_ns: None,
        stopped_ns: None,
        zombie: false,
        found: Some(Found {
            threads: 1,
            ..Found::default()
        }),
    };
    story.event(Event {
        time_ns: START + 3_000_000,
        cpu: 0,
        subject: Some(Subject {
            process: key,
            tid: 12,
        }),
        what: What::Snapshot(snapshot),
    });
    let tree = story.tree();
    assert_eq!(of(&tree, 12).created.by, Some(CreatedBy::Fork));
    assert_eq!(of(&tree, 12).found_ns, None);
    assert_eq!(tree.processes.len(), 3);
}

#[test]
fn one_that_was_ending_when_it_was_found_has_ended_then() {
    let mut story = Story::new();
    story.found(1, 10, &["a"]);
    let key = ProcessKey {
        pid: 11,
        start_ns: START - 5,
    };
    let found = Found {
        comm: b"b".to_vec(),
        ..Found::default()
    };
    let snapshot = Snapshot {
        parent: Some(story.key(10)),
        first_run_ns: None,
        stopped_ns: None,
        zombie: true,
        found: Some(found),
    };
    story.event(Event {
        time_ns: START,
        cpu: 0,
        subject: Some(Subject {
            process: key,
            tid: 11,
        }),
        what: What::Snapshot(snapshot),
    });
    story.exit(10, 0).after(300);
    let tree = story.tree();
    assert_eq!(of(&tree, 11).ending, Ending::Ended { at: Some(START) });
    assert_eq!(of(&tree, 11).status, None);
    assert!(tree.trust.complete, "{:?}", tree.trust);
}

#[test]
fn on_a_whole_host_only_descendants_survive_the_command() {
    let mut story = Story::new();
    story.found(1, 10, &["other"]).after(1);
    story.root(20, &["/bin/sh"]).after(1).fork(20, 21).after(1);
    story.exit(20, 0).after(1000);
    story.still_there(10, false).still_there(21, false);
    story.recording(|recording| recording.whole_host = true);
    let tree = story.tree();
    assert_eq!(of(&tree, 10).survived_root, Some(false));
    assert_eq!(of(&tree, 21).survived_root, Some(true));
    assert_eq!(tree.totals.survivors, Some(1));
}

#[test]
fn who_comes_into_a_control_group_later_is_told_from_who_was_there() {
    let note = |attached_ns| {
        let mut story = pool();
        story.recording(|recording| {
            recording.attached_ns = Some(attached_ns);
            recording.group = Some(RecordedGroup::default());
        });
        story.tree().trust.notes
    };
    assert_eq!(note(START), [NOTE]);
    let later = "2 processes came into the control group while it was recorded: how they were made, and what they did \
                 and used before, is not known.";
    assert_eq!(note(START - 1), [later]);
}
