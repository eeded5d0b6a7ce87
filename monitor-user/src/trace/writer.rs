//! Writes a trace so that a kill at any instant leaves something that can be read.
//!
//! Rows go to column builders, from there in batches to the row group that the Parquet writer is
//! encoding, and with each tick to the tail too. When a row group closes its bytes go to `NAME`,
//! and only then does a new tail, whose footer knows of that group, take the place of the old one:
//! until then the old tail still has all rows of the group, and its footer ends before it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::encode::{Rows, kind_of};
use super::error::WriteError;
use super::files::{self, Owner, tail_path};
use super::metadata::{self, Fields};
use super::schema::{Col, Kind, arrow_schema};
use super::tail::TailWriter;
use crate::event::{Event, Recording};

/// Rows that are handed to the Parquet writer at once.
const BATCH_ROWS: usize = 8192;
/// Names, paths and arguments that are handed over at once, bytes.
const BATCH_TEXT_BYTES: usize = 4 << 20;
/// Batches that may wait for the next tick; more are written at once.
const PENDING_BATCHES: usize = 8;

/// Limits of a [`TraceWriter`].
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// Rows after which a row group closes.
    pub group_rows: usize,
    /// Estimated size at which a row group closes, bytes.
    pub group_bytes: usize,
    /// Bytes appended to the tail after which a row group closes: hours with few events stay small.
    pub tail_bytes: u64,
    /// Least time between two writes to the tail, ns.
    pub tail_interval_ns: u64,
    /// User and group of the files; `None` for those of the process.
    pub owner: Option<Owner>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            group_rows: 256 << 10,
            group_bytes: 32 << 20,
            tail_bytes: 64 << 20,
            // Shorter than a recorder's interval: a tick that comes a little early isn't left out.
            tail_interval_ns: 300_000_000,
            owner: None,
        }
    }
}

/// Writes one trace.
///
/// The first error is returned by the call that meets it. From then on [`push`](Self::push) and
/// [`tick`](Self::tick) do nothing and return `Ok`, and [`finish`](Self::finish) returns that error
/// again: a recorder may go on to watch its command without a word per event. What was written
/// until then stays readable.
pub struct TraceWriter {
    path: PathBuf,
    options: WriterOptions,
    rows: Rows,
    counts: [u64; Kind::ALL.len()],
    /// Batches that the tail doesn't have yet.
    pending: Vec<RecordBatch>,
    parquet: ArrowWriter<File>,
    tail: TailWriter,
    recording: Recording,
    last_tick_ns: Option<u64>,
    failure: Option<WriteError>,
}

impl TraceWriter {
    /// Creates a trace with the default limits. From here on it can be read.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`] if `path` exists (see [`set_aside`](super::set_aside)) or the system
    /// refuses.
    pub fn create(path: &Path, recording: &Recording) -> Result<Self, WriteError> {
        Self::create_with(path, recording, WriterOptions::default())
    }

    /// Creates a trace with other limits.
    ///
    /// # Errors
    ///
    /// See [`create`](Self::create).
    pub fn create_with(
        path: &Path,
        recording: &Recording,
        options: WriterOptions,
    ) -> Result<Self, WriteError> {
        let encode = |error: serde_json::Error| WriteError::encode(path, &error);
        let file = files::create_new(path, options.owner)?;
        let mut parquet = ArrowWriter::try_new(file, arrow_schema(), Some(properties()?))
            .map_err(|error| WriteError::parquet(path, error))?;
        parquet
            .sync()
            .map_err(|error| WriteError::io("write", path, error))?;
        let counts = [0; Kind::ALL.len()];
        let footer = footer_so_far(&parquet).map_err(|error| WriteError::parquet(path, error))?;
        let tail = TailWriter::create(
            tail_path(path),
            options.owner,
            &footer,
            parquet.bytes_written() as u64,
            metadata::fields(recording, &by_name(&counts)).map_err(encode)?,
        )?;
        Ok(Self {
            path: path.to_owned(),
            options,
            rows: Rows::new(recording.rss_bound_bytes),
            counts,
            pending: Vec::new(),
            parquet,
            tail,
            recording: recording.clone(),
            last_tick_ns: None,
            failure: None,
        })
    }

    /// Adds an event. Events must come in the order in which they are to be read.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`] of this writer, once.
    pub fn push(&mut self, event: &Event) -> Result<(), WriteError> {
        if self.failure.is_some() {
            return Ok(());
        }
        self.rows.push(event);
        self.counts[kind_of(&event.what) as usize] += 1;
        let in_group = self.parquet.in_progress_rows() + self.rows.len();
        let full = self.rows.len() >= BATCH_ROWS
            || self.rows.text_bytes() >= BATCH_TEXT_BYTES
            || in_group >= self.options.group_rows;
        if full {
            self.attempt(Self::hand_over)
        } else {
            Ok(())
        }
    }

    /// Brings the tail up to date if it is due, with what is known about the recording by now.
    /// `now_ns`: the time, ns since boot or any other start.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`] of this writer, once.
    pub fn tick(&mut self, recording: &Recording, now_ns: u64) -> Result<(), WriteError> {
        let due = self
            .last_tick_ns
            .is_none_or(|last| now_ns.saturating_sub(last) >= self.options.tail_interval_ns);
        if self.failure.is_some() || !due {
            return Ok(());
        }
        self.last_tick_ns = Some(now_ns);
        self.learn(recording);
        self.attempt(|writer| {
            if !files::still_there(&writer.path, writer.parquet.inner()) {
                let path = writer.path.clone();
                return Err(WriteError::Replaced { path });
            }
            writer.hand_over()?;
            writer.write_tail()
        })
    }

    /// Ends the trace: the last row group and the footer are written, the tail is removed.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`] of this writer, also if it was returned before. What the last tick
    /// wrote can then still be read.
    pub fn finish(mut self, recording: &Recording) -> Result<(), WriteError> {
        self.learn(recording);
        // The tail first: if the disk is full, at least the end of the recording is in there.
        self.attempt(|writer| {
            writer.hand_over()?;
            writer.write_tail()
        })?;
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let fields = self.fields()?;
        for (key, value) in metadata::key_values(&fields) {
            self.parquet
                .append_key_value_metadata(KeyValue::new(key, value));
        }
        self.parquet
            .finish()
            .map_err(|error| WriteError::parquet(&self.path, error))?;
        if !files::still_there(&self.path, self.parquet.inner()) {
            return Err(WriteError::Replaced { path: self.path });
        }
        self.tail.remove()
    }

    /// Rows so far, by kind; only kinds that occurred.
    pub fn rows(&self) -> BTreeMap<String, u64> {
        by_name(&self.counts)
    }

    /// Why the writer gave up, if it did.
    pub fn failure(&self) -> Option<&WriteError> {
        self.failure.as_ref()
    }

    fn learn(&mut self, recording: &Recording) {
        self.recording.clone_from(recording);
        self.rows.set_bound(recording.rss_bound_bytes);
    }

    /// Does something that may fail, and remembers if it did.
    fn attempt(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        if self.failure.is_some() {
            return Ok(());
        }
        step(self).inspect_err(|error| self.failure = Some(error.clone()))
    }

    /// Hands the collected rows to the Parquet writer, and closes the row group if it is full.
    fn hand_over(&mut self) -> Result<(), WriteError> {
        if self.rows.len() > 0 {
            let batch = self
                .rows
                .finish()
                .map_err(|error| WriteError::encode(&self.path, &error))?;
            self.parquet
                .write(&batch)
                .map_err(|error| WriteError::parquet(&self.path, error))?;
            self.pending.push(batch);
        }
        let rows = self.parquet.in_progress_rows();
        let full = rows >= self.options.group_rows
            || self.parquet.in_progress_size() >= self.options.group_bytes
            || self.tail.appended() >= self.options.tail_bytes;
        if rows > 0 && full {
            self.close_group()
        } else if self.pending.len() >= PENDING_BATCHES {
            self.write_tail()
        } else {
            Ok(())
        }
    }

    fn close_group(&mut self) -> Result<(), WriteError> {
        self.parquet
            .flush()
            .map_err(|error| WriteError::parquet(&self.path, error))?;
        self.parquet
            .sync()
            .map_err(|error| WriteError::io("write", &self.path, error))?;
        let footer =
            footer_so_far(&self.parquet).map_err(|error| WriteError::parquet(&self.path, error))?;
        let fields = self.fields()?;
        self.tail
            .replace(&footer, self.parquet.bytes_written() as u64, fields)?;
        self.pending.clear();
        Ok(())
    }

    fn write_tail(&mut self) -> Result<(), WriteError> {
        let fields = self.fields()?;
        self.tail.append(&self.pending, &fields)?;
        self.pending.clear();
        Ok(())
    }

    fn fields(&self) -> Result<Fields, WriteError> {
        metadata::fields(&self.recording, &self.rows())
            .map_err(|error| WriteError::encode(&self.path, &error))
    }
}

fn by_name(counts: &[u64; Kind::ALL.len()]) -> BTreeMap<String, u64> {
    Kind::ALL
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| (kind.name().to_owned(), *count))
        .collect()
}

fn properties() -> Result<WriterProperties, WriteError> {
    let level = ZstdLevel::try_new(1).map_err(|e| WriteError::parquet(Path::new(""), e))?;
    // Times only grow: their differences are small, and a dictionary of them would be as large as they.
    let time = || ColumnPath::from(Col::TimeNs.column().name);
    Ok(WriterProperties::builder()
        .set_created_by(concat!("rtrace ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_column_dictionary_enabled(time(), false)
        .set_column_encoding(time(), Encoding::DELTA_BINARY_PACKED)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        // The writer closes row groups itself.
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .build())
}

/// The footer that the file would get if it ended after its last whole row group.
fn footer_so_far(parquet: &ArrowWriter<File>) -> Result<Vec<u8>, ParquetError> {
    let schema = parquet::arrow::ArrowSchemaConverter::new().convert(&arrow_schema())?;
    let groups = parquet.flushed_row_groups().to_vec();
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let schema: Arc<SchemaDescriptor> = Arc::new(schema);
    let facts = FileMetaData::new(2, rows, None, None, schema, None);
    let metadata = ParquetMetaData::new(facts, groups);
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &metadata).finish()?;
    // Length and magic bytes make sense at the end of a file only.
    footer.truncate(footer.len().saturating_sub(8));
    Ok(footer)
}

#[cfg(test)]
#[path = "tests/failure.rs"]
mod failure;
