//! rtrace: kernel-level forking diagnostics.
//!
//! Layers, each of which may use only those to its left (`cargo xtask layers` checks it):
//! `units` < `event` < `decode` < {`trace`, `model`} < `findings` < `report` < `cli`; `record`
//! stands beside them: it uses `decode` and hands events to sinks that `cli` gives it. `doctor` judges
//! facts about a host. `testing` is what unit tests of several layers need.

pub mod cli;
pub mod decode;
pub mod doctor;
pub mod event;
pub mod findings;
pub mod host;
pub mod model;
pub mod record;
pub mod report;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod units;
