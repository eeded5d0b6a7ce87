//! Files that are nearly traces, made of a real one.

use std::{fs, path::Path};

use anyhow::Context;
use rtrace_tests::harness;

/// Key of the trace format's version, in the footer.
const VERSION: &[u8] = b"rtrace.schema_version";

/// Writes `newer.parquet`, `another.parquet` and `cut.parquet`.
pub(super) fn write_into(folder: &Path) -> anyhow::Result<()> {
    let recorded = harness::record(&["/bin/true"])?;
    let trace = fs::read(&recorded.trace).context(recorded.stderr)?;
    let mut places = trace.windows(VERSION.len());
    let key = places.rposition(|window| window == VERSION);
    let key = key.context("a trace without a version")?;

    let mut newer = trace.clone();
    // What follows the key is the value's length, then the value: the number before the point.
    let mut value = newer[key + VERSION.len()..].iter_mut();
    let digit = value.find(|byte| byte.is_ascii_digit());
    *digit.context("no number")? = b'9';
    fs::write(folder.join("newer.parquet"), newer)?;

    // Any other program's file has keys, but not this one.
    let mut another = trace.clone();
    another[key] = b'R';
    fs::write(folder.join("another.parquet"), another)?;

    fs::write(folder.join("cut.parquet"), &trace[..trace.len() / 2])?;
    Ok(())
}
