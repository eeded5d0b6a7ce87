//! Variables of programs' environments.

use super::*;

fn variables(tree: &Tree, pid: u32) -> Option<Vec<String>> {
    let environment = of(tree, pid).environment.as_ref()?;
    let text = |value: &Vec<u8>| String::from_utf8_lossy(value).into_owned();
    Some(environment.values.iter().map(text).collect())
}

#[test]
fn variables_are_those_of_the_last_program() {
    let mut story = Story::new();
    story
        .root(10, &["a"])
        .environment(10, &["MALLOC_A=1"], true)
        .after(1);
    story
        .exec(10, &["b"])
        .environment(10, &["MALLOC_A=2", "X=3"], true)
        .after(1);
    // Nothing came of this one's.
    story
        .fork(10, 11)
        .after(1)
        .exec(11, &["c"])
        .environment(11, &["X=1"], true)
        .after(1);
    story.exec(11, &["d"]).exit(11, 0).fork(10, 12).exit(12, 0);
    story.exit(10, 0).after(300);
    let tree = story.tree();
    let expected = ["MALLOC_A=2", "X=3"].map(str::to_owned).to_vec();
    assert_eq!(variables(&tree, 10), Some(expected));
    assert_eq!(variables(&tree, 11), None);
    assert_eq!(variables(&tree, 12), None);
    assert_clean(&tree);
}

#[test]
fn an_environment_that_was_cut_is_said() {
    let mut story = Story::new();
    story
        .root(10, &["a"])
        .environment(10, &[], false)
        .exit(10, 0)
        .after(300);
    let tree = story.tree();
    let note =
        "1 environment was too large to be looked through: variables that are kept may be missing.";
    assert_eq!(tree.trust.notes, [note]);
    assert_eq!(variables(&tree, 10), Some(vec![]));
}
