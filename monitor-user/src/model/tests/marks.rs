//! Moments that programs mark.

use super::*;

fn texts(process: &Process) -> Vec<String> {
    let text = |mark: &Mark| String::from_utf8_lossy(&mark.text).into_owned();
    process.marks.iter().map(text).collect()
}

#[test]
fn a_mark_is_of_whom_it_was_made_by() {
    let mut story = Story::new();
    story.root(10, &["/bin/sh", "run"]).after(1);
    story.fork(10, 11).after(1);
    story.exec(11, &["/usr/bin/rtrace", "mark", "first", "part"]);
    let now = story.events().last().unwrap().time_ns;
    story.exit(11, 0).after(1).thread(10, 12);
    story
        .rename(10, 12, "@second")
        .rename(10, 12, "idle")
        .after(1);
    // Without a fork it marks itself.
    story.fork(10, 13).after(1).exec(13, &["/bin/sh"]);
    story.fork(13, 14).exit(14, 0).exit(13, 0);
    story
        .exec(10, &["rtrace", "mark", "last"])
        .exit(10, 0)
        .after(300);
    let tree = story.tree();
    assert_eq!(texts(of(&tree, 10)), ["first part", "second", "last"]);
    assert_eq!(of(&tree, 10).marks[0].ns, now);
    for pid in [11, 13, 14] {
        assert_eq!(of(&tree, pid).marks, [], "{pid}");
    }
    assert!(tree.trust.complete);
}

#[test]
fn too_many_marks_are_counted_instead_of_kept() {
    let mut story = Story::new();
    story.root(10, &["/bin/sh"]).after(1);
    for _ in 0..10_002 {
        story.rename(10, 10, "@again");
    }
    story.exit(10, 0).after(300);
    let tree = story.tree();
    assert_eq!(of(&tree, 10).marks.len(), 10_000);
    let note = "2 marks are left out: of each process only the first 10,000 are kept.";
    assert_eq!(tree.trust.notes, [note]);
}
