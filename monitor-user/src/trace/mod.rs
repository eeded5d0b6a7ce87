//! The trace file: one Parquet file, a row per event, and a tail beside it while it is written.
//!
//! `schema` alone defines columns and kinds; `docs/trace-format.md` describes the file for its users.

mod decode;
mod encode;
mod error;
mod files;
mod metadata;
mod reader;
pub mod schema;
mod tail;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{ReadError, WriteError};
pub use files::{Owner, set_aside, tail_path};
pub use reader::{Events, Trace};
pub use writer::{TraceWriter, WriterOptions};
