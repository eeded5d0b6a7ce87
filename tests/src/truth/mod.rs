//! What a random tree (`workloads/treegen`) logged about itself, and the comparison with a report.

mod compare;
mod log;
#[cfg(test)]
mod tests;

pub use compare::compare;
pub use log::{Created, End, ExecTruth, Node, Truth, parse};
