//! What a writer does when the system refuses.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use super::{TraceWriter, WriterOptions};
use crate::event::{Event, Exit, Recording, What};
use crate::trace::{Trace, WriteError, tail_path};

fn event(time_ns: u64) -> Event {
    Event {
        time_ns,
        cpu: 0,
        subject: None,
        what: What::Exit(Exit::default()),
    }
}

fn writer(path: &Path) -> TraceWriter {
    let options = WriterOptions {
        group_rows: 10,
        ..WriterOptions::default()
    };
    let mut writer = TraceWriter::create_with(path, &Recording::default(), options).unwrap();
    writer.push(&event(0)).unwrap();
    writer.tick(&Recording::default(), 0).unwrap();
    writer
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// Pushes until something fails and a while after; what failed, and that it failed once.
fn first_failure(writer: &mut TraceWriter) -> WriteError {
    let mut failures = Vec::new();
    for time in 1..100 {
        failures.extend(writer.push(&event(time)).err());
        let now = time * 1_000_000_000;
        failures.extend(writer.tick(&Recording::default(), now).err());
    }
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures.remove(0)
}

#[test]
fn a_full_disk_is_named_once_and_what_was_written_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut writer = writer(&path);
    writer.tail.divert(full());
    let failure = first_failure(&mut writer);
    assert_eq!(failure.io_kind(), Some(ErrorKind::StorageFull));
    assert_eq!(
        failure.to_string(),
        format!(
            "cannot write {}: No space left on device (os error 28)",
            tail_path(&path).display()
        )
    );
    let with_causes = format!("{:#}", anyhow::Error::from(failure.clone()));
    assert_eq!(with_causes, failure.to_string(), "nothing is said twice");
    assert!(writer.failure().is_some());
    let again = writer.finish(&Recording::default()).unwrap_err();
    assert_eq!(again.to_string(), failure.to_string());
    let trace = Trace::open(&path).unwrap();
    assert!(trace.recording().cut_short);
    assert_eq!(trace.events().count(), 1);
}

#[test]
fn a_full_disk_under_the_trace_itself_leaves_the_tail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut writer = writer(&path);
    *writer.parquet.inner_mut() = full();
    for time in 1..9 {
        writer.push(&event(time)).unwrap();
    }
    let failure = writer.push(&event(9)).unwrap_err();
    assert_eq!(failure.io_kind(), Some(ErrorKind::StorageFull));
    writer.push(&event(10)).unwrap();
    drop(writer);
    assert_eq!(Trace::open(&path).unwrap().events().count(), 1);
}

#[test]
fn a_folder_that_vanishes_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut writer = writer(&path);
    fs::remove_dir_all(folder.path()).unwrap();
    let failure = first_failure(&mut writer);
    assert_eq!(
        failure.to_string(),
        format!(
            "{} was removed or replaced while it was written",
            path.display()
        )
    );
}

#[test]
fn a_trace_that_is_replaced_at_the_end_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let writer = writer(&path);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    let failure = writer.finish(&Recording::default()).unwrap_err();
    assert!(matches!(failure, WriteError::Replaced { .. }), "{failure}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_trace_is_not_created_over_something_or_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    fs::write(&path, "mine").unwrap();
    let kind = |path: &Path| {
        TraceWriter::create(path, &Recording::default())
            .err()
            .and_then(|error| error.io_kind())
    };
    assert_eq!(kind(&path), Some(ErrorKind::AlreadyExists));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    let nowhere = folder.path().join("no/t.parquet");
    assert_eq!(kind(&nowhere), Some(ErrorKind::NotFound));
}
