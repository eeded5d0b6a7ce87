//! Where a program's arguments are, and its environment behind them.

use super::{frozen, word_at};
use crate::maps::layout;

/// Of an address space: begin and end of the arguments, begin and end of the environment. Addresses of its own.
pub(crate) struct Words {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) environment: u64,
    pub(crate) environment_end: u64,
}

impl Words {
    /// Those of the `mm_struct` at an address.
    #[inline(always)]
    pub(crate) fn at(mm: u64) -> Self {
        Self {
            start: word_at(mm, at!(mm_arg_start)),
            end: word_at(mm, at!(mm_arg_end)),
            environment: word_at(mm, at!(mm_env_start)),
            environment_end: word_at(mm, at!(mm_env_end)),
        }
    }
}
