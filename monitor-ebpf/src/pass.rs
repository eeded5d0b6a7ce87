//! Three programs for one hook, where the kernel may skip some.
//!
//! The kernel doesn't run a program on a CPU where that program is running already. Until 6.18 that
//! needs an event within the program; since tracepoints are guarded by fast SRCU (7.0,
//! include/linux/tracepoint.h) a program can be preempted, and all that happens on its CPU until it
//! goes on is skipped: exits, of all things, where many processes end at once. So each hook that the
//! tree rests on has more programs there, the same in every way, which run right after the first and
//! do nothing if it has done its work. With three of them an event is lost only if three threads of one
//! CPU are preempted in one each. (Two were not enough on an emulated machine, whose time slices are as short as
//! a real one's, but whose programs take a hundred times longer.) The later ones mostly find nothing to do, so
//! they are short, and seldom preempted.

use monitor_ebpf::abi::Rescue;

use crate::{
    emit::{count, setting},
    maps::{REPORTED, RESCUED, RSS_SEEN},
};

/// Which of a hook's programs runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First = 0,
    Second = 1,
    Third = 2,
}

/// A thread's beginning or end, to be told apart from all others that are being reported.
pub(crate) const BEGINS: u64 = 1 << 32;
pub(crate) const ENDS: u64 = 2 << 32;

impl Pass {
    /// Whether an earlier program has reported this about a thread.
    #[inline(always)]
    pub(crate) fn is_reported(self, what: u64, tid: u32) -> bool {
        let key = what | u64::from(tid);
        match self {
            Self::First => false,
            Self::Second => REPORTED.get_ptr(key).is_some(),
            Self::Third => REPORTED.remove(key).is_ok(),
        }
    }

    /// Notes that this about a thread was reported.
    #[inline(always)]
    pub(crate) fn reported(self, what: u64, tid: u32) {
        if self != Self::Third && setting!(has_later) != 0 {
            // Without room a later program reports it again, which readers live with.
            let _no_room = REPORTED.insert(what | u64::from(tid), 1, 0);
        }
    }

    /// Counts what the first program hasn't seen. `hook`: one of [`Rescue`].
    #[inline(always)]
    pub(crate) fn count_rescue(self, hook: u32) {
        if self != Self::First && hook < Rescue::COUNT {
            count(&RESCUED, hook);
        }
    }
}

/// Notes that a change of a counter has been seen on this CPU.
#[inline(always)]
pub(crate) fn saw_change(mm: u64, member: u32) {
    if setting!(has_later) != 0
        && let Some(seen) = RSS_SEEN.get_ptr_mut(0)
    {
        // SAFETY: a per-CPU value.
        unsafe { *seen = mm + u64::from(member & 3) };
    }
}

/// Whether the change of a counter that is being shown has been seen by the program before. One that was
/// preempted by others' changes looks like one that hasn't, which costs a second look.
#[inline(always)]
pub(crate) fn is_change_seen(mm: u64, member: u32) -> bool {
    let Some(seen) = RSS_SEEN.get_ptr_mut(0) else {
        return false;
    };
    // SAFETY: a per-CPU value.
    unsafe { core::mem::take(&mut *seen) == mm + u64::from(member & 3) }
}
