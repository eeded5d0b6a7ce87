//! Reads a trace: a finished file, or one that was cut short together with its tail.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor};
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaDataReader;

use super::decode::Batch;
use super::error::ReadError;
use super::files::tail_path;
use super::metadata::{self, Fields};
use super::tail::Tail;
use crate::event::{Event, Recording};

/// Rows that are decoded at once; what bounds the memory of a reader beside one page per column.
const BATCH_ROWS: usize = 4096;
const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// A trace that can be read, more than once if need be.
///
/// A trace that is still being recorded can be read too, up to the last half second.
pub struct Trace {
    file: File,
    groups: ArrowReaderMetadata,
    tail: Option<Tail>,
    recording: Recording,
    skipped: RefCell<BTreeMap<String, u64>>,
}

impl Trace {
    /// Opens a trace and reads what it says about the recording.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] that says in one line what is wrong with the file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = open_file(path)?;
        if let Some(groups) = footer(&file)? {
            return Self::finished(file, groups);
        }
        if !begins_as_parquet(&file)? {
            return Err(ReadError::NotParquet);
        }
        let tail_path = tail_path(path);
        if let Some(tail) = Tail::open(&tail_path)? {
            return Self::cut_short(file, tail, &tail_path);
        }
        // A recorder may have ended the file just now: then the footer came before the tail went.
        match footer(&file)? {
            Some(groups) => Self::finished(file, groups),
            None if ends_as_parquet(&file)? => {
                Err(ReadError::damaged(&"its footer makes no sense"))
            }
            None => Err(ReadError::NoTail { tail: tail_path }),
        }
    }

    fn finished(file: File, groups: ArrowReaderMetadata) -> Result<Self, ReadError> {
        let pairs = groups.metadata().file_metadata().key_value_metadata();
        let fields = metadata::from_key_values(
            pairs
                .into_iter()
                .flatten()
                .filter_map(|pair| Some((pair.key.as_str(), pair.value.as_deref()?))),
        )?;
        Self::new(file, groups, None, fields)
    }

    fn cut_short(file: File, mut tail: Tail, path: &Path) -> Result<Self, ReadError> {
        let unusable = |reason: &str| ReadError::BadTail {
            tail: path.to_owned(),
            reason: reason.to_owned(),
        };
        if file.metadata()?.len() < tail.data_bytes {
            return Err(unusable("it belongs to a longer file"));
        }
        let groups = ParquetMetaDataReader::decode_metadata(&tail.footer)
            .and_then(|groups| ArrowReaderMetadata::try_new(Arc::new(groups), options()))
            .map_err(|_error| unusable("its footer is damaged"))?;
        let fields = std::mem::take(&mut tail.fields);
        Self::new(file, groups, Some(tail), fields)
    }

    fn new(
        file: File,
        groups: ArrowReaderMetadata,
        tail: Option<Tail>,
        fields: Fields,
    ) -> Result<Self, ReadError> {
        let mut recording = metadata::recording(fields)?;
        recording.cut_short = tail.is_some();
        Ok(Self {
            file,
            groups,
            tail,
            recording,
            skipped: RefCell::default(),
        })
    }

    /// Facts about the recording. `cut_short` is set if the recorder didn't end the file itself.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The events in the order in which they were written, a batch in memory at a time.
    ///
    /// Rows that can't be made into events are left out and counted, see
    /// [`skipped`](Self::skipped). After an error there are no more events.
    pub fn events(&self) -> Events<'_> {
        self.skipped.borrow_mut().clear();
        Events {
            trace: self,
            source: Source::Start,
            batch: None,
            row: 0,
        }
    }

    /// Rows that the last [`events`](Self::events) left out, by kind: kinds that this version
    /// doesn't know, and rows that lack a value without which they say nothing.
    pub fn skipped(&self) -> BTreeMap<String, u64> {
        self.skipped.borrow().clone()
    }

    /// Row groups in the trace file itself.
    #[cfg(test)]
    pub(super) fn row_groups(&self) -> usize {
        self.groups.metadata().num_row_groups()
    }

    fn skip(&self, kind: &str) {
        let mut skipped = self.skipped.borrow_mut();
        match skipped.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(skipped.insert(kind.to_owned(), 1)),
        }
    }

    fn read_groups(&self) -> Result<ParquetRecordBatchReader, ReadError> {
        let file = self.file.try_clone()?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.groups.clone())
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|error| ReadError::damaged(&error))
    }
}

/// The events of a trace, see [`Trace::events`].
pub struct Events<'a> {
    trace: &'a Trace,
    source: Source,
    batch: Option<Batch>,
    row: usize,
}

/// Where the next batch comes from.
enum Source {
    Start,
    Groups(Box<ParquetRecordBatchReader>),
    /// The tail: frames that were begun, and the rest of the current one.
    Tail(usize, Option<Box<StreamReader<Cursor<Vec<u8>>>>>),
    End,
}

impl Iterator for Events<'_> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let Some(batch) = &self.batch
                && self.row < batch.len()
            {
                self.row += 1;
                match batch.event(self.row - 1) {
                    Ok(event) => return Some(Ok(event)),
                    Err(kind) => self.trace.skip(kind),
                }
            }
            match self.next_batch() {
                Ok(Some(batch)) => {
                    self.batch = Some(batch);
                    self.row = 0;
                }
                Ok(None) => return None,
                Err(error) => {
                    self.source = Source::End;
                    self.batch = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Events<'_> {
    fn next_batch(&mut self) -> Result<Option<Batch>, ReadError> {
        self.next_rows()?.map(|rows| Batch::new(&rows)).transpose()
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        loop {
            match &mut self.source {
                Source::Start => self.source = Source::Groups(Box::new(self.trace.read_groups()?)),
                Source::Groups(groups) => match unless_it_panics(|| groups.next())? {
                    Some(rows) => return rows.map(Some).map_err(|e| ReadError::damaged(&e)),
                    None => self.source = Source::Tail(0, None),
                },
                Source::Tail(_, Some(rest)) => match rest.next() {
                    Some(rows) => return rows.map(Some).map_err(|e| ReadError::damaged(&e)),
                    None => self.end_frame(),
                },
                Source::Tail(frame, rest) => match &self.trace.tail {
                    Some(tail) if *frame < tail.len() => {
                        let rows = StreamReader::try_new(Cursor::new(tail.rows(*frame)?), None)
                            .map_err(|error| ReadError::damaged(&error))?;
                        *frame += 1;
                        *rest = Some(Box::new(rows));
                    }
                    _ => self.source = Source::End,
                },
                Source::End => return Ok(None),
            }
        }
    }

    fn end_frame(&mut self) {
        if let Source::Tail(_, rest) = &mut self.source {
            *rest = None;
        }
    }
}

/// The Parquet library trusts some lengths inside a page: a damaged one makes it panic.
fn unless_it_panics<T>(read: impl FnOnce() -> T) -> Result<T, ReadError> {
    // What was being read is not used again after an error.
    std::panic::catch_unwind(AssertUnwindSafe(read))
        .map_err(|_panic| ReadError::Damaged("a page of it makes no sense".to_owned()))
}

/// Opens a regular file that isn't empty.
fn open_file(path: &Path) -> Result<File, ReadError> {
    // Looked at first: opening a pipe would wait for somebody to write.
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(ReadError::Folder);
    }
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let file = File::open(path)?;
    if metadata.len() == 0 {
        return Err(ReadError::Empty);
    }
    Ok(file)
}

/// Types are taken from Parquet alone: other programs that write the file again choose other Arrow types.
fn options() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_skip_arrow_metadata(true)
}

/// The footer, if the file has one.
fn footer(file: &File) -> Result<Option<ArrowReaderMetadata>, ReadError> {
    if !ends_as_parquet(file)? || !begins_as_parquet(file)? {
        return Ok(None);
    }
    // A footer that can't be read is none: the recorder may have been killed while it wrote it.
    Ok(unless_it_panics(|| ArrowReaderMetadata::load(file, options()))?.ok())
}

fn begins_as_parquet(file: &File) -> io::Result<bool> {
    let mut magic = [0; 4];
    match file.read_exact_at(&mut magic, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| magic == *PARQUET_MAGIC),
    }
}

fn ends_as_parquet(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut magic = [0; 4];
    if length < 12 {
        return Ok(false);
    }
    file.read_exact_at(&mut magic, length - 4)?;
    Ok(magic == *PARQUET_MAGIC)
}
