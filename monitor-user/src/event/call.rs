//! System calls that failed, and moves between groups of processes.

/// A call of exec by the subject failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecFailed {
    /// Number of the error (`errno`).
    pub errno: u32,
    /// Path that was to be executed; empty if it couldn't be read.
    pub filename: Vec<u8>,
}

/// The subject was moved to another control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of the group's hierarchy, 0 for version 2.
    pub hierarchy: Option<u32>,
    /// The group's path in its hierarchy.
    pub path: Vec<u8>,
}
