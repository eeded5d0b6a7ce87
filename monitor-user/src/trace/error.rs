//! What can go wrong with a trace file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;

use super::schema::{VERSION, Version};

/// Why a trace could not be written. Cheap to clone: a writer keeps its first error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refused.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried, such as "write" or "create".
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said. Not called `source`: who prints causes would print it twice.
        reason: Arc<io::Error>,
    },
    /// The path was removed, or now means another file than the one being written.
    #[error("{} was removed or replaced while it was written", path.display())]
    Replaced {
        /// The trace.
        path: PathBuf,
    },
    /// Something that isn't a file is in the way.
    #[error("{} exists and is not a file", path.display())]
    NotAFile {
        /// What is in the way.
        path: PathBuf,
    },
    /// A library refused the data.
    #[error("cannot encode rows for {}: {reason}", path.display())]
    Encode {
        /// The trace.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
}

impl WriteError {
    /// An error of the system while doing `action` with `path`.
    pub(super) fn io(action: &'static str, path: &Path, reason: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            reason: Arc::new(reason),
        }
    }

    /// An error of a library that was given rows.
    pub(super) fn encode(path: &Path, reason: &impl ToString) -> Self {
        Self::Encode {
            path: path.to_owned(),
            reason: one_line(reason),
        }
    }

    /// An error of the Parquet library, which hands on those of the system.
    pub(super) fn parquet(path: &Path, error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Self::io("write", path, *source),
                Err(other) => Self::encode(path, &other),
            },
            other => Self::encode(path, &other),
        }
    }

    /// The kind of the system's error; `None` if the system isn't the cause.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { reason, .. } => Some(reason.kind()),
            _ => None,
        }
    }
}

/// Why a trace could not be read. One line each; the path is added by whoever shows it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such file.
    #[error("there is no such file")]
    Missing,
    /// A folder.
    #[error("it is a folder, not a trace file")]
    Folder,
    /// A device, a pipe or a socket.
    #[error("it is not a regular file")]
    NotAFile,
    /// No permission.
    #[error("permission denied")]
    Denied,
    /// Any other error of the system.
    #[error(transparent)]
    Io(io::Error),
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Not Parquet at all.
    #[error("it is not a trace: not a Parquet file")]
    NotParquet,
    /// Parquet by somebody else.
    #[error("it is a Parquet file, but not a trace recorded by rtrace")]
    NotATrace,
    /// Of a major version that this program doesn't know.
    #[error("it has trace format {0}, this rtrace reads {major}.x: use a newer rtrace", major = VERSION.major)]
    Newer(Version),
    /// Of a major version that this program doesn't know any more.
    #[error("it has trace format {0}, this rtrace reads {major}.x: use an older rtrace", major = VERSION.major)]
    Older(Version),
    /// The recorder was killed and what it had set aside isn't there.
    #[error("the recording was cut short and {} is missing", tail.display())]
    NoTail {
        /// File that would hold the rest.
        tail: PathBuf,
    },
    /// The recorder was killed and what it had set aside doesn't fit.
    #[error("the recording was cut short and {} can't be used: {reason}", tail.display())]
    BadTail {
        /// File that should hold the rest.
        tail: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A column that every trace has isn't there.
    #[error("the trace has no column {0}")]
    NoColumn(&'static str),
    /// A column has a type that makes no sense for it.
    #[error("column {column} has type {found}, not {expected}")]
    ColumnType {
        /// Its name.
        column: &'static str,
        /// Type in the file.
        found: String,
        /// Type that it should have.
        expected: &'static str,
    },
    /// A value in the metadata makes no sense.
    #[error("the metadata of the trace is damaged: {0}")]
    Metadata(String),
    /// Bytes in the file make no sense.
    #[error("the file is damaged: {0}")]
    Damaged(String),
}

impl ReadError {
    /// The bytes of the file made a library fail.
    pub(super) fn damaged(error: &impl ToString) -> Self {
        Self::Damaged(one_line(error))
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::IsADirectory => Self::Folder,
            _ => Self::Io(error),
        }
    }
}

/// A library's message may hold several lines, ours never do.
fn one_line(text: &impl ToString) -> String {
    text.to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
