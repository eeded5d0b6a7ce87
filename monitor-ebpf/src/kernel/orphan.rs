//! Who gets the children of a process whose last thread ends.
//!
//! As `find_new_reaper` in `kernel/exit.c` chooses, 5.10 to 7.2: the nearest process above that is a subreaper
//! (`PR_SET_CHILD_SUBREAPER`), in the same pid namespace, with a thread that isn't about to end; else the first process
//! of that namespace. The kernel chooses a little later, in the same call. Who ends in between has an end of its own,
//! which tells who comes next.

use monitor_ebpf::abi::absent;

use super::{Task, frozen, word_at};
use crate::maps::layout;

/// Processes above that are looked at. The verifier follows each turn.
const MOST_ANCESTORS: u32 = 64;

/// Who gets them.
#[derive(Clone, Copy)]
pub(crate) struct Reaper {
    /// 0: not known, or nobody: those of a namespace's first process end with it.
    pub(crate) pid: u32,
    pub(crate) start_ns: u64,
}

impl Reaper {
    pub(crate) const NOT_KNOWN: Self = Self {
        pid: 0,
        start_ns: 0,
    };

    /// The process of the thread at this address.
    #[inline(always)]
    fn process(thread: u64) -> Self {
        let leader = word_at(thread, at!(task_group_leader));
        Self {
            pid: word_at(thread, at!(task_tgid)) as u32,
            start_ns: word_at(leader, at!(task_start_boottime)),
        }
    }
}

impl Task {
    /// Who gets the children of its process, of which it is the last thread.
    #[inline(always)]
    pub(crate) fn reaper(self) -> Reaper {
        // The last one that is looked up of each group: where it is, so are the others.
        if absent(at!(orphan.namespace_reaper)) || absent(at!(watch.upid_size)) {
            return Reaper::NOT_KNOWN;
        }
        let own = word_at(self.address(), at!(watch.task_thread_pid));
        let level = word_at(own, at!(watch.pid_level)) as u32;
        let signals = word_at(self.address(), at!(task_signal));
        let has_subreaper = word_at(signals, at!(orphan.has_subreaper)) as u32;
        if has_subreaper & at!(orphan.has_subreaper_bits) != 0 {
            let mut above = word_at(self.address(), at!(task_real_parent));
            for turn in 0..=MOST_ANCESTORS {
                if turn == MOST_ANCESTORS {
                    return Reaper::NOT_KNOWN;
                }
                // The kernel's own first task has no process.
                let is_process = above != 0 && word_at(above, at!(task_tgid)) as u32 != 0;
                let pid = word_at(above, at!(watch.task_thread_pid));
                if !is_process || word_at(pid, at!(watch.pid_level)) as u32 != level {
                    break;
                }
                let signals = word_at(above, at!(task_signal));
                let is_subreaper = word_at(signals, at!(orphan.is_subreaper)) as u32;
                if is_subreaper & at!(orphan.is_subreaper_bits) != 0
                    && word_at(signals, at!(signal_live)) as u32 != 0
                {
                    return Reaper::process(above);
                }
                above = word_at(above, at!(task_real_parent));
            }
        }
        let place = at!(orphan.number_namespace) + level * at!(watch.upid_size);
        let first = word_at(word_at(own, place), at!(orphan.namespace_reaper));
        if first == 0 || word_at(first, at!(task_tgid)) as u32 == self.pid() {
            return Reaper::NOT_KNOWN;
        }
        Reaper::process(first)
    }
}
