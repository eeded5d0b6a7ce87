//! What the memory controller charges the command's control group.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::assert_layout;

/// The charge so far. Value of the map `CHARGE`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ChargeState {
    /// Where the group's `page_counter` is in the kernel: that of the command at its exec, whatever group its
    /// descendants go to. 0: not known.
    pub counter: u64,
    /// Most pages that were charged at any event.
    pub peak: u64,
    /// That moment, ns since boot; 0: there was none.
    pub peak_ns: u64,
    /// Pages charged at the command's exec.
    pub start: u64,
    /// 1: user space wants it to be read.
    pub wanted: u64,
}

assert_layout!(ChargeState, 40, { counter: 0, peak: 8, peak_ns: 16, start: 24, wanted: 32 });
