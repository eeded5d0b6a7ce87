//! Set-up, build, test and checks of rtrace.
fn main() {}
