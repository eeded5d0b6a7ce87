//! What a trace says, for people and for programs.
//!
//! [`Report`] is one value with all of it. [`json`] and [`text`] are pure functions of that value:
//! terminal width, colour and the like come in as arguments. [`closing_lines`] are the few lines
//! that a recorder says at its end, from the light fold alone.

mod alive;
mod bytes;
mod charge;
pub mod chart;
pub mod check;
mod closing;
mod escape;
pub mod export;
mod findings;
mod forest;
mod holders;
pub mod html;
pub mod json;
pub mod lanes;
mod outline;
mod pools;
mod request;
mod say;
#[cfg(test)]
mod tests;
pub mod text;
mod value;
mod watch;
mod words;

pub use alive::{awaited_line, expected_line, waiting_line};
pub use bytes::ByteText;
pub use charge::{ChargeReport, ChargeSplitReport};
pub use closing::closing_lines;
pub(crate) use escape::escape;
pub use findings::{Evidence, FindingReport};
pub use pools::PoolReport;
pub use request::{Basis, RequestReport};
pub use say::title;
pub use value::{
    ExitReport, Id, ImageReport, MarkReport, OomReport, ParentReport, PolledReport, ProcessReport,
    RecordingReport, Report, RoleReport, ShareReport, StepReport, TitleReport, TopReport,
    TreeReport, TrustReport,
};
pub use watch::{
    BlockedReport, ExecFailureReport, ForkRefusalReport, MoveReport, SenderReport, StallReport,
    WaitReport,
};
pub(crate) use words::shell_word;
