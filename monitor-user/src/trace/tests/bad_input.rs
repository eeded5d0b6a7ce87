//! Files that aren't traces, and traces by other versions.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;

use super::random::Random;
use super::{read, scratch, small_groups, write};
use crate::event::Event;
use crate::trace::encode::{Rows, kind_of};
use crate::trace::schema::Kind;
use crate::trace::{Trace, tail_path};

fn message(path: &Path) -> String {
    read(path).unwrap_err().to_string()
}

/// Writes a Parquet file as another program would, with a version of the trace format if given.
fn foreign(path: &Path, columns: Vec<(&str, ArrayRef)>, version: Option<&str>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    if let Some(version) = version {
        let pair = KeyValue::new("rtrace.schema_version".to_owned(), version.to_owned());
        writer.append_key_value_metadata(pair);
    }
    writer.close().unwrap();
}

/// The columns of some events, the kind as plain text.
fn columns(events: &[Event]) -> Vec<(&'static str, ArrayRef)> {
    let mut rows = Rows::new(0);
    for event in events {
        rows.push(event);
    }
    let batch = rows.finish().unwrap();
    let kinds = events.iter().map(|event| kind_of(&event.what).name());
    let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(kinds));
    crate::trace::schema::COLUMNS
        .iter()
        .zip(batch.columns())
        .map(|(column, array)| match column.name {
            "kind" => ("kind", Arc::clone(&kinds)),
            name => (name, Arc::clone(array)),
        })
        .collect()
}

#[test]
fn files_that_are_no_trace_are_refused_in_one_line() {
    let (folder, path) = scratch();
    assert_eq!(message(&path), "there is no such file");
    assert_eq!(message(folder.path()), "it is a folder, not a trace file");
    assert_eq!(message(Path::new("/dev/null")), "it is not a regular file");
    fs::write(&path, "").unwrap();
    assert_eq!(message(&path), "the file is empty");
    let not_parquet = "it is not a trace: not a Parquet file";
    for bytes in [&b"P"[..], b"PAR", b"hello, this is text\n", &[0; 4096]] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(message(&path), not_parquet);
    }
    let mut random = Random(12);
    let bytes: Vec<u8> = (0..5000).map(|_| random.next().to_le_bytes()[0]).collect();
    fs::write(&path, bytes).unwrap();
    assert_eq!(message(&path), not_parquet);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    foreign(&path, vec![("time_ns", Arc::clone(&numbers))], None);
    assert_eq!(
        message(&path),
        "it is a Parquet file, but not a trace recorded by rtrace"
    );
    foreign(&path, vec![("time_ns", Arc::clone(&numbers))], Some("1.0"));
    assert_eq!(message(&path), "the trace has no column kind");
    foreign(&path, vec![("kind", numbers)], Some("x"));
    assert_eq!(
        message(&path),
        "the metadata of the trace is damaged: version \"x\""
    );
}

#[test]
fn a_trace_without_its_end_and_its_tail_is_refused() {
    let (_folder, path) = scratch();
    write(&path, &Random(13).events(100), small_groups(30));
    let whole = fs::read(&path).unwrap();
    let expected = format!(
        "the recording was cut short and {} is missing",
        tail_path(&path).display()
    );
    for length in (4..whole.len()).step_by(97).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(message(&path), expected);
    }
    let mut damaged = whole.clone();
    let footer = whole.len() - 1000;
    damaged[footer..footer + 900].fill(0xff);
    fs::write(&path, damaged).unwrap();
    assert_eq!(
        message(&path),
        "the file is damaged: its footer makes no sense"
    );
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    fs::write(tail_path(&path), "something else").unwrap();
    assert!(message(&path).ends_with("can't be used: it is not the tail of a trace"));
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let (_folder, path) = scratch();
    write(&path, &Random(14).events(3), small_groups(30));
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    // Root may read everything; the thread that reads is therefore somebody else to the file system.
    let found = std::thread::spawn(move || {
        nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
        message(&path)
    });
    assert_eq!(found.join().unwrap(), "permission denied");
}

#[test]
fn another_major_version_is_refused_and_another_minor_one_is_read() {
    let (_folder, path) = scratch();
    let events = Random(15).events(50);
    foreign(&path, columns(&events), Some("1.99"));
    assert_eq!(read(&path).unwrap(), events);
    foreign(&path, columns(&events), Some("2.0"));
    assert_eq!(
        message(&path),
        "it has trace format 2.0, this rtrace reads 1.x: use a newer rtrace"
    );
    foreign(&path, columns(&events), Some("0.3"));
    assert_eq!(
        message(&path),
        "it has trace format 0.3, this rtrace reads 1.x: use an older rtrace"
    );
}

#[test]
fn unknown_kinds_are_counted_and_unknown_columns_ignored() {
    let (_folder, path) = scratch();
    let events = Random(16).events(40);
    let mut table = columns(&events);
    let kinds = events.iter().enumerate().map(|(row, event)| match row % 4 {
        0 => "teleport",
        _ => kind_of(&event.what).name(),
    });
    table[1].1 = Arc::new(StringArray::from_iter_values(kinds));
    let new: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
    table.insert(3, ("a_new_column", new));
    foreign(&path, table, Some("1.1"));
    let trace = Trace::open(&path).unwrap();
    let expected: Vec<&Event> = (events.iter().enumerate())
        .filter(|(row, _)| row % 4 != 0)
        .map(|(_, event)| event)
        .collect();
    for _ in 0..2 {
        let found: Vec<Event> = trace.events().map(Result::unwrap).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        assert_eq!(trace.skipped(), [("teleport".to_owned(), 10)].into());
    }
}

#[test]
fn a_missing_column_counts_as_null() {
    let (_folder, path) = scratch();
    let events = [
        Random(17).event(Kind::Reaped),
        Random(17).event(Kind::Snapshot),
    ];
    let mut table = columns(&events);
    table.retain(|(name, _)| *name != "cpu_ns" && *name != "zombie");
    foreign(&path, table, Some("1.0"));
    let trace = Trace::open(&path).unwrap();
    let found: Vec<Event> = trace.events().map(Result::unwrap).collect();
    let mut expected = events[0].clone();
    if let crate::event::What::Reaped(reaped) = &mut expected.what {
        reaped.cpu_ns = None;
    }
    assert_eq!(found, [expected]);
    // Nobody knows whether it was a zombie, so there is no snapshot.
    assert_eq!(trace.skipped(), [("snapshot".to_owned(), 1)].into());
}

#[test]
fn a_column_of_another_type_is_refused() {
    let (_folder, path) = scratch();
    let mut table = columns(&Random(18).events(2));
    table[3].1 = Arc::new(StringArray::from(vec!["1", "2"]));
    foreign(&path, table, Some("1.0"));
    assert_eq!(message(&path), "column pid has type Utf8, not uint32");
}

#[test]
fn a_damaged_trace_gives_events_or_an_error() {
    let (_folder, path) = scratch();
    let mut random = Random(19);
    write(&path, &random.events(100), small_groups(40));
    let whole = fs::read(&path).unwrap();
    let mut errors = 0;
    for _ in 0..1500 {
        let mut damaged = whole.clone();
        let at = random.below(damaged.len());
        damaged[at] ^= 1 << random.below(8);
        fs::write(&path, damaged).unwrap();
        if let Err(error) = read(&path) {
            assert!(!error.to_string().contains('\n'), "{error}");
            errors += 1;
        }
    }
    assert!(errors > 100, "{errors}");
}
