//! The schema of a trace: the only place that defines its columns, its kinds of rows and its version.
//!
//! Whole numbers are kept in the plainest type that tools take without surprises: times and bytes
//! are `Int64`, so that differences may be negative. A value above `i64::MAX` (none occurs in
//! practice) is stored as the same 64 bits.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Version of the trace format that this program writes.
pub const VERSION: Version = Version { major: 1, minor: 7 };

/// Version of the trace format.
///
/// A new kind or column raises the minor version; readers skip and count what they don't know.
/// Anything that makes an old reader wrong raises the major version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Readers of another major version must refuse.
    pub major: u32,
    /// Readers of the same major version can read it, whatever the minor version is.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self {
            major: major.parse()?,
            minor: minor.parse()?,
        })
    }
}

/// Type of a column, the same in Arrow, Parquet and the tools that read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    UInt64,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    UInt32,
    /// True or false.
    Bool,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
    /// List of UTF-8.
    TextList,
    /// List of any bytes.
    BytesList,
    /// List of signed numbers of 64 bits.
    Int64List,
    /// One of few words, by dictionary.
    Word,
}

impl Type {
    /// The Arrow type.
    pub fn arrow(self) -> DataType {
        let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
        match self {
            Self::Int64 => DataType::Int64,
            Self::UInt64 => DataType::UInt64,
            Self::Int32 => DataType::Int32,
            Self::UInt32 => DataType::UInt32,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::TextList => list(DataType::Utf8),
            Self::BytesList => list(DataType::Binary),
            Self::Int64List => list(DataType::Int64),
            Self::Word => DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        }
    }

    /// Its name in documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::Bool => "bool",
            Self::Text => "string",
            Self::Bytes => "binary",
            Self::TextList => "list of string",
            Self::BytesList => "list of binary",
            Self::Int64List => "list of int64",
            Self::Word => "string (dictionary)",
        }
    }
}

/// A column, as data.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name in the file.
    pub name: &'static str,
    /// Type.
    pub of: Type,
    /// Unit; empty where there is none.
    pub unit: &'static str,
    /// What it holds, in one sentence.
    pub doc: &'static str,
    /// Kinds of rows that may fill it; null in all others.
    pub kinds: &'static [Kind],
}

impl Column {
    /// Whether every row has it.
    pub fn required(&self) -> bool {
        matches!(self.name, "time_ns" | "kind" | "cpu")
    }
}

macro_rules! kinds {
    ($($kind:ident $name:literal $doc:literal;)*) => {
        /// Kind of a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $(#[doc = $doc] $kind),* }

        impl Kind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its word in the column `kind`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            /// What a row of this kind says, in one sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$kind => $doc),* }
            }

            /// The kind of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$kind),)* _ => None }
            }
        }
    };
}

kinds! {
    Fork "fork" "The subject, a process, was created.";
    Thread "thread" "The subject, a thread, was created.";
    Exec "exec" "The subject became another program.";
    Rename "rename" "The subject's name changed.";
    ThreadExit "thread_exit" "The subject, a thread, ended and left others behind.";
    Exit "exit" "The subject, the last thread of its process, ended.";
    Reaped "reaped" "The subject, a process, was reaped by its parent.";
    Memory "memory" "State of an address space after a change.";
    MmEnd "mm_end" "An address space was torn down.";
    Snapshot "snapshot" "The recorder looked at a process itself: at the end of the recording, or, with `comm`, at one that was there when it began.";
    Loss "loss" "The kernel side lost records since the last row of this kind.";
    Oom "oom" "The OOM killer chose the subject, a process, and sent it SIGKILL; its memory is as of that moment.";
    Signal "signal" "A signal was sent to the subject, a thread.";
    ExecFailed "exec_failed" "A call of exec by the subject failed.";
    ForkFailed "fork_failed" "A call of fork, vfork or clone by the subject failed.";
    Sleep "sleep" "The subject, a thread, ran again after it had waited for long; or still waits, at the end of the recording.";
    Session "session" "The subject made a session of its own.";
    Moved "moved" "The subject, a process, was moved to another control group.";
    Environment "env" "The subject's new program got this of the variables that are kept; follows its `exec`.";
    Title "title" "The subject was seen to have written something else (`argv`) over its arguments.";
}

macro_rules! columns {
    ($($column:ident $name:literal $of:ident $unit:literal $kinds:expr, $doc:literal;)*) => {
        /// A column, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Col { $(#[doc = $doc] $column),* }

        /// All columns in the order of the file; `COLUMNS[col as usize]` describes `col`.
        pub const COLUMNS: &[Column] = &[
            $(Column { name: $name, of: Type::$of, unit: $unit, doc: $doc, kinds: &$kinds }),*
        ];
    };
}

use Kind::{
    Environment, Exec, ExecFailed, Exit, Fork, ForkFailed, Loss, Memory, MmEnd, Moved, Oom, Reaped,
    Rename, Session, Signal, Sleep, Snapshot, Thread, ThreadExit, Title,
};

const EVERY: [Kind; 20] = [
    Fork,
    Thread,
    Exec,
    Rename,
    ThreadExit,
    Exit,
    Reaped,
    Memory,
    MmEnd,
    Snapshot,
    Loss,
    Environment,
    Oom,
    Signal,
    ExecFailed,
    ForkFailed,
    Sleep,
    Session,
    Moved,
    Title,
];

columns! {
    TimeNs "time_ns" Int64 "ns" EVERY, "When it happened, since boot.";
    Kind "kind" Word "" EVERY, "What happened.";
    Cpu "cpu" Int32 "" EVERY, "CPU on which it happened.";
    Pid "pid" UInt32 "" EVERY, "Process that the row is about; null where the kernel can't know it.";
    StartNs "start_ns" Int64 "ns" EVERY, "When that process was created, since boot; with `pid` it identifies the process.";
    Tid "tid" UInt32 "" EVERY, "Thread that the row is about.";
    Mm "mm" UInt64 "" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "Number of the address space, unique in the trace; after fork and exec the new one.";
    OldMm "old_mm" UInt64 "" [Fork, Exec], "Address space of the creator (fork; the same as `mm` if it is shared) or of the image before (exec).";
    RssAnon "rss_anon" Int64 "bytes" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "Resident anonymous memory of the address space; in `mm_end` just before it was given back.";
    RssFile "rss_file" Int64 "bytes" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "Resident pages of files.";
    RssShmem "rss_shmem" Int64 "bytes" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "Resident shared memory (tmpfs, memfd, shared anonymous mappings).";
    Swap "swap" Int64 "bytes" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "Memory that was swapped out.";
    Vms "vms" Int64 "bytes" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "Size of all mappings.";
    VmsData "vms_data" Int64 "bytes" [Memory], "Part of `vms` that is private, writable and no stack.";
    VmsExec "vms_exec" Int64 "bytes" [Memory], "Part of `vms` that is executable and not writable.";
    VmsStack "vms_stack" Int64 "bytes" [Memory], "Part of `vms` that is a stack which grows by itself.";
    PageTables "page_tables" Int64 "bytes" [Memory], "Page tables of the address space; not part of `vms`.";
    AnonGrown "anon_grown" Int64 "bytes" [Memory, MmEnd], "Anonymous memory that came since fork or exec, also what has gone again; too much rather than too little.";
    WriteFaults "write_faults" Int64 "" [Memory, MmEnd], "Write faults on pages that were there, since fork or exec; each copied a page at most. Null where page faults aren't seen.";
    Charge "charge" Int64 "bytes" [Memory], "What the memory controller charged the command's control group then, each page once, whoever used it; null where that isn't known.";
    Bound "bound" Int64 "bytes" [Fork, Exec, Memory, MmEnd, Oom, Snapshot], "How far each of the row's `rss_*` and `swap` values may be off, either way.";
    PeakNs "peak_ns" Int64 "ns" [MmEnd], "When the resident memory was highest, since boot.";
    PeakRssAnon "peak_rss_anon" Int64 "bytes" [MmEnd], "Resident anonymous memory at `peak_ns`.";
    PeakRssFile "peak_rss_file" Int64 "bytes" [MmEnd], "Resident pages of files at `peak_ns`.";
    PeakRssShmem "peak_rss_shmem" Int64 "bytes" [MmEnd], "Resident shared memory at `peak_ns`.";
    SwapAtPeak "swap_at_peak" Int64 "bytes" [MmEnd], "Memory swapped out at `peak_ns`.";
    VmsAtPeak "vms_at_peak" Int64 "bytes" [MmEnd], "Size of all mappings at `peak_ns`.";
    PeakSwap "peak_swap" Int64 "bytes" [MmEnd], "Most memory ever swapped out.";
    PeakRssBound "peak_rss_bound" Int64 "bytes" [MmEnd], "The highest RSS may have been higher by this (since 1.5).";
    PeakVms "peak_vms" Int64 "bytes" [MmEnd], "Largest size of all mappings ever.";
    CreatorPid "creator_pid" UInt32 "" [Fork], "Process that created the subject; null for the recorded command itself.";
    CreatorStartNs "creator_start_ns" Int64 "ns" [Fork], "When that process was created, since boot.";
    CreatorTid "creator_tid" UInt32 "" [Fork, Thread], "Thread that created the subject.";
    CreatorThreads "creator_threads" UInt32 "" [Fork], "Live threads of the creator at that moment.";
    ForkNs "fork_ns" Int64 "ns" [Fork], "From the beginning of the call to the moment at which it had made the process; what vfork waits for isn't in it.";
    CreatorRss "creator_rss" Int64 "bytes" [Fork], "RSS of the creator at that moment; three times `bound` off at most.";
    CreatorVms "creator_vms" Int64 "bytes" [Fork], "Size of its mappings.";
    CreatorPageTables "creator_page_tables" Int64 "bytes" [Fork], "Its page tables.";
    CloneFlags "clone_flags" UInt64 "" [Fork, Thread], "Flags of clone, without the exit signal.";
    Threads "threads" UInt32 "" [Thread, ThreadExit, Snapshot], "Live threads of the process after this.";
    ParentPid "parent_pid" UInt32 "" [Exit, Snapshot], "Parent at this moment, not always the creator.";
    ParentStartNs "parent_start_ns" Int64 "ns" [Exit, Snapshot], "When that parent was created, since boot.";
    ReaperPid "reaper_pid" UInt32 "" [Exit], "Process that the kernel then gave the subject's children to, if it had any: a subreaper, or the first process of its pid namespace (since 1.6).";
    ReaperStartNs "reaper_start_ns" Int64 "ns" [Exit], "When that process was created, since boot.";
    Comm "comm" Text "" [Fork, Thread, Exec, Rename, Snapshot], "Name of the thread after this.";
    CommRaw "comm_raw" Bytes "" [Fork, Thread, Exec, Rename, Snapshot], "The exact bytes of `comm`; null where `comm` is exact.";
    NsPid "ns_pid" UInt32 "" [Fork, Snapshot], "Pid of the subject in its own pid namespace.";
    NsLevel "ns_level" UInt32 "" [Fork, Snapshot], "How deep that namespace is below the first one.";
    Filename "filename" Text "" [Exec, ExecFailed], "Path that was given to exec; of a failed one empty if it couldn't be read.";
    FilenameRaw "filename_raw" Bytes "" [Exec, ExecFailed], "The exact bytes of `filename`; null where `filename` is exact.";
    Argv "argv" TextList "" [Exec, Snapshot, Title], "Arguments; the last may be cut, see `argv_truncated`.";
    ArgvRaw "argv_raw" BytesList "" [Exec, Snapshot, Title], "The exact bytes of all of `argv`; null where `argv` is exact.";
    ArgvBytes "argv_bytes" Int64 "bytes" [Exec], "Length of all arguments with their NULs, also of those that were cut off.";
    ArgvTruncated "argv_truncated" Bool "" [Exec, Title], "Whether `argv` is not all of it.";
    Cwd "cwd" Text "" [Exec, Snapshot], "Working directory then, from the top of the tree of mounts; without a slash in front if it is cut, see `cwd_state`.";
    CwdRaw "cwd_raw" Bytes "" [Exec, Snapshot], "The exact bytes of `cwd`; null where `cwd` is exact.";
    CwdState "cwd_state" TextList "" [Exec, Snapshot], "What is to be said of it: `cut` (outer folders are missing), `deleted`, `unreachable` (not mounted any more).";
    Env "env" TextList "" [Environment], "Variables that are kept, as NAME=value; no other is recorded.";
    EnvRaw "env_raw" BytesList "" [Environment], "The exact bytes of all of `env`; null where `env` is exact.";
    EnvWhole "env_whole" Bool "" [Environment], "Whether all of the environment could be looked through.";
    OldTid "old_tid" UInt32 "" [Exec], "Thread that called exec; from here on its id is the process's.";
    Status "status" UInt32 "" [Exit], "Status as wait gives it: exit code in bits 8 to 15, signal in 0 to 6, core dump in 7.";
    CpuNs "cpu_ns" Int64 "ns" [ThreadExit, Exit, Reaped, Memory], "CPU time of the thread so far (`thread_exit`, exit, memory; up to a tick less than the truth) or of the whole process (reaped).";
    FirstRunNs "first_run_ns" Int64 "ns" [Exit, Snapshot], "When the process first ran, since boot.";
    StoppedNs "stopped_ns" Int64 "ns" [Exit, Snapshot], "How long signals had stopped the process.";
    Zombie "zombie" Bool "" [Snapshot], "Whether the process had ended but was not reaped; at the beginning: whether it was about to end.";
    Executed "executed" Bool "" [Snapshot], "At the beginning: whether the process had executed a program since it was forked.";
    UserNs "user_ns" Int64 "ns" [Reaped], "Time in user mode of all threads: the share of `cpu_ns` that the kernel's ticks found there.";
    SystemNs "system_ns" Int64 "ns" [Reaped], "Time in the kernel of all threads; with `user_ns` it is `cpu_ns`.";
    FaultsMinor "faults_minor" Int64 "" [Reaped], "Page faults of all threads that needed nothing from storage.";
    FaultsMajor "faults_major" Int64 "" [Reaped], "Page faults of all threads that had to wait for storage.";
    SwitchesVoluntary "switches_voluntary" Int64 "" [Reaped], "Times that a thread gave up the CPU to wait.";
    SwitchesInvoluntary "switches_involuntary" Int64 "" [Reaped], "Times that the CPU was taken from a thread.";
    ReadChars "read_chars" Int64 "bytes" [Reaped], "Read by system calls of all threads, from whatever it was.";
    WrittenChars "written_chars" Int64 "bytes" [Reaped], "Written by system calls of all threads.";
    ReadBytes "read_bytes" Int64 "bytes" [Reaped], "Read from storage for all threads.";
    WrittenBytes "written_bytes" Int64 "bytes" [Reaped], "To be written to storage for all threads; what was deleted before that counts too.";
    OomScope "oom_scope" Text "" [Oom], "What ran out: `cgroup`, a control group at its limit, or `host`.";
    OomCgroup "oom_cgroup" Text "" [Oom], "Name of that control group: the last part of its folder's path.";
    OomLimit "oom_limit" Int64 "bytes" [Oom], "Limit of that control group.";
    Signal "signal" UInt32 "" [Signal], "The signal.";
    SignalCode "signal_code" Int32 "" [Signal], "Its `si_code`, where it was sent with one.";
    ForProcess "for_process" Bool "" [Signal], "Whether it was for the whole process, else for one thread.";
    Sender "sender" Text "" [Signal], "Who sent it: `user`, a process, or `kernel`.";
    SenderPid "sender_pid" UInt32 "" [Signal], "Process that sent it; null for the kernel.";
    SenderStartNs "sender_start_ns" Int64 "ns" [Signal], "When that process was created, since boot.";
    SenderTid "sender_tid" UInt32 "" [Signal], "Thread that sent it.";
    SenderComm "sender_comm" Text "" [Signal], "Name of that thread.";
    SenderCommRaw "sender_comm_raw" Bytes "" [Signal], "The exact bytes of `sender_comm`; null where it is exact.";
    Errno "errno" UInt32 "" [ExecFailed, ForkFailed], "Number of the error that the call failed with.";
    RefusedBy "refused_by" Text "" [ForkFailed], "What was at its limit then: `user_limit` (`RLIMIT_NPROC`), `pid_numbers` of the pid namespace, `cgroup` (`pids.max`), or `ended_namespace`, whose first process has ended; null where that isn't known (since 1.7).";
    RefusedLimit "refused_limit" Int64 "" [ForkFailed], "That limit, processes and threads together.";
    RefusedCgroup "refused_cgroup" Text "" [ForkFailed], "Name of the control group whose limit it is: the last part of its folder's path.";
    SinceNs "since_ns" Int64 "ns" [Sleep], "When the thread left the CPU to wait, since boot.";
    Waited "waited" Text "" [Sleep], "How it waited: `sleeping`, `uninterruptible`, `stopped` (by a signal) or `traced` (by a debugger).";
    Syscall "syscall" Text "" [Sleep], "System call that it waited in; null for none, or where that isn't known.";
    Still "still" Bool "" [Sleep], "Whether it still waits.";
    Session "session" UInt32 "" [Session], "Number of the session: the pid of the process that made it.";
    Hierarchy "hierarchy" UInt32 "" [Moved], "Number of the control group's hierarchy, 0 for version 2.";
    Cgroup "cgroup" Text "" [Moved], "Path of the control group in its hierarchy.";
    CgroupRaw "cgroup_raw" Bytes "" [Moved], "The exact bytes of `cgroup`; null where it is exact.";
    LostKinds "lost_kinds" TextList "" [Loss], "Kinds of the records that were lost.";
    LostCounts "lost_counts" Int64List "" [Loss], "How many were lost of each of `lost_kinds`, in the same order.";
}

impl Col {
    /// What the table says about it.
    pub const fn column(self) -> &'static Column {
        &COLUMNS[self as usize]
    }
}

/// The Arrow schema; unit and one-sentence documentation are metadata of each field.
pub fn arrow_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(
            COLUMNS.iter().map(field).collect::<Vec<Field>>(),
        ))
    });
    Arc::clone(&SCHEMA)
}

fn field(column: &Column) -> Field {
    let mut metadata = HashMap::from([("doc".to_owned(), column.doc.to_owned())]);
    if !column.unit.is_empty() {
        metadata.insert("unit".to_owned(), column.unit.to_owned());
    }
    Field::new(column.name, column.of.arrow(), !column.required()).with_metadata(metadata)
}
