//! What processes call themselves.

use super::*;

#[test]
fn a_title_stands_beside_the_program_and_can_do_no_harm() {
    let mut story = Story::new();
    story
        .root(10, &["/usr/bin/python3", "/srv/app.py"])
        .after(1);
    story
        .title(10, &["app: master"], false)
        .fork(10, 11)
        .after(1);
    story
        .title(11, &["app: worker \u{1b}[31m"], true)
        .exit(11, 0);
    story.fork(10, 12).exit(12, 0).exit(10, 0).after(300);
    let report = report(&story);
    let shown = text(&report, 120);
    for name in [
        "python3 app.py as app: master ",
        "python3 app.py as app: worker \\x1b[31m (fork) ",
        "python3 app.py (fork) ",
    ] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let worker = &value["processes"][1];
    assert_eq!(worker["title"], "app: worker \u{1b}[31m");
    assert_eq!(
        (
            &worker["titles"][0]["text"],
            &worker["titles"][0]["truncated"]
        ),
        (&worker["title"], &true.into())
    );
    assert!(value["processes"][2]["title"].is_null());
}
