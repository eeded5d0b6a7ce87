//! The ring buffer on this side.

use std::os::fd::{AsRawFd, RawFd};

use aya::maps::{MapData, RingBuf};
use tokio::io::{Interest, unix::AsyncFd};

use super::RecordError;
use crate::host::facts;

/// A size that the kernel takes: a power of two and at least a page.
pub(super) fn ring_size(wanted: u32) -> u32 {
    let page = u32::try_from(facts::page_size()).unwrap_or(4096);
    wanted
        .max(page)
        .checked_next_power_of_two()
        .unwrap_or(1 << 31)
}

/// The ring buffer, as something with a descriptor.
pub(super) struct Ring(pub(super) RingBuf<MapData>);

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Makes the ring buffer something to wait for.
#[expect(
    unsafe_code,
    reason = "tokio asks for the promise that the descriptor stays open"
)]
pub(super) fn watch(ring: RingBuf<MapData>) -> Result<AsyncFd<Ring>, RecordError> {
    // SAFETY: the map owns its descriptor and lives as long as what watches it.
    unsafe { AsyncFd::register_with_interest(Ring(ring), Interest::READABLE) }
        .map_err(|error| RecordError::system("cannot wait for the ring buffer", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_buffer_is_a_power_of_two_of_pages() {
        let page = u32::try_from(facts::page_size()).unwrap();
        assert_eq!(ring_size(1), page);
        assert_eq!(ring_size(page + 1), 2 * page);
        assert_eq!(ring_size(16 << 20), 16 << 20);
        assert_eq!(ring_size(u32::MAX), 1 << 31);
    }
}
