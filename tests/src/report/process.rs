//! Processes of the report.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

use super::Id;
use crate::lone_surrogates::Text;

/// A parent that a process had.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Parent {
    /// Since then, ns since boot; `None`: since when isn't known.
    pub ns: Option<u64>,
    /// Its pid.
    pub pid: u32,
    /// Its start; `None` if it isn't in the report.
    pub start_ns: Option<u64>,
}

/// One process.
#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Created then, ns since boot.
    pub start_ns: u64,
    /// Last thread ended then, ns since boot.
    pub end_ns: Option<u64>,
    /// Process that created it; `None` for the root.
    pub creator: Option<Id>,
    /// Where `creator` is from, if not from its creation.
    pub creator_from: Option<String>,
    /// It was there before the recording and was found then, ns since boot.
    pub found_ns: Option<u64>,
    /// Thread that created it.
    pub creator_tid: Option<u32>,
    /// Live threads of the creator then.
    pub creator_threads: Option<u32>,
    /// How long the call took that created it, ns.
    pub fork_ns: Option<u64>,
    /// RSS of the creator then.
    pub creator_rss_bytes: Option<u64>,
    /// Its address space.
    pub creator_vms_bytes: Option<u64>,
    /// Its page tables.
    pub creator_page_tables_bytes: Option<u64>,
    /// Parent at the end.
    pub final_parent: Option<Id>,
    /// All parents, the creator first.
    pub parents: Vec<Parent>,
    /// `root`, `fork`, `vfork` or `clone_vm`.
    pub created_by: Option<String>,
    /// Names of clone's flags.
    pub clone_flags: Option<Vec<String>>,
    /// Last name of the first thread.
    pub comm: Option<Text>,
    /// Programs that it was, in order.
    pub images: Vec<Image>,
    /// What its last program got of the variables that are kept.
    pub env: Option<BTreeMap<String, Text>>,
    /// What it called itself last by writing over its arguments.
    pub title: Option<Text>,
    /// All that it called itself so.
    #[serde(default)]
    pub titles: Vec<Title>,
    /// Moments that it marked.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Threads besides its first.
    pub threads_created: Option<u32>,
    /// Most threads alive at once.
    pub threads_max: Option<u32>,
    /// User plus system time, ns.
    pub cpu_ns: Option<u64>,
    /// What else all its threads used.
    #[serde(flatten)]
    pub usage: Usage,
    /// The OOM killer chose it.
    pub oom: Option<Oom>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Lived on after the root.
    pub survived_root: Option<bool>,
    /// From its end until it was reaped, ns.
    pub zombie_ns: Option<u64>,
    /// First had a CPU then, ns since boot.
    pub first_run_ns: Option<u64>,
    /// Stopped by signals for so long, ns.
    pub stopped_ns: Option<u64>,
    /// Waited until it was killed, or until the recording ended.
    pub blocked_at_end: Option<Blocked>,
    /// Its longest waits.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// Calls of exec that failed.
    pub exec_failures: Option<Vec<ExecFailure>>,
    /// Calls of fork that failed, by name of the error.
    pub fork_failures: Option<BTreeMap<String, u64>>,
    /// The same calls by what refused them.
    pub fork_refusals: Option<Vec<ForkRefusal>>,
    /// Its pid in its own pid namespace.
    pub pid_ns: Option<u32>,
    /// How deep that is below the first one.
    pub pid_ns_level: Option<u32>,
    /// Made a session of its own then, ns since boot.
    pub session_ns: Option<u64>,
    /// Moves to other control groups.
    #[serde(default)]
    pub moves: Vec<Move>,
}

/// A process that did nothing but wait.
#[derive(Clone, Debug, Deserialize)]
pub struct Blocked {
    /// `futex`, `read`, `wait`, `sleep` or `other`.
    pub kind: String,
    /// How long, ns.
    pub ns: u64,
}

/// A long wait of a thread.
#[derive(Clone, Debug, Deserialize)]
pub struct Wait {
    /// The thread.
    pub tid: u32,
    /// From then, ns since boot.
    pub since_ns: u64,
    /// Until then, ns since boot.
    pub until_ns: u64,
    /// `sleeping`, `uninterruptible`, `stopped` or `traced`.
    pub state: String,
    /// System call that it waited in.
    pub syscall: Option<String>,
}

/// A call of exec that failed.
#[derive(Clone, Debug, Deserialize)]
pub struct ExecFailure {
    /// Name of the error.
    pub errno: String,
    /// Path that was to be executed.
    pub filename: Text,
}

/// Calls of fork that failed in the same way.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct ForkRefusal {
    /// Name of the error.
    pub errno: String,
    /// What was at its limit.
    pub by: Option<String>,
    /// That limit.
    pub limit: Option<u64>,
    /// The control group whose limit it is.
    pub cgroup: Option<String>,
    /// How many calls.
    pub calls: u64,
}

/// A move to another control group.
#[derive(Clone, Debug, Deserialize)]
pub struct Move {
    /// Its path in its hierarchy.
    pub cgroup: Text,
}

/// Who sent a signal.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Sender {
    /// `user` or `kernel`.
    pub kind: String,
    /// The process; 0 for the kernel.
    pub pid: u32,
}

/// What a process called itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Title {
    /// Seen then, ns since boot.
    pub ns: u64,
    /// What.
    pub text: Text,
    /// There was more.
    pub truncated: bool,
}

/// A moment that a process marked.
#[derive(Clone, Debug, Deserialize)]
pub struct Mark {
    /// When, ns since boot.
    pub ns: u64,
    /// What it said.
    pub text: Text,
}

/// What all threads of a process used, if it was reaped.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode, ns.
    pub user_ns: Option<u64>,
    /// Time in the kernel, ns.
    pub system_ns: Option<u64>,
    /// Page faults without storage.
    pub faults_minor: Option<u64>,
    /// Page faults that waited for storage.
    pub faults_major: Option<u64>,
    /// Gave up the CPU.
    pub switches_voluntary: Option<u64>,
    /// Lost the CPU.
    pub switches_involuntary: Option<u64>,
    /// Read by system calls, bytes.
    pub read_chars: Option<u64>,
    /// Written by system calls, bytes.
    pub written_chars: Option<u64>,
    /// Read from storage.
    pub read_bytes: Option<u64>,
    /// Written to storage.
    pub written_bytes: Option<u64>,
}

/// A victim of the OOM killer.
#[derive(Clone, Debug, Deserialize)]
pub struct Oom {
    /// `cgroup` or `host`.
    pub scope: Option<String>,
    /// Name of the control group.
    pub cgroup: Option<String>,
    /// Its limit.
    pub limit_bytes: Option<u64>,
    /// RSS.
    pub rss_bytes: Option<u64>,
    /// Anonymous pages.
    pub rss_anon_bytes: Option<u64>,
    /// Pages of files.
    pub rss_file_bytes: Option<u64>,
    /// Shared memory.
    pub rss_shmem_bytes: Option<u64>,
    /// Size of the address space.
    pub vms_bytes: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Exit {
    /// Exit code.
    pub code: Option<u32>,
    /// Deadly signal.
    pub signal: Option<u32>,
    /// A core was written.
    pub core: Option<bool>,
    /// The OOM killer did it.
    pub oom: Option<bool>,
    /// Who sent the signal.
    pub sender: Option<Sender>,
}

/// One program that a process was.
#[derive(Clone, Debug, Deserialize)]
pub struct Image {
    /// From then, ns since boot.
    pub start_ns: Option<u64>,
    /// Until then, ns since boot.
    pub end_ns: Option<u64>,
    /// `inherited` or `exec`.
    pub how: String,
    /// Path given to exec.
    pub filename: Option<Text>,
    /// Name right after exec.
    pub comm: Option<Text>,
    /// Arguments.
    #[serde(default)]
    pub argv: Option<Vec<Text>>,
    /// Size of all arguments with their NULs.
    pub argv_bytes: Option<u64>,
    /// Some arguments are missing.
    pub argv_truncated: Option<bool>,
    /// Working directory at its start.
    pub cwd: Option<Text>,
    /// Outer folders of that are missing.
    #[serde(default)]
    pub cwd_truncated: bool,
    /// It had been removed.
    #[serde(default)]
    pub cwd_deleted: bool,
    /// It wasn't mounted any more.
    #[serde(default)]
    pub cwd_unreachable: bool,
    /// Highest RSS.
    pub peak_rss_bytes: Option<u64>,
    /// By how much that peak may be wrong.
    pub peak_rss_bound_bytes: Option<u64>,
    /// RSS that it began with.
    pub start_rss_bytes: Option<u64>,
    /// Anonymous pages that it has from its creator.
    pub inherited_anon_bytes: Option<u64>,
    /// Write faults on pages that were there.
    pub write_faults: Option<u64>,
    /// RSS just before the image ended.
    pub end_rss_bytes: Option<u64>,
    /// Highest VMS.
    pub peak_vms_bytes: Option<u64>,
    /// Process whose address space it uses.
    pub shared_mm_with: Option<Id>,
}

impl Process {
    /// Pid and start.
    pub fn id(&self) -> Id {
        Id {
            pid: self.pid,
            start_ns: Some(self.start_ns),
        }
    }

    /// Exit code, if it ended with one.
    pub fn code(&self) -> Option<u32> {
        self.exit.as_ref().and_then(|exit| exit.code)
    }

    /// Deadly signal, if one ended it.
    pub fn signal(&self) -> Option<u32> {
        self.exit.as_ref().and_then(|exit| exit.signal)
    }

    /// Its last image.
    ///
    /// # Errors
    /// It has none.
    pub fn image(&self) -> anyhow::Result<&Image> {
        self.images
            .last()
            .with_context(|| format!("process {} has no image", self.pid))
    }

    /// Images that it became by exec.
    pub fn execs(&self) -> impl Iterator<Item = &Image> {
        self.images.iter().filter(|image| image.how == "exec")
    }
}
