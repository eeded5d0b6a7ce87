//! Birth, images and death of processes and threads.

use std::collections::BTreeMap;

use super::{Directory, Memory, Mm};
use crate::units::ProcessKey;

/// A new process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fork {
    /// Process that called fork, vfork or clone; `None` for the recorded command itself.
    pub creator: Option<ProcessKey>,
    /// Thread of the creator that called.
    pub creator_tid: Option<u32>,
    /// Live threads of the creator at that moment.
    pub creator_threads: Option<u32>,
    /// Flags of clone without the exit signal.
    pub clone_flags: Option<u64>,
    /// Address space of the new process.
    pub mm: Option<Mm>,
    /// Address space of the creator; the same as `mm` if it is shared (vfork, `CLONE_VM`).
    pub creator_mm: Option<Mm>,
    /// Memory that the process starts with, bytes.
    pub memory: Memory,
    /// Name that it starts with, bytes as the kernel has them.
    pub comm: Vec<u8>,
    /// Its pid in its own pid namespace.
    pub ns_pid: Option<u32>,
    /// How deep that namespace is below the first one.
    pub ns_level: Option<u32>,
    /// How long the call took in the kernel until it had made the process, ns: copying page tables, for the most part.
    /// What vfork waits for afterwards isn't in it.
    pub fork_ns: Option<u64>,
    /// RSS of the creator at that moment, bytes.
    pub creator_rss: Option<u64>,
    /// Its address space, bytes.
    pub creator_vms: Option<u64>,
    /// Its page tables, bytes.
    pub creator_page_tables: Option<u64>,
}

/// A new thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread that created it.
    pub creator_tid: u32,
    /// Live threads of the process now, this one included.
    pub threads: u32,
    /// Flags of clone.
    pub clone_flags: u64,
    /// Name that it starts with.
    pub comm: Vec<u8>,
}

/// A process became another program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    /// Path given to exec.
    pub filename: Vec<u8>,
    /// Arguments as the kernel laid them out, without their NULs; the last may be cut.
    pub argv: Vec<Vec<u8>>,
    /// Bytes of all arguments with their NULs, also of those that were cut off.
    pub argv_bytes: u64,
    /// Whether `argv` is not all of it.
    pub argv_truncated: bool,
    /// Name after the exec.
    pub comm: Vec<u8>,
    /// Thread that called exec; from here on its id is the process's.
    pub old_tid: u32,
    /// Address space of the new image.
    pub mm: Option<Mm>,
    /// Address space before.
    pub old_mm: Option<Mm>,
    /// Memory of the new image at this moment, bytes.
    pub memory: Memory,
    /// Its working directory at this moment; `None`: not known.
    pub cwd: Option<Directory>,
}

/// A thread ended that was not the last of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadExit {
    /// Its CPU time, ns; up to one tick less than the truth.
    pub cpu_ns: u64,
    /// Live threads left.
    pub threads: u32,
}

/// The last thread of a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Status as `wait` gives it: code in bits 8 to 15, signal in 0 to 6, core dump in 7.
    pub status: u32,
    /// Parent at this moment (not always the creator).
    pub parent: Option<ProcessKey>,
    /// CPU time of this last thread, ns; up to one tick less than the truth.
    pub cpu_ns: u64,
    /// When the process first ran, ns since boot.
    pub first_run_ns: Option<u64>,
    /// How long signals had stopped it, ns: its first thread.
    pub stopped_ns: Option<u64>,
    /// Process that the kernel gave its children to, if it left any; `None`: not known, or its children ended with it.
    pub reaper: Option<ProcessKey>,
}

impl Exit {
    /// Exit code; `None` for a death by signal.
    pub fn code(&self) -> Option<u32> {
        let ended_itself = self.signal().is_none();
        ended_itself.then_some(self.status >> 8 & 0xff)
    }

    /// Signal that ended the process.
    pub fn signal(&self) -> Option<u32> {
        Some(self.status & 0x7f).filter(|signal| *signal != 0)
    }

    /// Whether a core was written.
    pub fn core(&self) -> bool {
        self.status & 0x80 != 0
    }
}

/// A process was reaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// CPU time of all its threads, ns, final.
    pub cpu_ns: Option<u64>,
    /// What else all its threads used, final.
    pub usage: Usage,
}

/// What all threads of a process have used from its creation to its end, all its programs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode, ns.
    ///
    /// The kernel samples at ticks where a process runs and shares its exact CPU time out in that
    /// proportion (`cputime_adjust` in `kernel/sched/cputime.c`, 5.10 to 7.2). So do we, and with
    /// `system_ns` this is the whole CPU time. A process that no tick has met was in user mode.
    pub user_ns: Option<u64>,
    /// Time in the kernel, ns.
    pub system_ns: Option<u64>,
    /// Page faults that needed nothing from storage.
    pub faults_minor: Option<u64>,
    /// Page faults that had to wait for storage.
    pub faults_major: Option<u64>,
    /// Times that a thread gave up the CPU to wait for something.
    pub switches_voluntary: Option<u64>,
    /// Times that the CPU was taken from a thread.
    pub switches_involuntary: Option<u64>,
    /// Bytes that system calls read, from whatever it was (`rchar` in `/proc/PID/io`).
    pub read_chars: Option<u64>,
    /// Bytes that system calls wrote (`wchar`).
    pub written_chars: Option<u64>,
    /// Bytes read from storage for it (`read_bytes`).
    pub read_bytes: Option<u64>,
    /// Bytes that it made to be written to storage (`write_bytes`), also those that never were.
    pub written_bytes: Option<u64>,
}

/// A process that was there when the recording ended or began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Its parent then.
    pub parent: Option<ProcessKey>,
    /// Ended, but not reaped; at the beginning: it was about to end.
    pub zombie: bool,
    /// When it first ran, ns since boot.
    pub first_run_ns: Option<u64>,
    /// How long signals had stopped it so far, ns: its first thread.
    pub stopped_ns: Option<u64>,
    /// What else is known of one that was there when the recording began; `None`: this is about the recording's end.
    pub found: Option<Found>,
}

/// A process that was there when the recording began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its address space; `None`: it has none, or is about to get another one.
    pub mm: Option<Mm>,
    /// What that had, bytes.
    pub memory: Option<Memory>,
    /// Live threads.
    pub threads: u32,
    /// Whether it has executed a program since it was forked.
    pub has_executed: bool,
    /// Its pid in its own pid namespace.
    pub ns_pid: Option<u32>,
    /// How deep that namespace is below the first one.
    pub ns_level: Option<u32>,
    /// Its name.
    pub comm: Vec<u8>,
    /// Its arguments as `/proc` tells them; `None`: they can't be read.
    pub argv: Option<Vec<Vec<u8>>>,
    /// Its working directory, shortly after it was found; `None`: not known.
    pub cwd: Option<Directory>,
}

/// Records that the kernel side could not hand over, by kind of record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Kind of record (`fork`, `memory`, ...) and how many.
    pub lost: BTreeMap<String, u64>,
}
