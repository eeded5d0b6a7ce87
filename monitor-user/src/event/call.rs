//! System calls that failed, and moves between groups of processes.

/// A call of exec by the subject failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecFailed {
    /// Number of the error (`errno`).
    pub errno: u32,
    /// Path that was to be executed; empty if it couldn't be read.
    pub filename: Vec<u8>,
}

/// A call of fork, vfork or clone by the subject failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForkFailed {
    /// Number of the error (`errno`).
    pub errno: u32,
    /// What had no room for another process or thread at that moment; `None`: not known.
    pub refused_by: Option<RefusedBy>,
    /// That limit, processes and threads together; `None` also for [`RefusedBy::EndedNamespace`], which has none.
    pub limit: Option<u64>,
    /// Name of the control group whose limit it is: the last part of its folder's path.
    pub cgroup: Option<String>,
}

/// What refuses new processes and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusedBy {
    /// The user had as many as the caller's `RLIMIT_NPROC` (`ulimit -u`).
    UserLimit,
    /// The pid namespace had no number left.
    PidNumbers,
    /// A control group had as many as its `pids.max`.
    Cgroup,
    /// The first process of the pid namespace that children come into has ended.
    EndedNamespace,
}

impl RefusedBy {
    const ALL: [Self; 4] = [
        Self::UserLimit,
        Self::PidNumbers,
        Self::Cgroup,
        Self::EndedNamespace,
    ];

    /// Its word in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserLimit => "user_limit",
            Self::PidNumbers => "pid_numbers",
            Self::Cgroup => "cgroup",
            Self::EndedNamespace => "ended_namespace",
        }
    }

    /// The one of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// The subject was moved to another control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of the group's hierarchy, 0 for version 2.
    pub hierarchy: Option<u32>,
    /// The group's path in its hierarchy.
    pub path: Vec<u8>,
}
