//! The clock that the report's times are in.

use nix::time::{ClockId, clock_gettime};

/// Now, in ns since boot.
///
/// # Errors
/// The kernel has no such clock.
pub fn boot_ns() -> anyhow::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME)?;
    Ok(u64::try_from(now.tv_sec())? * 1_000_000_000 + u64::try_from(now.tv_nsec())?)
}
