//! The environment that a program begins with.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, assert_layout};

/// Most bytes of an environment in one [`EnvRecord`].
pub const ENV_CHUNK: usize = 16 * 1024;
/// Most pieces of one environment: 256 KiB in all.
pub const ENV_CHUNKS: usize = 16;

/// A piece of the environment of a process that has just executed a program. [`super::Kind::ENV`]. `env_len` bytes
/// follow: strings with their NULs.
///
/// User space keeps the values of a short list of names and writes nothing else anywhere.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct EnvRecord {
    /// See [`Header`]; `time_ns` is the same in all pieces of one environment.
    pub header: Header,
    /// Place of the first byte in the whole environment.
    pub offset: u32,
    /// Bytes of the whole environment (`mm->env_end - mm->env_start`).
    pub env_total: u32,
    /// Bytes that follow.
    pub env_len: u32,
    /// Zero.
    pub reserved: u32,
}

assert_layout!(EnvRecord, 48, { header: 0, offset: 32, env_total: 36, env_len: 40, reserved: 44 });
