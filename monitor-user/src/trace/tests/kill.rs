//! A recorder is killed at any instant, and what it leaves is read.

use std::fs;
use std::path::Path;

use super::random::Random;
use super::{read, recording, scratch, small_groups};
use crate::event::Event;
use crate::trace::{Trace, TraceWriter, tail_path};

/// What the two files hold at one moment; `None`: there is no tail.
#[derive(Clone, PartialEq)]
struct Files {
    name: Vec<u8>,
    tail: Option<Vec<u8>>,
}

impl Files {
    fn take(path: &Path) -> Self {
        Self {
            name: fs::read(path).unwrap(),
            tail: fs::read(tail_path(path)).ok(),
        }
    }

    fn put(&self, path: &Path) {
        fs::write(path, &self.name).unwrap();
        match &self.tail {
            Some(tail) => fs::write(tail_path(path), tail).unwrap(),
            None => {
                fs::remove_file(tail_path(path)).ok();
            }
        }
    }
}

/// All states between two moments, as the writer's order of writes allows them; writes may stop at
/// any byte, of which every `stride`th and the last few are taken.
fn between(before: &Files, after: &Files, stride: usize) -> Vec<Files> {
    let cuts = |from: usize, to: usize| {
        (from..=to).filter(move |at| (at - from).is_multiple_of(stride) || at + 9 > to)
    };
    let mut states = Vec::new();
    // First the trace grows, under the old tail; then the tail grows or is replaced at once.
    for length in cuts(before.name.len(), after.name.len()) {
        states.push(Files {
            name: after.name[..length].to_vec(),
            tail: before.tail.clone(),
        });
    }
    if let (Some(old), Some(new)) = (&before.tail, &after.tail)
        && new.starts_with(old)
    {
        for length in cuts(old.len(), new.len()) {
            states.push(Files {
                name: after.name.clone(),
                tail: Some(new[..length].to_vec()),
            });
        }
    }
    states.push(after.clone());
    states
}

#[test]
fn a_kill_at_any_instant_leaves_a_prefix_with_all_of_the_last_tick() {
    let (_folder, path) = scratch();
    let (_copies, copy) = scratch();
    let events = Random(9).events(60);
    let mut writer = TraceWriter::create_with(&path, &recording(), small_groups(13)).unwrap();
    let mut before = Files::take(&path);
    let (mut in_tail, mut states) = (0, 0);
    let mut check = |before: &Files, after: &Files, at_least: usize| {
        for state in between(before, after, 97) {
            state.put(&copy);
            let found: Vec<Event> = read(&copy).unwrap();
            assert!(found.len() >= at_least && events.starts_with(&found));
            states += 1;
        }
    };
    for (index, event) in events.iter().enumerate() {
        writer.push(event).unwrap();
        let after = Files::take(&path);
        check(&before, &after, in_tail);
        before = after;
        if index % 4 == 1 {
            writer
                .tick(&recording(), index as u64 * 1_000_000_000)
                .unwrap();
            let after = Files::take(&path);
            check(&before, &after, in_tail);
            in_tail = index + 1;
            check(&after, &after, in_tail);
            before = after;
        }
    }
    writer.tick(&recording(), u64::MAX).unwrap();
    before = Files::take(&path);
    writer.finish(&recording()).unwrap();
    let after = Files::take(&path);
    assert!(after.tail.is_none());
    check(&before, &after, events.len());
    assert!(states > 1000, "{states}");
}

#[test]
fn a_footer_wins_over_a_tail_that_is_still_there() {
    let (_folder, path) = scratch();
    let events = Random(10).events(40);
    let mut writer = TraceWriter::create_with(&path, &recording(), small_groups(16)).unwrap();
    for event in &events {
        writer.push(event).unwrap();
    }
    writer.tick(&recording(), 0).unwrap();
    let tail = fs::read(tail_path(&path)).unwrap();
    writer.finish(&recording()).unwrap();
    fs::write(tail_path(&path), tail).unwrap();
    assert_eq!(read(&path).unwrap(), events);
    assert!(!Trace::open(&path).unwrap().recording().cut_short);
}

#[test]
fn a_damaged_tail_gives_a_prefix_or_an_error() {
    let (_folder, path) = scratch();
    let mut random = Random(11);
    let events = random.events(50);
    let mut writer = TraceWriter::create_with(&path, &recording(), small_groups(20)).unwrap();
    for (second, event) in (0..).zip(&events) {
        writer.push(event).unwrap();
        writer.tick(&recording(), second * 1_000_000_000).unwrap();
    }
    drop(writer);
    let tail = fs::read(tail_path(&path)).unwrap();
    let (mut prefixes, mut errors) = (0, 0);
    for at in (0..tail.len()).step_by(7) {
        let mut damaged = tail.clone();
        damaged[at] ^= 1 << random.below(8);
        if random.below(4) == 0 {
            damaged.splice(at..at, random.bytes());
        }
        fs::write(tail_path(&path), damaged).unwrap();
        match read(&path) {
            Ok(found) => {
                assert!(events.starts_with(&found));
                prefixes += 1;
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                errors += 1;
            }
        }
    }
    assert!(prefixes > 100 && errors > 100, "{prefixes}, {errors}");
}
