//! What the fold gives: processes, images, totals.

use std::collections::BTreeMap;

use crate::{
    event::{Churn, Directory, Environment, ForkFailed, Memory, Mm, Moved, Oom, Sender, Usage},
    model::{
        Blocked, ExecFailure, Floors, Mark, Polled, Stall, Step, Summary, ThreadLife, Timeline,
        Title, Wait,
    },
    units::ProcessKey,
};

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;

/// Names of clone's flags, by bit (`include/uapi/linux/sched.h`).
const CLONE_FLAGS: [(u64, &str); 26] = [
    (CLONE_VM, "CLONE_VM"),
    (0x200, "CLONE_FS"),
    (0x400, "CLONE_FILES"),
    (0x800, "CLONE_SIGHAND"),
    (0x1000, "CLONE_PIDFD"),
    (0x2000, "CLONE_PTRACE"),
    (CLONE_VFORK, "CLONE_VFORK"),
    (0x8000, "CLONE_PARENT"),
    (0x1_0000, "CLONE_THREAD"),
    (0x2_0000, "CLONE_NEWNS"),
    (0x4_0000, "CLONE_SYSVSEM"),
    (0x8_0000, "CLONE_SETTLS"),
    (0x10_0000, "CLONE_PARENT_SETTID"),
    (0x20_0000, "CLONE_CHILD_CLEARTID"),
    (0x40_0000, "CLONE_DETACHED"),
    (0x80_0000, "CLONE_UNTRACED"),
    (0x100_0000, "CLONE_CHILD_SETTID"),
    (0x200_0000, "CLONE_NEWCGROUP"),
    (0x400_0000, "CLONE_NEWUTS"),
    (0x800_0000, "CLONE_NEWIPC"),
    (0x1000_0000, "CLONE_NEWUSER"),
    (0x2000_0000, "CLONE_NEWPID"),
    (0x4000_0000, "CLONE_NEWNET"),
    (0x8000_0000, "CLONE_IO"),
    (0x1_0000_0000, "CLONE_CLEAR_SIGHAND"),
    (0x2_0000_0000, "CLONE_INTO_CGROUP"),
];

/// Names of the flags that are set in `flags`, in the order of their bits.
pub fn clone_flag_names(flags: u64) -> Vec<&'static str> {
    let named = |(bit, name): &(u64, &'static str)| (flags & bit != 0).then_some(*name);
    CLONE_FLAGS.iter().filter_map(named).collect()
}

/// A recorded process tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Process that executed the command. It may be absent from `processes` if all of it was lost.
    pub root: Option<ProcessKey>,
    /// Every process, by start and pid.
    pub processes: Vec<Process>,
    /// Figures of the tree as a whole.
    pub totals: Totals,
    /// Running sums over the tree, with their highest values; one place for both tree and recorder.
    pub summary: Summary,
    /// Sum of RSS and VMS over time.
    pub timeline: Timeline,
    /// What tools that look from time to time would have seen, the slowest first.
    pub polled: Vec<Polled>,
    /// The largest steps in which mapped memory grew, the largest first.
    pub steps: Vec<Step>,
    /// Times of more than a second in which nothing of it ran, in order; `None` if waits weren't seen.
    pub stalls: Option<Vec<Stall>>,
    /// What was lost, and what follows from that.
    pub trust: Trust,
    /// End of what is known, ns since boot: end of the recording, else time of the last event.
    pub end_ns: u64,
}

impl Tree {
    /// Place of a process in `processes`.
    pub fn position(&self, key: ProcessKey) -> Option<usize> {
        self.processes
            .binary_search_by_key(&(key.start_ns, key.pid), |p| (p.key.start_ns, p.key.pid))
            .ok()
    }
}

/// A process (thread group).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Identity.
    pub key: ProcessKey,
    /// By whom and how it was made.
    pub created: Created,
    /// Last name of its leader.
    pub comm: Option<Vec<u8>>,
    /// It was there before the recording began: when it was found, ns since boot.
    pub found_ns: Option<u64>,
    /// Programs it was, in order; of one that was there already, from then on.
    pub images: Vec<Image>,
    /// What its last program got of the variables that are kept, `NAME=value`; `None`: not known.
    pub environment: Option<Environment>,
    /// What it called itself by writing over its arguments, in order; of more than 64 the first 63 and the last.
    pub titles: Vec<Title>,
    /// Moments that it marked, in order.
    pub marks: Vec<Mark>,
    /// Threads it made besides its first. `None` if such events were lost, or it was there before the recording began.
    pub threads_created: Option<u32>,
    /// Most threads alive at once. `None` if such events were lost.
    pub threads_max: Option<u32>,
    /// Its threads besides the first, in order; `None` if such events were lost, or it had more than 4096.
    pub threads: Option<Vec<ThreadLife>>,
    /// CPU time of all threads, ns. Without a reaping: each thread up to one tick less.
    pub cpu_ns: Option<u64>,
    /// What else all threads used. Known of a process that was reaped, and of no other: only then has
    /// the kernel added up all threads.
    pub usage: Usage,
    /// The OOM killer chose it: when, ns since boot, and how things stood.
    pub oom: Option<(u64, Oom)>,
    /// Whether that ended it; `None` if it isn't known that it ended, or how.
    pub killed_for_memory: Option<bool>,
    /// Whether it ended, and when.
    pub ending: Ending,
    /// Status as `wait` gives it; `None` if it didn't end, or its end was lost.
    pub status: Option<u32>,
    /// Parent when it ended, or at the end of the recording. It may be outside of the tree.
    pub final_parent: Option<ProcessKey>,
    /// Parents after its creator, in order. The last of them is `final_parent`, if that is known.
    pub later_parents: Vec<Parent>,
    /// Made before the root ended and alive more than 250 ms after it.
    pub survived_root: Option<bool>,
    /// From the end of its last thread until the kernel freed it, ns; 10 to 50 ms of that are the
    /// kernel's delay after it was reaped.
    pub zombie_ns: Option<u64>,
    /// It had ended and nobody had reaped it when the recording ended. `None` if that isn't known:
    /// the kernel frees a process some time after it was reaped, so shortly after an end the two
    /// look the same.
    pub zombie_at_end: Option<bool>,
    /// When its first thread first ran, ns since boot; the command's is not known.
    pub first_run_ns: Option<u64>,
    /// How long a signal had stopped it, ns: its first thread.
    pub stopped_ns: Option<u64>,
    /// Who sent the signal that ended it, if one did.
    pub sender: Option<Sender>,
    /// Failed calls of exec in order, of more than 256 the first 255 and the last; `None` if such calls weren't watched.
    pub exec_failures: Option<Vec<ExecFailure>>,
    /// How many there were in all.
    pub failed_execs: Option<u64>,
    /// Failed calls of fork, vfork and clone: how many failed in which way; `None` if such calls weren't watched.
    pub fork_failures: Option<BTreeMap<ForkFailed, u64>>,
    /// It did nothing but wait in a system call until a signal ended it, or until the recording ended. `None` also
    /// where that isn't known.
    pub blocked_at_end: Option<Blocked>,
    /// Its longest waits of those that are told of, in order of time.
    pub waits: Vec<Wait>,
    /// When it made a session of its own, ns since boot.
    pub session_ns: Option<u64>,
    /// Its pid in its own pid namespace.
    pub ns_pid: Option<u32>,
    /// How deep that namespace is below the first one.
    pub ns_level: Option<u32>,
    /// When it was moved to which other control groups, the first 64.
    pub moves: Vec<(u64, Moved)>,
}

impl Process {
    /// When its last thread ended, ns since boot, if that is known.
    pub fn end_ns(&self) -> Option<u64> {
        match self.ending {
            Ending::Ended { at } => at,
            Ending::Alive | Ending::Unknown => None,
        }
    }

    /// Highest RSS of any image that used memory of its own, bytes.
    pub fn peak_rss(&self) -> Option<u64> {
        let own = self.images.iter().filter(|i| i.shared_mm_with.is_none());
        own.filter_map(|i| i.memory.map(|m| m.peak.rss())).max()
    }

    /// What it called itself last, unless it has executed another program since.
    pub fn title(&self) -> Option<&Title> {
        let last = self.titles.last()?;
        let executed = self.program().and_then(|program| program.start_ns);
        executed.is_none_or(|at| at <= last.ns).then_some(last)
    }

    /// Last program that it executed itself.
    pub fn program(&self) -> Option<&Image> {
        self.images.iter().rev().find(|i| i.how == How::Exec)
    }
}

impl Process {
    /// Its parents, the creator first, if that is known.
    pub fn parents(&self) -> impl Iterator<Item = Parent> {
        let is_seen = self.created.creator_from == CreatorFrom::Fork;
        let creator = self.created.creator.map(|key| Parent {
            ns: is_seen.then_some(self.key.start_ns),
            key,
        });
        creator
            .into_iter()
            .chain(self.later_parents.iter().copied())
    }
}

/// A parent that a process had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Since then, ns since boot; `None`: since when isn't known.
    pub ns: Option<u64>,
    /// Who. It may be outside of the tree.
    pub key: ProcessKey,
}

/// By whom and how a process was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Created {
    /// In which way; `None`: not known.
    pub by: Option<CreatedBy>,
    /// Flags of clone, without the signal.
    pub flags: Option<u64>,
    /// Process that made it; `None` for the root, or if that isn't known.
    pub creator: Option<ProcessKey>,
    /// How far `creator` can be trusted.
    pub creator_from: CreatorFrom,
    /// Thread that made it.
    pub creator_tid: Option<u32>,
    /// Live threads of the creator then.
    pub creator_threads: Option<u32>,
    /// How long the call took in the kernel until it had made the process, ns.
    pub fork_ns: Option<u64>,
    /// RSS of the creator then, bytes; off by as much as any that rows tell.
    pub creator_rss: Option<u64>,
    /// Address space of the creator then, bytes.
    pub creator_vms: Option<u64>,
    /// Page tables of the creator then, bytes.
    pub creator_page_tables: Option<u64>,
}

/// Ways to make a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreatedBy {
    /// It is the recorded command.
    Root,
    /// With a copy of its creator's memory.
    Fork,
    /// In its creator's memory, with the creator waiting (`vfork`, `posix_spawn`).
    Vfork,
    /// In its creator's memory, side by side with it.
    CloneVm,
}

impl CreatedBy {
    /// From the flags of clone.
    pub fn from_flags(flags: u64) -> Self {
        match (flags & CLONE_VM != 0, flags & CLONE_VFORK != 0) {
            (true, true) => Self::Vfork,
            (true, false) => Self::CloneVm,
            (false, _) => Self::Fork,
        }
    }
}

/// Where knowledge of a creator comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreatorFrom {
    /// From the event of the creation itself.
    #[default]
    Fork,
    /// That event was lost; this is the parent that the process had at its end, which is the
    /// creator unless that one had ended before.
    ParentAtEnd,
    /// The process was there before the recording began; this is the parent that it had then, which is
    /// the creator unless that one had ended before.
    ParentAtStart,
}

/// Whether a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ended at this time, ns since boot; `None`: it did, but the event was lost.
    Ended {
        /// When.
        at: Option<u64>,
    },
    /// It was alive when the recording ended.
    Alive,
    /// Not known: the recording has no proper end.
    Unknown,
}

/// How a process came to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It goes on with the program of its creator.
    Inherited,
    /// By exec.
    Exec,
}

/// A program that a process was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// How it began.
    pub how: How,
    /// From then, ns since boot; `None` if the exec was lost.
    pub start_ns: Option<u64>,
    /// Until then: the next exec, or the end of the process.
    pub end_ns: Option<u64>,
    /// Path given to exec; `None` if inherited or lost.
    pub filename: Option<Vec<u8>>,
    /// Name at its start; `None` if lost.
    pub comm: Option<Vec<u8>>,
    /// Arguments; `None` if inherited or lost.
    pub argv: Option<Vec<Vec<u8>>>,
    /// Bytes of all arguments with their NULs.
    pub argv_bytes: Option<u64>,
    /// Whether `argv` is cut.
    pub argv_truncated: Option<bool>,
    /// Working directory at its start, or, of one that was there already, when it was found; `None`: not known.
    pub cwd: Option<Directory>,
    /// Its address space.
    pub mm: Option<Mm>,
    /// Process whose address space it uses, if it isn't its own.
    pub shared_mm_with: Option<ProcessKey>,
    /// Its memory; `None` if no event told it.
    pub memory: Option<ImageMemory>,
}

/// Memory of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageMemory {
    /// State at the moment of the highest RSS, bytes.
    pub peak: Memory,
    /// That moment, ns since boot.
    pub peak_ns: u64,
    /// Where the kernel side kept the peak: it may have been higher by this, bytes.
    pub peak_bound: u64,
    /// Highest VMS, bytes.
    pub peak_vms: u64,
    /// Highest swap use, bytes.
    pub peak_swap: u64,
    /// State that it began with, bytes; `None` if that isn't known.
    pub start: Option<Memory>,
    /// What happened to its anonymous pages since; `None` if that isn't known, or others use them too.
    pub churn: Option<Churn>,
    /// Least anonymous memory over time, as rows tell; empty where it isn't its own memory.
    pub floors: Floors,
    /// RSS before the image ended; `None` if it didn't end.
    pub end_rss: Option<u64>,
    /// The kernel side kept these peaks at every event, so the recording's resolution takes
    /// nothing from them. Otherwise they come from the rows of the trace.
    pub kept_at_every_event: bool,
}

/// Figures of a tree as a whole. Those of memory and of live processes are in [`Summary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Processes that the OOM killer ended. `None` if that isn't known of each.
    pub oom_kills: Option<u64>,
    /// All processes there ever were.
    pub processes: u64,
    /// Threads besides the first of each process; `None` if such events were lost.
    pub threads_created: Option<u64>,
    /// Most creators between a process and the root, itself not counted: a child of the root has 1.
    pub max_depth: u64,
    /// Processes that survived the root; `None` if that isn't known of one of them.
    pub survivors: Option<u64>,
    /// Most address spaces at one moment.
    pub max_spaces: u64,
    /// Failed calls of fork, vfork and clone; `None` if such calls weren't watched.
    pub failed_forks: Option<u64>,
    /// Failed calls of exec; `None` if such calls weren't watched.
    pub failed_execs: Option<u64>,
}

/// What was lost, and what follows from that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Events that the model saw.
    pub events: u64,
    /// Records that the kernel side could not hand over. Runs of its programs that were skipped aren't
    /// in it, since they may have been about anybody: they are in the notes.
    pub lost_events: u64,
    /// Nothing was lost, the recording has a proper end, and the events fit together.
    pub complete: bool,
    /// What isn't known or was repaired, in plain sentences.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_names_and_ways() {
        assert_eq!(clone_flag_names(0x4100), ["CLONE_VM", "CLONE_VFORK"]);
        assert_eq!(
            clone_flag_names(0x2000_0000 | 0x100_0000),
            ["CLONE_CHILD_SETTID", "CLONE_NEWPID"]
        );
        assert_eq!(CreatedBy::from_flags(0x4100), CreatedBy::Vfork);
        assert_eq!(CreatedBy::from_flags(0x100), CreatedBy::CloneVm);
        assert_eq!(CreatedBy::from_flags(0x120_0000), CreatedBy::Fork);
        // vfork's waiting alone doesn't share memory.
        assert_eq!(CreatedBy::from_flags(0x4000), CreatedBy::Fork);
    }
}
