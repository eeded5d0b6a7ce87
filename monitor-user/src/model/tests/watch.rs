//! Signals, failed calls, waits.

use std::collections::BTreeMap;

use crate::{
    event::{ForkFailed, RefusedBy, SenderKind},
    model::{
        Process, Tree,
        testkit::{MS, Story},
    },
};

const KILL: u32 = 9;
const TERM: u32 = 15;

fn story() -> Story {
    let mut story = Story::new();
    story.root(10, &["/bin/sh"]).after(1);
    story.fork(10, 11).after(1).fork(10, 12).after(1);
    story
}

fn process(tree: &Tree, pid: u32) -> &Process {
    let found = tree.processes.iter().find(|p| p.key.pid == pid);
    found.unwrap()
}

#[test]
fn the_last_signal_of_the_kind_that_it_died_of_names_the_sender() {
    let mut story = story();
    story.signal(10, 11, KILL).after(1).signal(12, 11, TERM);
    story.after(1).signal(10, 11, TERM).after(1);
    story.killed(11, TERM).after(1).exit(12, 0).exit(10, 0);
    let tree = story.tree();
    let sender = process(&tree, 11).sender.as_ref().unwrap();
    assert_eq!(sender.process, tree.root);
    assert_eq!(sender.kind, SenderKind::User);
    // Who ended by itself has no sender, whatever was sent.
    assert_eq!(process(&tree, 12).sender, None);
}

#[test]
fn a_sender_is_not_made_up() {
    let mut story = story();
    story
        .signal(10, 11, TERM)
        .after(1)
        .killed(11, KILL)
        .after(1);
    story.kernel_signal(12, KILL).after(1).killed(12, KILL);
    let tree = story.exit(10, 0).tree();
    assert_eq!(process(&tree, 11).sender, None);
    let kernel = process(&tree, 12).sender.as_ref().unwrap();
    assert_eq!((kernel.kind, kernel.process), (SenderKind::Kernel, None));
}

#[test]
fn failed_calls_are_counted_and_unknown_where_they_were_not_watched() {
    let mut story = story();
    story
        .exec_failed(11, 2, "/a/x")
        .after(1)
        .exec_failed(11, 13, "/b/x");
    story
        .fork_failed(10, 11)
        .fork_refused(10, RefusedBy::UserLimit, 64, None)
        .fork_refused(10, RefusedBy::UserLimit, 64, None)
        .fork_failed(10, 12);
    story.exit(11, 127).exit(12, 0).exit(10, 0);
    let tree = story.tree();
    let failed = process(&tree, 11).exec_failures.as_ref().unwrap();
    let failed: Vec<_> = failed.iter().map(|f| (f.errno, &f.filename[..])).collect();
    assert_eq!(failed, [(2, &b"/a/x"[..]), (13, b"/b/x")]);
    assert_eq!(process(&tree, 12).exec_failures, Some(Vec::new()));
    let forks = process(&tree, 10).fork_failures.as_ref().unwrap();
    let told: Vec<_> = forks
        .iter()
        .map(|(failed, calls)| (failed.errno, failed.refused_by, failed.limit, *calls))
        .collect();
    let by_user = Some(RefusedBy::UserLimit);
    let expected = [
        (11, None, None, 1),
        (11, by_user, Some(64), 2),
        (12, None, None, 1),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        (tree.totals.failed_execs, tree.totals.failed_forks),
        (Some(2), Some(4))
    );

    story.recording(|r| r.stand_ins = BTreeMap::from([("sys_exit".into(), String::new())]));
    let tree = story.tree();
    assert_eq!(process(&tree, 12).exec_failures, None);
    assert_eq!(process(&tree, 10).fork_failures, None);
    assert_eq!(
        (tree.totals.failed_execs, tree.totals.failed_forks),
        (None, None)
    );
}

#[test]
fn limits_that_change_again_and_again_are_not_all_told_apart() {
    let mut story = story();
    for limit in 0..1000 {
        story.fork_refused(11, RefusedBy::Cgroup, limit, Some("job"));
    }
    let tree = story.exit(11, 1).exit(12, 0).exit(10, 0).tree();
    let failed = process(&tree, 11).fork_failures.as_ref().unwrap();
    assert_eq!(failed.len(), 65);
    assert_eq!(failed.values().sum::<u64>(), 1000);
    let rest = ForkFailed {
        errno: 11,
        ..ForkFailed::default()
    };
    assert_eq!(failed[&rest], 1000 - 64);
}

#[test]
fn more_failures_than_are_kept_are_counted() {
    let mut story = story();
    for n in 0..1000 {
        story.exec_failed(11, 2, &format!("/{n}"));
    }
    let tree = story.exit(11, 1).exit(12, 0).exit(10, 0).tree();
    let failed = process(&tree, 11);
    let kept = failed.exec_failures.as_ref().unwrap();
    let names: Vec<_> = kept.iter().map(|f| &f.filename[..]).collect();
    assert_eq!(
        (names.len(), names[254], names[255]),
        (256, &b"/254"[..], &b"/999"[..])
    );
    assert_eq!(failed.failed_execs, Some(1000));
}

#[test]
fn who_waited_until_killed_was_blocked_and_who_ran_was_not() {
    let mut story = story();
    story
        .thread(11, 21)
        .after(2000)
        .signal(10, 11, KILL)
        .signal(10, 12, KILL);
    story
        .slept(11, 11, 1900, "futex")
        .slept(11, 21, 1500, "read");
    story
        .after(1)
        .thread_exit(11, 21)
        .killed(11, KILL)
        .killed(12, KILL);
    let tree = story.exit(10, 0).tree();
    let blocked = process(&tree, 11).blocked_at_end.as_ref().unwrap();
    assert_eq!((blocked.kind(), blocked.ns), ("futex", 1500 * MS));
    // No wait is told of it: it ran, or had just run.
    assert_eq!(process(&tree, 12).blocked_at_end, None);
}

#[test]
fn a_thread_may_be_seen_to_run_before_the_signal_that_woke_it_is_seen() {
    for (ms, is_blocked) in [(100, true), (101, false)] {
        let mut story = story();
        story.after(2000).slept(11, 11, 1900, "futex").after(ms);
        story
            .signal(10, 11, KILL)
            .after(1)
            .killed(11, KILL)
            .exit(12, 0);
        let tree = story.exit(10, 0).tree();
        let blocked = &process(&tree, 11).blocked_at_end;
        assert_eq!(blocked.is_some(), is_blocked, "{ms} ms");
    }
}

#[test]
fn one_thread_that_ran_is_enough_to_be_not_blocked() {
    let mut story = story();
    story.thread(11, 21).after(2000).signal(10, 11, KILL);
    story.slept(11, 11, 1900, "futex").after(1);
    story.thread_exit(11, 21).killed(11, KILL).exit(12, 0);
    assert_eq!(process(&story.exit(10, 0).tree(), 11).blocked_at_end, None);
}

#[test]
fn a_thread_that_ended_long_before_does_not_count() {
    let mut story = story();
    story
        .thread(11, 21)
        .after(10)
        .thread_exit(11, 21)
        .after(3000);
    story
        .signal(10, 11, KILL)
        .slept(11, 11, 2500, "wait4")
        .after(1);
    let tree = story.killed(11, KILL).exit(12, 0).exit(10, 0).tree();
    let blocked = process(&tree, 11).blocked_at_end.as_ref().unwrap();
    assert_eq!((blocked.kind(), blocked.ns), ("wait", 2500 * MS));
}

#[test]
fn who_waited_but_ended_by_itself_or_was_stopped_was_not_blocked() {
    let mut story = story();
    story
        .after(2000)
        .slept(11, 11, 1900, "nanosleep")
        .exit(11, 0);
    story
        .signal(10, 12, KILL)
        .stopped(12, 1500)
        .killed(12, KILL);
    let tree = story.exit(10, 0).tree();
    assert_eq!(process(&tree, 11).blocked_at_end, None);
    assert_eq!(process(&tree, 12).blocked_at_end, None);
    assert_eq!(process(&tree, 12).stopped_ns, Some(1500 * MS));
}

#[test]
fn who_waits_on_at_the_end_is_blocked_if_all_of_it_does() {
    let mut story = story();
    story.thread(11, 21).after(2000).exit(10, 0);
    story.still_there(11, false).still_there(12, false);
    story
        .waits_on(11, 11, 1900, "futex")
        .waits_on(12, 12, 1000, "epoll_wait");
    let tree = story.tree();
    assert_eq!(process(&tree, 11).blocked_at_end, None);
    let blocked = process(&tree, 12).blocked_at_end.as_ref().unwrap();
    assert_eq!((blocked.kind(), blocked.ns), ("other", 1000 * MS));
    let tree = story.waits_on(11, 21, 500, "futex").tree();
    assert_eq!(
        process(&tree, 11).blocked_at_end.as_ref().unwrap().ns,
        500 * MS
    );
}

#[test]
fn an_exec_by_another_thread_leaves_one_thread() {
    let mut story = story();
    story.thread(11, 21).after(200).slept(11, 11, 150, "futex");
    story
        .thread_exit(11, 11)
        .exec_from(11, 21, &["/bin/x"])
        .after(3000);
    story
        .signal(10, 11, KILL)
        .slept(11, 11, 2900, "read")
        .after(1);
    let tree = story.killed(11, KILL).exit(12, 0).exit(10, 0).tree();
    assert_eq!(
        process(&tree, 11).blocked_at_end.as_ref().unwrap().kind(),
        "read"
    );
}

#[test]
fn the_tree_stalls_while_all_of_it_waits() {
    let mut story = story();
    // Both children and the root wait from 2000 to 5000 ms, one of them a little longer.
    story
        .after(5000)
        .slept(11, 11, 3000, "futex")
        .slept(12, 12, 3100, "futex");
    story.slept(10, 10, 4000, "wait4").after(10);
    story.exit(11, 0).exit(12, 0).exit(10, 0);
    let tree = story.tree();
    let stalls = tree.stalls.as_ref().unwrap();
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    assert_eq!(stalls[0].ns(), 3000 * MS);
    // While one of them runs there is none.
    let mut busy = self::story();
    busy.after(5000)
        .slept(11, 11, 3000, "futex")
        .slept(10, 10, 4000, "wait4");
    busy.exit(11, 0).exit(12, 0).exit(10, 0);
    assert_eq!(busy.tree().stalls, Some(Vec::new()));
    busy.recording(|r| r.sleep_ns = None);
    assert_eq!(busy.tree().stalls, None);
}

#[test]
fn a_tree_that_waits_on_at_the_end_stalls_until_then() {
    let mut story = story();
    story.exit(12, 0).exit(10, 0).after(4000);
    story.still_there(11, false).waits_on(11, 11, 3900, "futex");
    let stalls = story.tree().stalls.unwrap();
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    assert_eq!(stalls[0].ns(), 3900 * MS);
}

#[test]
fn sessions_and_moves_are_kept() {
    let mut story = story();
    story.setsid(11).after(1).setsid(11).moved(12, "/jobs/1");
    let tree = story.exit(11, 0).exit(12, 0).exit(10, 0).tree();
    assert!(process(&tree, 11).session_ns.is_some());
    assert_eq!(process(&tree, 12).session_ns, None);
    assert_eq!(process(&tree, 12).moves[0].1.path, b"/jobs/1");
}
