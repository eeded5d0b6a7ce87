//! What processes wrote over their arguments.

use super::*;

fn titles(tree: &Tree, pid: u32) -> Vec<String> {
    let text = |title: &crate::model::Title| String::from_utf8_lossy(&title.text).into_owned();
    of(tree, pid).titles.iter().map(text).collect()
}

#[test]
fn a_title_is_what_is_not_the_arguments() {
    let mut story = Story::new();
    story.root(10, &["python3", "app.py", ""]).after(1);
    // What fills up the place of the arguments looks like an empty one.
    story.title(10, &["python3", "app.py"], false).after(1);
    story.title(10, &["app: master"], false).after(1);
    story.title(10, &["app: master"], false).after(1);
    story.title(10, &["python3", "app.py"], false).after(1);
    story.exit(10, 0).after(300);
    let tree = story.tree();
    assert_eq!(titles(&tree, 10), ["app: master", "python3 app.py"]);
    assert_clean(&tree);
}

#[test]
fn what_a_child_has_from_its_creator_it_has_not_written() {
    let mut story = Story::new();
    story
        .root(10, &["nginx", "-g", "x"])
        .after(1)
        .fork(10, 11)
        .after(1);
    story
        .title(11, &["nginx", "-g", "x"], false)
        .after(1)
        .exit(11, 0);
    story
        .title(10, &["nginx: master"], false)
        .after(1)
        .fork(10, 12)
        .after(1);
    story.title(12, &["nginx: master"], false).after(1);
    story
        .title(12, &["nginx: worker"], false)
        .after(1)
        .exit(12, 0);
    story.exit(10, 0).after(300);
    let tree = story.tree();
    assert_eq!(titles(&tree, 11), [""; 0]);
    assert_eq!(titles(&tree, 12), ["nginx: worker"]);
    assert_eq!(of(&tree, 12).title().map(|title| title.is_cut), Some(false));
}

#[test]
fn the_beginning_of_long_arguments_is_no_title() {
    let mut story = Story::new();
    story.root(10, &["cc", "aaaa", "bbbb"]).after(1);
    story.title(10, &["cc", "aaaa", "b"], true).after(1);
    // The same without more behind it is one.
    story
        .title(10, &["cc", "aaaa", "b"], false)
        .after(1)
        .exit(10, 0)
        .after(300);
    assert_eq!(titles(&story.tree(), 10), ["cc aaaa b"]);
}

#[test]
fn another_program_ends_it() {
    let mut story = Story::new();
    story
        .root(10, &["a"])
        .after(1)
        .title(10, &["t"], false)
        .after(1);
    story.exec(10, &["b"]).after(1).exit(10, 0).after(300);
    let tree = story.tree();
    assert_eq!(titles(&tree, 10), ["t"]);
    assert_eq!(of(&tree, 10).title(), None);
}

#[test]
fn of_many_the_first_and_the_last_are_kept() {
    let mut story = Story::new();
    story.root(10, &["a"]);
    for n in 0..100 {
        story.after(1).title(10, &[&format!("task {n}")], false);
    }
    story.exit(10, 0).after(300);
    let titles = titles(&story.tree(), 10);
    assert_eq!(
        (titles.len(), titles[62].as_str(), titles[63].as_str()),
        (64, "task 62", "task 99")
    );
}
