//! Synthetic event streams.
//!
//! [`Story`] builds one in which time moves only when told and numbers are round. [`text`] reads
//! and writes streams as text, one event a line, so that a bug report can become a test.

mod signs;
mod story;
pub mod text;

pub use story::{MIB, MS, START, Story};
