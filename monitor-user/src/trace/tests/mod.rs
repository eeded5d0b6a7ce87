//! Tests of the trace file, none of which needs root.

mod bad_input;
mod documentation;
mod kill;
mod random;
mod round_trip;

use std::path::{Path, PathBuf};

use crate::event::{Event, Recording};
use crate::trace::{ReadError, Trace, TraceWriter, WriterOptions};

/// A folder that goes away, with a path for a trace in it.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    (folder, path)
}

/// Row groups so small that a test has many.
fn small_groups(rows: usize) -> WriterOptions {
    WriterOptions {
        group_rows: rows,
        ..WriterOptions::default()
    }
}

fn recording() -> Recording {
    Recording {
        rtrace_version: "0.1.0".to_owned(),
        command: vec!["make".to_owned(), "-j 2".to_owned()],
        host: "123".to_owned(),
        env: [("SLURM_JOB_ID".to_owned(), "7".to_owned())].into(),
        memory_bytes: u64::MAX,
        wall_offset_ns: i64::MIN,
        start_ns: 1,
        rss_bound_bytes: 262_144,
        missing_hooks: vec!["sched_prepare_exec".to_owned()],
        ..Recording::default()
    }
}

fn write(path: &Path, events: &[Event], options: WriterOptions) {
    let mut writer = TraceWriter::create_with(path, &recording(), options).unwrap();
    for event in events {
        writer.push(event).unwrap();
    }
    writer.finish(&recording()).unwrap();
}

fn read(path: &Path) -> Result<Vec<Event>, ReadError> {
    Trace::open(path)?.events().collect()
}
