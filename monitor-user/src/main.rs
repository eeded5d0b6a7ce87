//! The `rtrace` command.
fn main() {}
