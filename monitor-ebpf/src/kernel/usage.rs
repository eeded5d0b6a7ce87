//! What a process has used, as its `signal_struct` sums it up.

use monitor_ebpf::abi::{Usage, absent};

use super::{Signals, frozen};
use crate::maps::layout;

/// A member of a `signal_struct`, 64 bits wide on every 64-bit machine; `u64::MAX` if this kernel has none.
macro_rules! sum {
    ($signals:expr, $member:ident) => {
        if absent(at!(usage.$member)) {
            u64::MAX
        } else {
            load!($signals.0, usage.$member as u64)
        }
    };
}

impl Signals {
    /// What all threads that have been released used: of a freed process all there were.
    #[inline(always)]
    pub(crate) fn released_usage(self) -> Usage {
        Usage {
            utime: sum!(self, utime),
            stime: sum!(self, stime),
            prev_utime: sum!(self, prev_utime),
            prev_stime: sum!(self, prev_stime),
            min_flt: sum!(self, min_flt),
            maj_flt: sum!(self, maj_flt),
            nvcsw: sum!(self, nvcsw),
            nivcsw: sum!(self, nivcsw),
            rchar: sum!(self, rchar),
            wchar: sum!(self, wchar),
            read_bytes: sum!(self, read_bytes),
            write_bytes: sum!(self, write_bytes),
        }
    }
}
