//! Who made whom, programs, threads, ends.

use super::*;
use crate::{
    event::{Event, Oom, Recording, Subject, Thread, ThreadExit, Usage, What},
    model::testkit::{MS, START},
};

#[test]
fn a_normal_tree() {
    let story = family();
    let tree = story.tree();
    assert_clean(&tree);
    assert_eq!(tree.root, Some(story.key(10)));
    let (root, first, second) = (of(&tree, 10), of(&tree, 11), of(&tree, 12));
    assert_eq!(root.created.by, Some(CreatedBy::Root));
    assert_eq!(root.created.creator, None);
    assert_eq!(root.created.creator_threads, Some(1));
    assert_eq!(names(root), some(&["sh"]));
    assert_eq!(root.images[0].argv.as_ref().unwrap()[2], b"true; work");
    assert_eq!(root.end_ns(), Some(START + 66 * MS));

    assert_eq!(first.created.by, Some(CreatedBy::Fork));
    assert_eq!(first.created.creator, Some(story.key(10)));
    assert_eq!(names(first), some(&["sh", "true"]));
    assert_eq!(first.images[0].end_ns, first.images[1].start_ns);
    assert_eq!(first.images[1].end_ns, first.end_ns());
    assert_eq!(first.zombie_ns, Some(20 * MS));
    assert_eq!(first.comm.as_deref(), Some(b"true".as_slice()));

    assert_eq!(second.status, Some(3 << 8));
    assert_eq!(second.final_parent, Some(story.key(10)));
    assert_eq!(second.cpu_ns, Some(2 * MS));
    assert_eq!(tree.totals.processes, 3);
    assert_eq!(tree.totals.max_depth, 1);
    assert_eq!(tree.totals.survivors, Some(0));
    assert_eq!(tree.totals.threads_created, Some(0));
    assert_eq!(tree.summary.max_live(), 2);
}

#[test]
fn depth_counts_creators() {
    let mut story = Story::new();
    story.root(1, &["run"]);
    for pid in 1..200 {
        story.after(1).fork(pid, pid + 1);
    }
    for pid in (1..=200).rev() {
        story.after(1).exit(pid, 0);
    }
    let tree = story.tree();
    assert_eq!(tree.totals.max_depth, 199);
    assert_eq!(tree.summary.max_live(), 200);
}

#[test]
fn a_chain_of_execs_is_one_process_with_many_images() {
    let mut story = Story::new();
    story.root(10, &["run"]).memory(10, 1);
    for (name, mib) in [("env", 2), ("nice", 3), ("python3", 250)] {
        story.after(5).exec(10, &[name]).memory(10, mib);
    }
    let tree = story.after(5).exit(10, 0).tree();
    assert_clean(&tree);
    let root = of(&tree, 10);
    assert_eq!(names(root), some(&["run", "env", "nice", "python3"]));
    assert_eq!(peaks_mib(root), [2, 3, 4, 251].map(Some));
    assert_eq!(tree.totals.processes, 1);
}

#[test]
fn exec_from_another_thread_makes_it_the_leader() {
    let mut story = Story::new();
    story.root(10, &["run"]).thread(10, 11).thread(10, 12);
    story.rename(10, 11, "helper").after(5);
    // The kernel ends the others first, the leader too.
    story
        .thread_exit(10, 12)
        .thread_exit(10, 10)
        .exec_from(10, 11, &["w"]);
    let tree = story.after(5).exit(10, 0).tree();
    assert_clean(&tree);
    let root = of(&tree, 10);
    assert_eq!(names(root), some(&["run", "w"]));
    assert_eq!(root.comm.as_deref(), Some(b"w".as_slice()));
    assert_eq!((root.threads_created, root.threads_max), (Some(2), Some(3)));
    assert_eq!(root.cpu_ns, Some(4 * MS));
}

#[test]
fn a_thread_made_while_another_one_leaves_is_no_third_one() {
    let mut story = Story::new();
    story.root(10, &["run"]).thread(10, 11).after(1);
    // Before 6.16 the event of a thread's end comes after it was counted out and waited for: the next
    // thread is there already.
    let process = story.key(10);
    let tid = |tid| Some(Subject { process, tid });
    let event = |time_ns, subject, what| Event {
        time_ns,
        cpu: 0,
        subject,
        what,
    };
    let made = Thread {
        threads: 2,
        ..Thread::default()
    };
    let left = ThreadExit {
        threads: 2,
        ..ThreadExit::default()
    };
    story
        .event(event(START + 2 * MS, tid(12), What::Thread(made)))
        .event(event(START + 3 * MS, tid(11), What::ThreadExit(left)));
    let tree = story.after(5).exit(10, 0).tree();
    assert_eq!(of(&tree, 10).threads_max, Some(2));
}

#[test]
fn a_leader_may_end_first() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .thread(10, 11)
        .after(5)
        .thread_exit(10, 10);
    story.after(100).end(10, 11, 0);
    let tree = story.tree();
    assert_clean(&tree);
    assert_eq!(of(&tree, 10).end_ns(), Some(START + 105 * MS));
    assert_eq!(of(&tree, 10).threads_max, Some(2));
}

#[test]
fn only_the_leaders_name_is_the_processs() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .thread(10, 11)
        .rename(10, 11, "worker-1");
    story.after(1).fork(10, 20).rename(20, 20, "child");
    let tree = story.tree();
    assert_eq!(of(&tree, 10).comm.as_deref(), Some(b"run".as_slice()));
    assert_eq!(of(&tree, 20).comm.as_deref(), Some(b"child".as_slice()));
    assert_eq!(names(of(&tree, 20)), some(&["run"]));
    assert_eq!(of(&tree, 20).created.creator_threads, Some(2));
}

#[test]
fn a_daemon_has_a_creator_and_another_parent() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .fork(11, 12);
    story.after(1).exit(11, 0).reaped(11).reparent(12, 1);
    story.after(1).exit(10, 0).after(400).exit(12, 0).after(200);
    let tree = story.tree();
    let daemon = of(&tree, 12);
    assert_eq!(daemon.created.creator, Some(story.key(11)));
    assert_eq!(daemon.final_parent.map(|p| p.pid), Some(1));
    assert_eq!(daemon.survived_root, Some(true));
    assert_eq!(of(&tree, 11).survived_root, Some(false));
    assert_eq!(tree.totals.survivors, Some(1));
    assert_eq!(tree.totals.max_depth, 2);
}

#[test]
fn survivors_outlive_the_root_by_more_than_a_quarter_of_a_second() {
    let mut story = Story::new();
    story.root(10, &["run"]).after(1);
    for pid in 11..=14 {
        story.fork(10, pid);
    }
    story
        .after(1)
        .exit(10, 0)
        .after(250)
        .exit(11, 0)
        .after(1)
        .exit(12, 0);
    story.still_there(13, false).still_there(14, true);
    let tree = story.tree();
    let survived: Vec<_> = [11, 12, 13, 14]
        .map(|p| of(&tree, p).survived_root)
        .to_vec();
    // The end of the zombie was lost: it may have come at any time.
    assert_eq!(survived, [Some(false), Some(true), Some(true), None]);
    assert_eq!(of(&tree, 13).ending, Ending::Alive);
    assert_eq!(tree.totals.survivors, None);
}

#[test]
fn a_look_that_comes_too_early_knows_no_survivors() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(10, 0);
    story.after(100).still_there(11, false);
    let tree = story.tree();
    assert_eq!(of(&tree, 11).survived_root, None);
    assert_eq!(tree.totals.survivors, None);
}

#[test]
fn zombies_are_not_alive() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(11, 0);
    story
        .after(900)
        .fork(10, 12)
        .still_there(11, true)
        .still_there(12, false);
    story.still_there(10, false);
    let tree = story.tree();
    assert_clean(&tree);
    let zombie = of(&tree, 11);
    assert_eq!(
        zombie.ending,
        Ending::Ended {
            at: Some(START + 2 * MS)
        }
    );
    assert_eq!((zombie.zombie_ns, zombie.zombie_at_end), (None, Some(true)));
    assert_eq!(tree.summary.max_live(), 2);
    assert_eq!(tree.summary.live(), 2);
}

#[test]
fn who_has_just_ended_may_have_been_reaped() {
    let mut story = Story::new();
    story.root(10, &["run"]).after(1).exit(10, 0);
    story.after(20).still_there(10, true);
    let tree = story.tree();
    assert_clean(&tree);
    assert_eq!(of(&tree, 10).zombie_at_end, None);
}

#[test]
fn a_root_whose_start_was_not_learned_is_found_by_its_pid() {
    let mut story = family();
    story.recording(|r| r.root_start_ns = 0);
    assert_eq!(story.tree().root, Some(story.key(10)));
    assert_clean(&story.tree());
}

#[test]
fn a_pid_can_come_back() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .after(1)
        .exec(11, &["first"]);
    story
        .after(1)
        .exit(11, 1)
        .reaped(11)
        .after(1)
        .fork(10, 11)
        .after(1)
        .exit(11, 2);
    story.reaped(11).exit(10, 0);
    let tree = story.tree();
    assert_clean(&tree);
    let status: Vec<_> = tree
        .processes
        .iter()
        .map(|p| p.status.unwrap() >> 8)
        .collect();
    assert_eq!(status, [0, 1, 2]);
    assert_eq!(names(&tree.processes[1]), some(&["run", "first"]));
    assert_eq!(names(&tree.processes[2]), some(&["run"]));
}

#[test]
fn two_last_threads_are_one_end() {
    let mut story = Story::new();
    story.root(10, &["run"]).thread(10, 11).after(5);
    story.exit_row(10, 11, 1 << 8).end(10, 10, 2 << 8);
    let tree = story.tree();
    assert_clean(&tree);
    let root = of(&tree, 10);
    assert_eq!(root.status, Some(2 << 8));
    assert_eq!(root.cpu_ns, Some(4 * MS));
    assert_eq!(root.threads_created, Some(1));
    assert_eq!(tree.summary.bad_exits(), 1);
}

#[test]
fn final_cpu_time_wins() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .exit(10, 0)
        .reaped_with_cpu(10, 7);
    assert_eq!(of(&story.tree(), 10).cpu_ns, Some(7 * MS));
}

#[test]
fn what_a_process_used_is_known_when_it_was_reaped() {
    let mut story = Story::new();
    let usage = Usage {
        user_ns: Some(3 * MS),
        faults_minor: Some(4),
        ..Usage::default()
    };
    story.root(10, &["run"]).after(1).fork(10, 11);
    story.exit(11, 0).exit(10, 0).reaped_with(10, 7 * MS, usage);
    let tree = story.tree();
    assert_eq!(of(&tree, 10).usage, usage);
    assert_eq!(of(&tree, 11).usage, Usage::default());
}

/// A root with a child that is killed by SIGKILL, or ends by itself; chosen by the OOM killer or not.
fn victim(is_chosen: bool, is_killed: bool) -> Story {
    let mut story = Story::new();
    story.root(10, &["run"]).after(1).fork(10, 11).memory(11, 8);
    if is_chosen {
        story.oom(11, Oom::default());
    }
    story.after(1);
    if is_killed {
        story.killed(11, 9);
    } else {
        story.exit(11, 0);
    }
    story.reaped(11).exit(10, 0);
    story
}

#[test]
fn a_victim_of_the_oom_killer_was_chosen_and_killed() {
    for (is_chosen, is_killed) in [(true, true), (true, false), (false, true), (false, false)] {
        let tree = victim(is_chosen, is_killed).tree();
        let is_victim = is_chosen && is_killed;
        assert_eq!(of(&tree, 11).killed_for_memory, Some(is_victim));
        assert_eq!(of(&tree, 11).oom.is_some(), is_chosen);
        assert_eq!(of(&tree, 10).killed_for_memory, Some(false));
        assert_eq!(tree.totals.oom_kills, Some(u64::from(is_victim)));
    }
}

#[test]
fn who_shares_the_memory_of_a_victim_was_killed_for_it_too() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork(10, 11)
        .vfork(11, 12)
        .fork(11, 13);
    let fork = story.events().iter().find_map(|e| match &e.what {
        What::Fork(fork) if e.subject.is_some_and(|s| s.tid == 11) => fork.mm,
        _ => None,
    });
    let oom = Oom {
        mm: fork,
        ..Oom::default()
    };
    story.oom(11, oom).after(1);
    for pid in [11, 12, 13] {
        story.killed(pid, 9);
    }
    let tree = story.exit(10, 0).tree();
    let killed = [10, 11, 12, 13].map(|pid| of(&tree, pid).killed_for_memory);
    assert_eq!(killed, [Some(false), Some(true), Some(true), Some(false)]);
    assert_eq!(tree.totals.oom_kills, Some(2));
}

#[test]
fn without_the_hook_a_kill_may_have_been_for_memory() {
    let changes: [fn(&mut Recording); 5] = [
        |r| r.missing_hooks.push("mark_victim".into()),
        |r| {
            r.stand_ins.insert("mark_victim".into(), "x".into());
        },
        |r| {
            r.recursion_misses.insert("mark_victim".into(), 1);
        },
        |r| {
            r.lost.insert("oom".into(), 1);
        },
        // A recorder from before that.
        |r| r.abi_version = 1,
    ];
    for change in changes {
        let tree = victim(false, true).recording(change).tree();
        assert_eq!(of(&tree, 11).killed_for_memory, None);
        assert_eq!(of(&tree, 10).killed_for_memory, Some(false));
        assert_eq!(tree.totals.oom_kills, None);
        // What was seen holds.
        let tree = victim(true, true).recording(change).tree();
        assert_eq!(of(&tree, 11).killed_for_memory, Some(true));
    }
}

#[test]
fn an_empty_stream_is_an_empty_tree() {
    let tree = Model::new().finish(&crate::event::Recording::default());
    assert_eq!((tree.root, tree.processes.len()), (None, 0));
    assert_eq!(tree.summary.peak(), None);
    assert!(!tree.trust.complete);
    assert_eq!(tree.totals.max_depth, 0);
}
