//! `NAME.tail`: what isn't in `NAME` yet, so that a killed recorder loses half a second, not all.
//!
//! A tail is [`MAGIC`] and then frames: length of the payload (u32, little endian), kind (u32),
//! CRC-32 of these two and the payload (u32), payload. It begins with a header, the Parquet footer
//! of the row groups that `NAME` held when the tail was made, and all facts about the recording.
//! Rows that came after and facts that changed are appended. A frame of rows is an Arrow IPC stream
//! of its own with the columns that have a value in it. Readers stop at the first frame that isn't
//! whole and skip kinds of frames that they don't know.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, Schema};
use serde::{Deserialize, Serialize};

use super::error::{ReadError, WriteError};
use super::files::{self, Owner};
use super::metadata::{self, Fields};
use super::schema::VERSION;

/// First bytes of a tail.
const MAGIC: &[u8; 8] = b"RTRTAIL\n";
/// Length of what stands before the payload of a frame.
const FRAME_HEAD: usize = 12;

const HEADER: u32 = 1;
const FOOTER: u32 = 2;
const RECORDING: u32 = 3;
const ROWS: u32 = 4;

#[derive(Serialize, Deserialize)]
struct Header {
    schema_version: String,
    /// Bytes of `NAME` that the footer describes.
    data_bytes: u64,
}

/// A tail that is being written.
pub(super) struct TailWriter {
    path: PathBuf,
    owner: Option<Owner>,
    file: File,
    appended: u64,
    fields: Fields,
}

impl TailWriter {
    /// Puts a new tail in place of the one there may be.
    ///
    /// It is complete before it takes the name, so there is never a moment without a good one.
    pub(super) fn create(
        path: PathBuf,
        owner: Option<Owner>,
        footer: &[u8],
        data_bytes: u64,
        fields: Fields,
    ) -> Result<Self, WriteError> {
        let encode = |error: serde_json::Error| WriteError::encode(&path, &error);
        let header = Header {
            schema_version: VERSION.to_string(),
            data_bytes,
        };
        let mut content = MAGIC.to_vec();
        let header = serde_json::to_vec(&header).map_err(encode)?;
        let facts = serde_json::to_vec(&fields).map_err(encode)?;
        for (kind, payload) in [(HEADER, &header[..]), (FOOTER, footer), (RECORDING, &facts)] {
            push_frame(&mut content, kind, payload)
                .map_err(|error| WriteError::encode(&path, &error))?;
        }
        let new = files::with_suffix(&path, ".new");
        files::remove(&new)?;
        let mut file = files::create_new(&new, owner)?;
        file.write_all(&content)
            .map_err(|error| WriteError::io("write", &new, error))?;
        fs::rename(&new, &path).map_err(|error| WriteError::io("rename", &new, error))?;
        Ok(Self {
            path,
            owner,
            file,
            appended: 0,
            fields,
        })
    }

    /// Puts the tail that follows in place of this one.
    pub(super) fn replace(
        &mut self,
        footer: &[u8],
        data_bytes: u64,
        fields: Fields,
    ) -> Result<(), WriteError> {
        *self = Self::create(self.path.clone(), self.owner, footer, data_bytes, fields)?;
        Ok(())
    }

    /// Appends rows and those facts that have changed, in one write.
    pub(super) fn append(
        &mut self,
        batches: &[RecordBatch],
        fields: &Fields,
    ) -> Result<(), WriteError> {
        let mut content = Vec::new();
        for batch in batches {
            let payload = rows_payload(batch).map_err(|e| WriteError::encode(&self.path, &e))?;
            push_frame(&mut content, ROWS, &payload)
                .map_err(|error| WriteError::encode(&self.path, &error))?;
        }
        let changed = metadata::changed(&self.fields, fields);
        if !changed.is_empty() {
            let payload = serde_json::to_vec(&changed)
                .map_err(|error| WriteError::encode(&self.path, &error))?;
            push_frame(&mut content, RECORDING, &payload)
                .map_err(|error| WriteError::encode(&self.path, &error))?;
            self.fields.extend(changed);
        }
        self.file
            .write_all(&content)
            .map_err(|error| WriteError::io("write", &self.path, error))?;
        self.appended += content.len() as u64;
        Ok(())
    }

    /// Bytes that were appended since it was made. What it began with doesn't count: that would
    /// make each tail of a very long recording too long at once.
    pub(super) fn appended(&self) -> u64 {
        self.appended
    }

    /// Removes the tail: the trace is complete without it.
    pub(super) fn remove(self) -> Result<(), WriteError> {
        files::remove(&self.path)
    }

    /// Makes all further writes go to `file`, to see what happens if they fail.
    #[cfg(test)]
    pub(super) fn divert(&mut self, file: File) {
        self.file = file;
    }
}

fn push_frame(out: &mut Vec<u8>, kind: u32, payload: &[u8]) -> Result<(), &'static str> {
    let length = u32::try_from(payload.len()).map_err(|_error| "more than 4 GiB at once")?;
    let mut head = [0; 8];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..].copy_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&checksum(&head, payload).to_le_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

fn rows_payload(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let filled: Vec<usize> = (0..batch.num_columns())
        .filter(|index| batch.column(*index).null_count() < batch.num_rows())
        .collect();
    let batch = batch.project(&filled)?;
    // Units and documentation would cost more than a short batch.
    let fields = batch.schema_ref().fields().iter();
    let bare = fields.map(|field| field.as_ref().clone().with_metadata(HashMap::new()));
    let bare = Arc::new(Schema::new(bare.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(bare, batch.columns().to_vec())?;
    let options = IpcWriteOptions::try_new(8, false, arrow_ipc::MetadataVersion::V5)?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), batch.schema_ref(), options)?;
    writer.write(&batch)?;
    writer.into_inner()
}

/// A tail that was read, up to its last whole frame.
pub(super) struct Tail {
    file: File,
    /// Parquet footer of the row groups in the trace file.
    pub(super) footer: Vec<u8>,
    /// Bytes of the trace file that the footer describes.
    pub(super) data_bytes: u64,
    /// Facts about the recording.
    pub(super) fields: Fields,
    frames: Vec<(u64, usize)>,
}

impl Tail {
    /// Reads a tail: everything but its rows, of which only the places are kept.
    ///
    /// `Ok(None)` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let unusable = |reason: String| ReadError::BadTail {
            tail: path.to_owned(),
            reason,
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(error.to_string())),
        };
        let length = match file.metadata() {
            Ok(metadata) if metadata.is_file() => metadata.len(),
            Ok(_) => return Err(unusable("it is not a file".to_owned())),
            Err(error) => return Err(unusable(error.to_string())),
        };
        let scan = scan(&mut file, length)
            .map_err(|error| unusable(error.to_string()))?
            .ok_or_else(|| unusable("it is not the tail of a trace".to_owned()))?;
        let header: Header = scan
            .header
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| unusable("its first bytes are damaged".to_owned()))?;
        metadata::check_version(&header.schema_version)?;
        let (Some(footer), Some(fields)) = (scan.footer, scan.fields) else {
            return Err(unusable("its first bytes are damaged".to_owned()));
        };
        Ok(Some(Self {
            file,
            footer,
            data_bytes: header.data_bytes,
            fields,
            frames: scan.frames,
        }))
    }

    /// Number of frames with rows.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The Arrow IPC stream of one frame.
    pub(super) fn rows(&self, frame: usize) -> Result<Vec<u8>, ReadError> {
        let (offset, length) = self.frames[frame];
        let mut payload = vec![0; length];
        self.file.read_exact_at(&mut payload, offset)?;
        Ok(payload)
    }
}

#[derive(Default)]
struct Scan {
    header: Option<Vec<u8>>,
    footer: Option<Vec<u8>>,
    fields: Option<Fields>,
    frames: Vec<(u64, usize)>,
}

/// Goes through the whole frames of a tail; `None` if it doesn't even begin as one.
fn scan(file: &mut File, length: u64) -> io::Result<Option<Scan>> {
    let mut magic = [0; MAGIC.len()];
    file.seek(SeekFrom::Start(0))?;
    if length < magic.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Ok(None);
    }
    let mut scan = Scan::default();
    let mut offset = magic.len() as u64;
    while let Some((kind, payload)) = next_frame(file, length - offset)? {
        let start = offset + FRAME_HEAD as u64;
        offset = start + payload.len() as u64;
        match kind {
            ROWS => scan.frames.push((start, payload.len())),
            HEADER => scan.header = Some(payload),
            FOOTER => scan.footer = Some(payload),
            RECORDING => {
                if let Ok(changed) = serde_json::from_slice::<Fields>(&payload) {
                    scan.fields.get_or_insert_default().extend(changed);
                }
            }
            _ => {}
        }
    }
    Ok(Some(scan))
}

/// The next frame, `None` where no whole one follows. `left`: bytes to the end of the file.
fn next_frame(file: &mut File, left: u64) -> io::Result<Option<(u32, Vec<u8>)>> {
    let mut head = [0; FRAME_HEAD];
    if left < head.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, kind, expected) = (word(0), word(4), word(8));
    if u64::from(length) > left - head.len() as u64 {
        return Ok(None);
    }
    let mut payload = vec![0; length as usize];
    file.read_exact(&mut payload)?;
    Ok((checksum(&head[..8], &payload) == expected).then_some((kind, payload)))
}
