//! Two programs for one hook, where the kernel may skip the first.
//!
//! The kernel doesn't run a program on a CPU where that program is running already. Until 6.18 that
//! needs an event within the program; since tracepoints are guarded by fast SRCU (7.0,
//! include/linux/tracepoint.h) a program can be preempted, and all that happens on its CPU until it
//! goes on is skipped: exits, of all things, where many processes end at once. So each hook that the
//! tree rests on has a second program, the same in every way, which runs right after the first and
//! does nothing if that one has done its work. Where the kernel lets them, programs forbid their
//! preemption ([`crate::preempt`]), which leaves little to the second ones.

use monitor_ebpf::abi::Rescue;

use crate::{
    emit::{count, setting},
    maps::{REPORTED, RESCUED},
};

/// Which of a hook's two programs runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First = 0,
    Second = 1,
}

/// A thread's beginning or end, to be told apart from all others that are being reported.
pub(crate) const BEGINS: u64 = 1 << 32;
pub(crate) const ENDS: u64 = 2 << 32;

impl Pass {
    /// Whether the first program has reported this about a thread; asked by the second.
    #[inline(always)]
    pub(crate) fn is_reported(self, what: u64, tid: u32) -> bool {
        self == Self::Second && REPORTED.remove(what | u64::from(tid)).is_ok()
    }

    /// Notes that this about a thread was reported.
    #[inline(always)]
    pub(crate) fn reported(self, what: u64, tid: u32) {
        if self == Self::First && setting!(has_second) != 0 {
            // Without room the second program reports it again, which readers live with.
            let _no_room = REPORTED.insert(what | u64::from(tid), 1, 0);
        }
    }

    /// Counts what only the second program has seen. `hook`: one of [`Rescue`].
    #[inline(always)]
    pub(crate) fn count_rescue(self, hook: u32) {
        if self == Self::Second && hook < Rescue::COUNT {
            count(&RESCUED, hook);
        }
    }
}
