//! Parents that processes have had.

use super::*;
use crate::model::{
    Parent,
    testkit::{MS, START},
};

fn later(story: &Story, pid: u32) -> Vec<(Option<u64>, u32)> {
    let tree = story.tree();
    let parents = of(&tree, pid).later_parents.iter();
    let told = |parent: &Parent| (parent.ns.map(|ns| (ns - START) / MS), parent.key.pid);
    parents.map(told).collect()
}

/// 10 makes 11, which makes 12, which makes 13.
fn line() -> Story {
    let mut story = Story::new();
    story.root(10, &["run"]);
    for pid in 10..13 {
        story.after(1).fork(pid, pid + 1);
    }
    story.after(1);
    story
}

#[test]
fn each_parent_that_ends_gives_its_children_to_the_next() {
    let mut story = line();
    story.exit_to(12, 11).after(1).exit_to(11, 10).after(1);
    story.exit_to(10, 1).after(1).exit(13, 0);
    assert_eq!(
        later(&story, 13),
        [(Some(4), 11), (Some(5), 10), (Some(6), 1)]
    );
    assert_eq!(later(&story, 12), []);
    assert_eq!(of(&story.tree(), 13).final_parent.map(|p| p.pid), Some(1));
}

#[test]
fn who_is_alive_has_the_parent_of_the_look() {
    let mut story = line();
    story.exit_to(12, 1).after(1).exit_to(11, 10).exit(10, 0);
    story.after(400).still_there(13, false);
    assert_eq!(later(&story, 13), [(Some(4), 1)]);
}

#[test]
fn who_ends_before_its_parent_does_has_no_other() {
    let mut story = line();
    story.exit(13, 0).after(1).exit_to(12, 11).exit(11, 0);
    assert_eq!(later(&story.exit(10, 0).clone(), 13), []);
}

#[test]
fn a_child_that_ends_while_its_parent_does_still_had_it() {
    let mut story = line();
    // The row of 12's end comes first, but 13's own end says whose child it was.
    story.exit_to(12, 11).reparent(13, 12).after(1).exit(13, 0);
    story.exit(11, 0).exit(10, 0);
    assert_eq!(later(&story, 13), []);
    let tree = story.tree();
    assert_eq!(of(&tree, 13).final_parent, Some(story.key(12)));
}

#[test]
fn a_parent_that_nothing_explains_came_at_a_time_that_is_not_known() {
    let mut story = line();
    story.exit_to(12, 1).after(1).reparent(13, 77).exit(13, 0);
    story.exit(11, 0).exit(10, 0);
    assert_eq!(later(&story, 13), [(Some(4), 1), (None, 77)]);
    // Nor is it where the end of its first parent was lost.
    let mut story = line();
    story.exit_to(12, 11).lost("exit").after(1).exit(13, 0);
    story.exit(11, 0).exit(10, 0);
    assert_eq!(later(&story, 13), [(None, 11)]);
}

#[test]
fn clone_parent_makes_a_sister() {
    let mut story = line();
    story.clone_parent(12, 14).after(1).exit_to(12, 11);
    story.after(1).exit_to(11, 10).after(1).exit(14, 0);
    story.exit(13, 0).exit(10, 0);
    assert_eq!(later(&story, 14), [(Some(4), 11), (Some(6), 10)]);
    assert_eq!(of(&story.tree(), 14).created.creator, Some(story.key(12)));
}

#[test]
fn ends_that_name_each_other_end_the_search() {
    let mut story = line();
    story.exit_to(12, 11).exit_to(11, 12).after(1).exit(13, 0);
    let tree = story.exit(10, 0).tree();
    assert!(of(&tree, 13).later_parents.len() <= 2);
}
