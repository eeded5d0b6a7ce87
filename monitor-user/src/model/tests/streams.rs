//! Streams kept as text: each was a question once.

use super::*;
use crate::{event::Recording, model::testkit::text};

fn tree(stream: &str) -> Tree {
    let (events, mut recording) = text::parse(stream).unwrap();
    let last = events.iter().map(|e| e.time_ns).max();
    if !recording.cut_short && recording.end_ns.is_none() {
        recording = Recording {
            end_ns: last,
            ..recording
        };
    }
    let mut model = Model::new();
    for event in &events {
        model.push(event);
    }
    model.finish(&recording)
}

#[test]
fn python_subprocess() {
    let tree = tree(include_str!(
        "../../../tests/fixtures/streams/subprocess.txt"
    ));
    assert_clean(&tree);
    let child = of(&tree, 21);
    assert_eq!(child.created.by, Some(CreatedBy::Vfork));
    assert_eq!(names(child), some(&["python3", "true"]));
    assert_eq!(child.images[0].shared_mm_with.map(|k| k.pid), Some(20));
    assert_eq!(tree.summary.peak().unwrap().rss, 12_582_912);
}

#[test]
fn exit_before_tear_down() {
    let tree = tree(include_str!(
        "../../../tests/fixtures/streams/exit_before_tear_down.txt"
    ));
    assert_clean(&tree);
    let memory = of(&tree, 30).images[0].memory.unwrap();
    assert_eq!(
        (memory.peak.rss(), memory.end_rss),
        (9_437_184, Some(8_388_608))
    );
}
