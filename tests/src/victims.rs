//! Programs to record.

use std::path::PathBuf;

/// A program of `workloads/`, compiled by the package's build.
pub fn victim(name: &str) -> PathBuf {
    PathBuf::from(env!("VICTIMS")).join(name)
}

/// A file of `workloads/` as it is (scripts).
pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("workloads")
        .join(name)
}
