//! What the memory controller charges a control group.

use monitor_ebpf::abi::absent;

use super::{Task, frozen, word_at};
use crate::maps::layout;

impl Task {
    /// Where the `page_counter` is that counts what its memory control group is charged; 0: not known.
    ///
    /// Where the task's own group has no memory controller (version 2), it is that of the next group above that
    /// has: the kernel puts it in its place (`css_set.subsys`).
    #[inline(always)]
    pub(crate) fn memory_counter(self) -> u64 {
        // The last one that is looked up: where it is, so are the ones before.
        if absent(at!(oom.kernfs_name)) {
            return 0;
        }
        let groups = word_at(self.0 as u64, at!(oom.task_cgroups));
        let css = word_at(groups, at!(oom.css_set_memory));
        if groups == 0 || css == 0 {
            return 0;
        }
        css.wrapping_sub(u64::from(at!(oom.memcg_css)))
            .wrapping_add(u64::from(at!(oom.memcg_memory)))
    }
}

/// Pages that a `page_counter` counts (`page_counter_read` in `include/linux/page_counter.h`).
#[inline(always)]
pub(crate) fn counted(counter: u64) -> u64 {
    let pages = word_at(counter, at!(oom.counter_usage));
    // Threads that uncharge at once may take it below nothing for a moment.
    if pages as i64 > 0 { pages } else { 0 }
}
