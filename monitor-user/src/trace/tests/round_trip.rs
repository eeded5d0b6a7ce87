//! What was written is read again.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use arrow_array::Array;

use super::random::Random;
use super::{read, recording, scratch, small_groups, write};
use crate::event::{Event, Recording, What};
use crate::trace::encode::Rows;
use crate::trace::schema::{COLUMNS, Kind};
use crate::trace::{Trace, TraceWriter, WriterOptions, set_aside, tail_path};

#[test]
fn events_of_every_kind_survive_over_several_row_groups() {
    let (_folder, path) = scratch();
    let events = Random(1).events(6000);
    write(&path, &events, small_groups(700));
    let trace = Trace::open(&path).unwrap();
    let again: Vec<Event> = trace.events().collect::<Result<_, _>>().unwrap();
    assert_eq!(again, events);
    assert!(trace.skipped().is_empty());
    assert!(!trace.recording().cut_short);
}

#[test]
fn events_survive_in_the_tail_and_in_groups_alike() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let (_folder, path) = scratch();
        let count = random.below(300);
        let events = random.events(count);
        let options = small_groups(1 + random.below(100));
        let mut writer = TraceWriter::create_with(&path, &recording(), options).unwrap();
        let mut now = 0;
        for event in &events {
            writer.push(event).unwrap();
            if random.below(5) == 0 {
                now += options.tail_interval_ns;
                writer.tick(&recording(), now).unwrap();
            }
        }
        writer
            .tick(&recording(), now + options.tail_interval_ns)
            .unwrap();
        assert_eq!(read(&path).unwrap(), events, "seed {seed}, before the end");
        writer.finish(&recording()).unwrap();
        assert_eq!(read(&path).unwrap(), events, "seed {seed}, after the end");
    }
}

#[test]
fn large_arguments_close_batches_and_groups_by_size() {
    let (_folder, path) = scratch();
    let mut random = Random(3);
    let events: Vec<Event> = (0..200)
        .map(|_| {
            let mut event = random.event(Kind::Exec);
            if let What::Exec(exec) = &mut event.what {
                exec.argv = vec![
                    (0..100_000)
                        .map(|_| random.next().to_le_bytes()[0])
                        .collect(),
                ];
            }
            event
        })
        .collect();
    let options = WriterOptions {
        group_bytes: 1 << 20,
        ..WriterOptions::default()
    };
    write(&path, &events, options);
    let trace = Trace::open(&path).unwrap();
    assert_eq!(read(&path).unwrap(), events);
    assert!(trace.row_groups() > 1);
}

#[test]
fn a_long_tail_closes_the_row_group_and_no_more_often_than_that() {
    let (_folder, path) = scratch();
    let options = WriterOptions {
        tail_bytes: 50_000,
        ..WriterOptions::default()
    };
    let events = Random(4).events(400);
    let mut writer = TraceWriter::create_with(&path, &recording(), options).unwrap();
    let mut written = 0;
    let mut length = fs::metadata(tail_path(&path)).unwrap().len();
    for (second, event) in (0..).zip(&events) {
        writer.push(event).unwrap();
        writer.tick(&recording(), second * 1_000_000_000).unwrap();
        let now = fs::metadata(tail_path(&path)).unwrap().len();
        written += now.saturating_sub(length);
        length = now;
    }
    let groups = Trace::open(&path).unwrap().row_groups();
    assert!(groups > 5, "{groups}");
    assert!(groups as u64 <= written / 50_000 + 1, "{groups}, {written}");
    assert_eq!(read(&path).unwrap(), events);
}

#[test]
fn the_tail_grows_by_new_rows_only_and_not_before_its_time() {
    let (_folder, path) = scratch();
    let tail = tail_path(&path);
    let events = Random(5).events(30);
    let mut writer = TraceWriter::create(&path, &recording()).unwrap();
    writer.push(&events[0]).unwrap();
    writer.tick(&recording(), 1_000_000_000).unwrap();
    let first = fs::read(&tail).unwrap();
    writer.push(&events[1]).unwrap();
    let due = 1_000_000_000 + WriterOptions::default().tail_interval_ns;
    writer.tick(&recording(), due - 1).unwrap();
    assert_eq!(fs::read(&tail).unwrap(), first);
    writer.tick(&recording(), due).unwrap();
    let second = fs::read(&tail).unwrap();
    assert!(second.len() > first.len() && second.starts_with(&first));
    // Nothing new, nothing written.
    writer.tick(&recording(), 9_000_000_000).unwrap();
    assert_eq!(fs::read(&tail).unwrap(), second);
    assert_eq!(read(&path).unwrap(), events[..2]);
}

#[test]
fn facts_about_the_recording_survive() {
    let (_folder, path) = scratch();
    let start = recording();
    let mut writer = TraceWriter::create(&path, &start).unwrap();
    let found = |cut_short| {
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.recording().cut_short, cut_short);
        Recording {
            cut_short: false,
            ..trace.recording().clone()
        }
    };
    assert_eq!(found(true), start);
    writer.push(&Random(6).event(Kind::Exit)).unwrap();
    let middle = Recording {
        lost: [("memory".to_owned(), u64::MAX)].into(),
        ..start
    };
    writer.tick(&middle, 0).unwrap();
    let events = [("exit".to_owned(), 1)].into();
    let expected = Recording {
        events,
        ..middle.clone()
    };
    assert_eq!(found(true), expected);
    let end = Recording {
        end_ns: Some(u64::MAX),
        exit_status: Some(139),
        ..middle
    };
    writer.finish(&end).unwrap();
    let expected = Recording {
        events: expected.events,
        ..end
    };
    assert_eq!(found(false), expected);
}

#[test]
fn every_kind_fills_the_columns_that_the_schema_says() {
    for kind in Kind::ALL {
        let mut rows = Rows::new(5);
        let mut random = Random(7);
        (0..200).for_each(|_| rows.push(&random.event(*kind)));
        let batch = rows.finish().unwrap();
        let filled: BTreeSet<&str> = COLUMNS
            .iter()
            .map(|column| column.name)
            .filter(|name| batch.column_by_name(name).unwrap().null_count() < 200)
            .collect();
        let said: BTreeSet<&str> = COLUMNS
            .iter()
            .filter(|column| column.kinds.contains(kind))
            .map(|column| column.name)
            .collect();
        assert_eq!(filled, said, "{}", kind.name());
    }
}

#[test]
fn only_the_owner_may_read_and_links_are_not_followed() {
    let (folder, path) = scratch();
    let victim = folder.path().join("victim");
    fs::write(&victim, "keep").unwrap();
    symlink(&victim, &path).unwrap();
    assert!(TraceWriter::create(&path, &recording()).is_err());
    fs::remove_file(&path).unwrap();
    symlink(&victim, tail_path(&path)).unwrap();
    symlink(&victim, path.with_extension("parquet.tail.new")).unwrap();
    let _writer = TraceWriter::create(&path, &recording()).unwrap();
    for file in [&path, &tail_path(&path)] {
        let metadata = fs::symlink_metadata(file).unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.mode() & 0o777, 0o600);
    }
    assert_eq!(fs::read(&victim).unwrap(), b"keep");
}

#[test]
fn an_old_trace_stays_readable_when_it_is_set_aside() {
    let (folder, path) = scratch();
    assert!(set_aside(&path).unwrap().is_none());
    let events = Random(8).events(20);
    for generation in 0..2 {
        let mut writer = TraceWriter::create_with(&path, &recording(), small_groups(8)).unwrap();
        for event in &events[generation..] {
            writer.push(event).unwrap();
        }
        writer.tick(&recording(), 0).unwrap();
        drop(writer);
        let old = set_aside(&path).unwrap().unwrap();
        assert_eq!(read(&old).unwrap(), events[generation..]);
        assert!(!path.exists() && !tail_path(&path).exists());
    }
    write(&path, &events, WriterOptions::default());
    let old = set_aside(&path).unwrap().unwrap();
    assert_eq!(read(&old).unwrap(), events);
    assert!(!tail_path(&old).exists());
    let message = set_aside(folder.path()).unwrap_err().to_string();
    assert!(message.ends_with("exists and is not a file"), "{message}");
}
