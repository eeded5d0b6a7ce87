//! What is repaired after a loss, and what is said about the rest.

use super::*;
use crate::model::testkit::{MS, START};

fn says(tree: &Tree, words: &str) {
    let notes = tree.trust.notes.join("\n");
    assert!(notes.contains(words), "no '{words}' in:\n{notes}");
    assert!(!tree.trust.complete);
}

#[test]
fn a_lost_fork() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .lost("fork")
        .after(1)
        .memory(11, 9);
    story
        .after(1)
        .exec(11, &["true"])
        .after(1)
        .exit(11, 0)
        .reaped(11)
        .exit(10, 0);
    let tree = story.tree();
    says(&tree, "1 process appears without the event of its creation");
    says(
        &tree,
        "1 record was lost on the way from the kernel: 1 of fork.",
    );
    assert_eq!(tree.trust.lost_events, 1);
    let child = of(&tree, 11);
    assert_eq!(child.created.by, None);
    assert_eq!(child.created.creator, Some(story.key(10)));
    assert_eq!(child.created.creator_from, CreatorFrom::ParentAtEnd);
    assert_eq!(names(child), [None, Some("true".into())]);
    assert_eq!(child.images[0].start_ns, Some(START + MS));
    assert_eq!(peaks_mib(child), [Some(10), Some(1)]);
    assert_eq!(tree.totals.processes, 2);
}

#[test]
fn a_lost_fork_whose_parent_is_no_help() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .lost("fork")
        .reparent(11, 1);
    let tree = story.after(1).exit(11, 0).exit(10, 0).tree();
    assert_eq!(of(&tree, 11).created.creator, None);
    assert_eq!(of(&tree, 11).final_parent.map(|p| p.pid), Some(1));
    assert!(!tree.trust.notes.iter().any(|n| n.contains("shown under")));
}

#[test]
fn a_lost_vfork_shows_in_shared_memory() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 9)
        .after(1)
        .vfork(10, 11)
        .lost("fork");
    story.after(1).memory(11, 10).after(1).exec(11, &["true"]);
    let tree = story.after(1).exit(11, 0).reaped(11).exit(10, 0).tree();
    let child = of(&tree, 11);
    assert_eq!(child.images[0].shared_mm_with, Some(story.key(10)));
    assert_eq!(peaks_mib(child), [None, Some(1)]);
    assert_eq!(child.created.by, None);
    assert_eq!(tree.summary.peak().unwrap().rss, 12 * MIB);
}

#[test]
fn a_lost_exec_shows_in_memory() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exec(11, &["gone"])
        .lost("exec");
    story
        .after(1)
        .memory(11, 9)
        .after(1)
        .exec(11, &["last"])
        .after(1)
        .exit(11, 0);
    let tree = story.reaped(11).exit(10, 0).tree();
    says(&tree, "1 program start is missing");
    let child = of(&tree, 11);
    assert_eq!(
        names(child),
        [Some("run".into()), None, Some("last".into())]
    );
    assert_eq!(peaks_mib(child), [Some(1), Some(10), Some(1)]);
    // When it began isn't known, so when the one before ended isn't either.
    assert_eq!(
        (child.images[0].end_ns, child.images[1].start_ns),
        (None, None)
    );
}

#[test]
fn a_lost_exec_of_the_root() {
    let mut story = Story::new();
    story.root(10, &["run"]).lost("exec").memory(10, 9);
    let tree = story.after(1).exit(10, 0).tree();
    assert_eq!(names(of(&tree, 10)), [None]);
    assert_eq!(of(&tree, 10).images[0].how, How::Exec);
    assert_eq!(peaks_mib(of(&tree, 10)), [Some(10)]);
}

#[test]
fn a_lost_exit_is_known_from_reaping() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(11, 0)
        .lost("exit");
    let tree = story.after(1).reaped(11).exit(10, 0).tree();
    says(&tree, "1 process ended without an event of that");
    let child = of(&tree, 11);
    assert_eq!(child.ending, Ending::Ended { at: None });
    assert_eq!(
        (child.status, child.cpu_ns, child.zombie_ns),
        (None, None, None)
    );
    assert_eq!(tree.summary.live(), 0);
}

#[test]
fn a_lost_exit_is_known_from_its_pid() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(11, 0)
        .lost("exit");
    story.after(1).fork(10, 11).after(1).exit(11, 0).after(1);
    // Without an end of the recording nothing else could tell.
    story.exit(10, 0).recording(|r| r.cut_short = true);
    let tree = story.tree();
    assert_eq!(tree.processes[1].ending, Ending::Ended { at: None });
    assert_eq!(tree.summary.max_live(), 2);
}

#[test]
fn a_lost_exit_is_known_from_absence_at_the_end() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .fork(10, 12)
        .after(1);
    story
        .exit(11, 0)
        .lost("exit")
        .after(1)
        .still_there(10, false)
        .still_there(12, false);
    let tree = story.tree();
    assert_eq!(of(&tree, 11).ending, Ending::Ended { at: None });
    assert_eq!(of(&tree, 12).ending, Ending::Alive);
}

#[test]
fn a_recording_cut_short_knows_no_ends() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .recording(|r| r.cut_short = true);
    let tree = story.tree();
    says(&tree, "The file was cut short");
    says(&tree, "2 processes may have ended or not");
    assert_eq!(of(&tree, 11).ending, Ending::Unknown);
    assert_eq!(of(&tree, 11).survived_root, None);
    assert_eq!(tree.totals.survivors, None);
}

#[test]
fn the_status_of_the_command_is_known_without_its_event() {
    let mut story = Story::new();
    story.root(10, &["run"]).after(1).exit(10, 3).lost("exit");
    let tree = story.recording(|r| r.exit_status = Some(3 << 8)).tree();
    assert_eq!(of(&tree, 10).status, Some(3 << 8));
    assert_eq!(of(&tree, 10).ending, Ending::Ended { at: None });
}

#[test]
fn lost_threads() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .thread(10, 11)
        .lost("thread")
        .after(1);
    story
        .fork(10, 20)
        .thread_exit(10, 11)
        .exit(10, 0)
        .still_there(20, false);
    let tree = story.tree();
    // Both threads have ended, and each end was seen.
    let root = of(&tree, 10);
    assert_eq!((root.threads_created, root.threads_max), (Some(1), Some(2)));
    // The other one still runs: it may have threads of which nothing is known.
    assert_eq!(of(&tree, 20).threads_created, None);
    assert_eq!(tree.totals.threads_created, None);
    says(&tree, "1 process has an unknown number of threads");
}

#[test]
fn a_lost_end_of_a_thread() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .thread(10, 11)
        .after(1)
        .thread_exit(10, 11);
    let tree = story.lost("thread_exit").exit(10, 0).tree();
    let root = of(&tree, 10);
    assert_eq!((root.threads_created, root.threads_max), (Some(1), Some(2)));
    // One thread's CPU time is missing.
    assert_eq!(root.cpu_ns, None);
}

#[test]
fn a_lost_end_of_memory() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .memory(11, 9)
        .after(1)
        .exit(11, 0);
    story
        .lost("mm_end")
        .after(20)
        .reaped(11)
        .after(200)
        .memory(10, 1)
        .exit(10, 0);
    let tree = story.tree();
    says(&tree, "1 address space has no end");
    assert_eq!(peaks_mib(of(&tree, 11)), [Some(10)]);
    let memory = of(&tree, 11).images[0].memory.unwrap();
    assert_eq!((memory.end_rss, memory.kept_at_every_event), (None, false));
    // Who is gone uses nothing: the sum doesn't drag it along.
    assert_eq!(tree.summary.rss(), 0);
    assert_eq!(tree.summary.unclosed(), 1);
}

#[test]
fn skipped_runs_and_full_tables_are_told() {
    let mut story = family();
    story.recording(|r| {
        r.recursion_misses.insert("rss_stat".into(), 2);
        r.full_maps.insert("spaces".into(), 1);
        r.missing_hooks.push("sched_prepare_exec".into());
        r.late_events = 1;
    });
    let tree = story.tree();
    says(&tree, "The kernel skipped 2 runs of the hook rss_stat");
    says(
        &tree,
        "1 entry found no room in the kernel-side table spaces; what belongs to it is missing.",
    );
    says(
        &tree,
        "Hooks that were missing or switched off: sched_prepare_exec.",
    );
    says(&tree, "1 event came too late");
    assert_eq!(tree.trust.lost_events, 0);
}

#[test]
fn a_skipped_run_is_a_gap_unless_the_next_one_shows_the_same() {
    let skipped = |hook: &str| {
        let mut story = family();
        story.recording(|r| {
            r.recursion_misses.insert(hook.into(), 1);
        });
        story.tree().trust.complete
    };
    assert!(skipped("rss_stat") && skipped("mmap_lock_released"));
    assert!(skipped("mm_vmscan_memcg_reclaim_begin"));
    assert!(!skipped("sched_process_exit") && !skipped("exit_mmap"));
}

#[test]
fn losses_in_the_stream_and_at_the_end_are_the_same_losses() {
    let mut story = family();
    story.loss_row("memory", 4).loss_row("memory", 6);
    let tree = story
        .recording(|r| r.lost = [("memory".into(), 10)].into())
        .tree();
    assert_eq!(tree.trust.lost_events, 10);
    // A recorder that was killed has only the rows.
    let tree = story.recording(|r| r.lost.clear()).tree();
    assert_eq!(tree.trust.lost_events, 10);
}
