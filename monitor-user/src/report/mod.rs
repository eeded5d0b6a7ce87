//! What a trace says, for people and for programs.
//!
//! [`Report`] is one value with all of it. [`json`] and [`text`] are pure functions of that value:
//! terminal width, colour and the like come in as arguments. [`closing_lines`] are the few lines
//! that a recorder says at its end, from the light fold alone.

mod alive;
mod bounds;
mod bytes;
mod charge;
mod closing;
mod escape;
pub mod json;
mod request;
#[cfg(test)]
mod tests;
pub mod text;
mod value;
mod verification;
mod words;

pub use alive::waiting_line;
pub use bytes::ByteText;
pub use charge::{ChargeReport, ChargeSplitReport};
pub use closing::closing_lines;
pub use request::{Basis, RequestReport};
pub use value::{
    ExitReport, Id, ImageReport, MarkReport, OomReport, ProcessReport, RecordingReport, Report,
    ShareReport, StepReport, TopReport, TreeReport, TrustReport,
};
pub(crate) use words::shell_word;
