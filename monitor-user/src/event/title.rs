//! What a program wrote over its arguments.

/// What stands where the subject's arguments were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Title {
    /// Strings, without their NULs; most programs write one.
    pub words: Vec<Vec<u8>>,
    /// Whether there is more: 511 bytes are kept.
    pub is_cut: bool,
}
