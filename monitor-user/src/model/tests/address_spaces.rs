//! Memory: whose it is, and that it counts once.

use super::*;
use crate::{
    event::Memory,
    model::testkit::{MS, START},
};

#[test]
fn a_peak_has_its_parts_and_its_moment() {
    let mut story = Story::new();
    let state = |anon: u64, file, shmem, swap| Memory {
        anon: anon * MIB,
        file: file * MIB,
        shmem: shmem * MIB,
        swap: swap * MIB,
        vms: (anon + file + shmem + 100) * MIB,
    };
    story
        .root(10, &["run"])
        .after(1)
        .memory_is(10, state(5, 1, 3, 0));
    story
        .after(1)
        .memory_is(10, state(1, 2, 4, 9))
        .after(1)
        .exit(10, 0);
    let tree = story.tree();
    let memory = of(&tree, 10).images[0].memory.unwrap();
    assert_eq!(memory.peak, state(5, 1, 3, 0));
    assert_eq!(memory.peak_ns, START + MS);
    assert_eq!(memory.peak_swap, 9 * MIB);
    assert_eq!(memory.end_rss, Some(7 * MIB));
    assert_eq!(memory.peak_vms, 109 * MIB);
    assert!(memory.kept_at_every_event);
    assert_eq!(tree.summary.peak().unwrap().rss, 9 * MIB);
}

#[test]
fn the_kernels_peak_wins_over_rows() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .memory(10, 99)
        .vanished("memory");
    let tree = story.memory(10, 1).after(1).exit(10, 0).tree();
    assert_eq!(peaks_mib(of(&tree, 10)), [Some(100)]);
    // The sum is made of rows: it is what the rows say.
    assert_eq!(tree.summary.peak().unwrap().rss, 2 * MIB);
}

#[test]
fn a_peak_of_which_looks_were_skipped_keeps_its_bound() {
    let at = |mib: u64| Memory {
        anon: mib * MIB,
        ..Memory::default()
    };
    let bound = |row: u64, peak: u64, peak_bound: u64| {
        let end = crate::event::MmEnd {
            mm: 1,
            peak: at(peak),
            peak_bound: peak_bound * MIB,
            ..crate::event::MmEnd::default()
        };
        let mut track = crate::model::memory::Track::default();
        track.note(START, at(row));
        track.note_end(&end);
        (track.peak.rss() / MIB, track.peak_bound / MIB)
    };
    assert_eq!(bound(5, 7, 2), (7, 2));
    assert_eq!(bound(7, 7, 0), (7, 0));
    // A row that is higher than what the kernel kept: so much less is not known.
    assert_eq!(bound(8, 7, 2), (8, 1));
    assert_eq!(bound(10, 7, 2), (10, 0));
}

#[test]
fn a_vfork_child_shares_and_counts_once() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 100)
        .after(1)
        .vfork(10, 11);
    story
        .after(1)
        .memory(10, 109)
        .after(1)
        .exec(11, &["true"])
        .after(1);
    story
        .memory(10, 199)
        .memory(11, 1)
        .after(1)
        .exit(11, 0)
        .reaped(11);
    let tree = story.exit(10, 0).tree();
    assert_clean(&tree);
    let child = of(&tree, 11);
    assert_eq!(child.created.by, Some(CreatedBy::Vfork));
    assert_eq!(child.images[0].shared_mm_with, Some(story.key(10)));
    assert_eq!(child.images[1].shared_mm_with, None);
    // What the creator did later isn't the child's.
    assert_eq!(peaks_mib(child), [Some(110), Some(2)]);
    assert_eq!(child.images[0].memory.unwrap().end_rss, Some(110 * MIB));
    assert_eq!(peaks_mib(of(&tree, 10)), [Some(200)]);
    assert_eq!(tree.summary.peak().unwrap().rss, 202 * MIB);
    assert_eq!(tree.totals.max_spaces, 2);
}

#[test]
fn clone_vm_shares_for_life() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 49)
        .after(1)
        .clone_vm(10, 11);
    story
        .after(1)
        .memory(11, 59)
        .after(1)
        .exit(11, 0)
        .after(1)
        .exit(10, 0);
    let tree = story.tree();
    assert_clean(&tree);
    assert_eq!(of(&tree, 11).created.by, Some(CreatedBy::CloneVm));
    assert_eq!(of(&tree, 11).images[0].shared_mm_with, Some(story.key(10)));
    assert_eq!(peaks_mib(of(&tree, 11)), [Some(60)]);
    assert_eq!(tree.summary.peak().unwrap().rss, 60 * MIB);
}

#[test]
fn an_owner_that_leaves_first_has_no_share_in_later_peaks() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 9)
        .after(1)
        .clone_vm(10, 11);
    let mm = story.mm(10);
    story.after(1).exit_row(10, 10, 0).after(1).memory(11, 99);
    story.after(1).exit_row(11, 11, 0).close(mm).after(300);
    let tree = story.tree();
    assert_eq!(peaks_mib(of(&tree, 10)), [Some(10)]);
    assert_eq!(peaks_mib(of(&tree, 11)), [Some(100)]);
}

#[test]
fn without_flags_only_memory_tells() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .after(1)
        .fork_without_flags(10, 11, false);
    story.fork_without_flags(10, 12, true);
    let tree = story.tree();
    assert_eq!(of(&tree, 11).created.by, Some(CreatedBy::Fork));
    assert_eq!(of(&tree, 12).created.by, None);
}

#[test]
fn a_copy_counts_before_its_process_is_known() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 99)
        .after(1)
        .copy_before_fork(10);
    story
        .after(1)
        .fork(10, 11)
        .after(1)
        .memory(11, 0)
        .exit(11, 0)
        .reaped(11);
    let tree = story.exit(10, 0).tree();
    assert_clean(&tree);
    let peak = tree.summary.peak().unwrap();
    assert_eq!((peak.rss, peak.time_ns), (200 * MIB, START + MS));
    assert_eq!(peak.top().unwrap().process, Some(story.key(10)));
    assert_eq!(peaks_mib(of(&tree, 11)), [Some(100)]);
}

#[test]
fn a_failed_fork_has_memory_and_no_process() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 99)
        .after(1)
        .failed_fork(10);
    let tree = story.after(1).exit(10, 0).tree();
    assert_clean(&tree);
    assert_eq!(tree.totals.processes, 1);
    assert_eq!(tree.summary.peak().unwrap().rss, 200 * MIB);
    assert_eq!(tree.summary.rss(), 0);
}

#[test]
fn memory_that_others_change_is_its_owners() {
    let mut story = Story::new();
    story.root(10, &["run"]).memory(10, 9);
    let swapped = Memory {
        anon: MIB,
        swap: 8 * MIB,
        ..Memory::default()
    };
    let tree = story
        .after(1)
        .memory_by_others(10, swapped)
        .exit(10, 0)
        .tree();
    assert_eq!(of(&tree, 10).images[0].memory.unwrap().peak_swap, 8 * MIB);
}

#[test]
fn an_ended_address_space_stays_ended() {
    let mut story = Story::new();
    story.root(10, &["run"]).after(1).fork(10, 11);
    let mm = story.mm(11);
    story.after(1).exit(11, 0).after(1).reaped(11);
    let late = crate::event::Event {
        time_ns: START + 50 * MS,
        cpu: 0,
        subject: None,
        what: crate::event::What::Memory {
            mm,
            now: Memory {
                anon: 1 << 40,
                ..Memory::default()
            },
            parts: None,
            churn: None,
            cpu_ns: None,
            charge: None,
        },
    };
    let tree = story.event(late).after(100).exit(10, 0).tree();
    assert_eq!(tree.summary.peak().unwrap().rss, 2 * MIB);
    assert_eq!(peaks_mib(of(&tree, 11)), [Some(1)]);
}

#[test]
fn what_still_runs_has_no_end_value() {
    let mut story = Story::new();
    story
        .root(10, &["run"])
        .memory(10, 9)
        .after(1)
        .still_there(10, false);
    let tree = story.tree();
    assert_clean(&tree);
    let memory = of(&tree, 10).images[0].memory.unwrap();
    assert_eq!((memory.end_rss, memory.peak.rss()), (None, 10 * MIB));
    assert!(!memory.kept_at_every_event);
}
