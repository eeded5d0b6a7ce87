//! Which control groups a process is in.
//!
//! A task has a set of groups, one in each hierarchy (`task_struct.cgroups`), and the set a list of links to them,
//! which serves for controllers of version 1, for named hierarchies, and for version 2 alike.

use aya_ebpf::programs::BtfTracePointContext;
use monitor_ebpf::abi::GROUP_PATH;

use super::{Signals, Task, argument, frozen, read_string, word_at};
use crate::maps::layout;

/// A `struct cgroup` at an address that is never taken for granted: what can't be read is 0.
#[derive(Clone, Copy)]
pub(crate) struct Group(u64);

/// Hierarchies that are looked at: there are no more than controllers, and a few with names.
const MOST_HIERARCHIES: u32 = 32;
/// Threads of a process that are entered when it comes into a group.
const MOST_THREADS: u32 = 512;

impl Task {
    /// The group that it is in, in the hierarchy of this number.
    #[inline(always)]
    pub(crate) fn group(self, hierarchy: u32) -> Option<Group> {
        let set = word_at(self.address(), at!(group.task_cgroups));
        if set == 0 {
            return None;
        }
        let head = set.wrapping_add(u64::from(at!(group.css_set_links)));
        let mut link = word_at(head, 0);
        for _ in 0..MOST_HIERARCHIES {
            if link == head || link == 0 {
                break;
            }
            let start = link.wrapping_sub(u64::from(at!(group.link_next)));
            let group = Group(word_at(start, at!(group.link_cgroup)));
            if group.hierarchy() == hierarchy {
                return Some(group);
            }
            link = word_at(link, 0);
        }
        None
    }
}

impl Signals {
    /// Shows the id of each thread, of many the first ones.
    #[inline(always)]
    pub(crate) fn each_thread(self, mut show: impl FnMut(u32)) {
        let head = self
            .address()
            .wrapping_add(u64::from(at!(group.signal_threads)));
        let mut at = word_at(head, 0);
        for _ in 0..MOST_THREADS {
            if at == head || at == 0 {
                break;
            }
            let task = at.wrapping_sub(u64::from(at!(group.task_thread)));
            show(word_at(task, at!(task_pid)) as u32);
            at = word_at(at, 0);
        }
    }
}

impl Group {
    /// The first argument of a tracepoint about groups.
    #[inline(always)]
    pub(crate) fn argument(ctx: &BtfTracePointContext) -> Self {
        Self(argument::<0>(ctx))
    }

    /// Number of its hierarchy, 0 for version 2.
    #[inline(always)]
    pub(crate) fn hierarchy(self) -> u32 {
        let root = word_at(self.0, at!(group.cgroup_root));
        if root == 0 {
            return u32::MAX;
        }
        word_at(root, at!(group.hierarchy_id)) as u32
    }

    /// Its number in the hierarchy, which its folder has as inode number.
    #[inline(always)]
    pub(crate) fn id(self) -> u64 {
        word_at(word_at(self.0, at!(group.cgroup_kn)), at!(group.kernfs_id))
    }

    /// The group above.
    #[inline(always)]
    pub(crate) fn parent(self) -> Option<Self> {
        let parent = word_at(self.0, at!(group.cgroup_parent));
        if parent == 0 {
            return None;
        }
        Some(Self(word_at(parent, at!(group.css_cgroup))))
    }

    /// Copies the last part of its path.
    #[inline(always)]
    pub(crate) fn read_name(self, into: *mut u8) {
        let node = word_at(self.0, at!(group.cgroup_kn));
        let name = word_at(node, at!(group.kernfs_name));
        read_string(name as *const u8, into, GROUP_PATH as u32);
    }
}

/// Copies the path that a tracepoint about groups tells.
#[inline(always)]
pub(crate) fn read_path(ctx: &BtfTracePointContext, into: *mut u8) {
    read_string(argument::<1>(ctx) as *const u8, into, GROUP_PATH as u32);
}
