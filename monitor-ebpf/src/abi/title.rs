//! What programs write over their arguments.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, assert_layout};

/// Bytes that are kept of a title. A power of two less one: it masks the length.
pub const TITLE_MAX: usize = 511;

/// Where the arguments of a process were, something else stands now. [`super::Kind::TITLE`]. `title_len` bytes follow:
/// strings with their NULs.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct TitleRecord {
    /// See [`Header`].
    pub header: Header,
    /// Bytes that stand there.
    pub total: u32,
    /// Bytes that follow.
    pub title_len: u32,
    /// 1: they go on behind the place of the arguments, as one string (`get_mm_cmdline` in `fs/proc/base.c`).
    pub is_one: u32,
    /// Zero.
    pub reserved: u32,
}

assert_layout!(TitleRecord, 48, { header: 0, total: 32, title_len: 36, is_one: 40, reserved: 44 });
