//! Victims of the OOM killer.

use super::{Memory, Mm};

/// The OOM killer chose a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oom {
    /// Its address space.
    pub mm: Option<Mm>,
    /// Its memory at that moment, bytes.
    pub memory: Option<Memory>,
    /// What ran out.
    pub scope: Option<OomScope>,
    /// Name of the control group that was at its limit: the last part of its folder's path. `None`
    /// also where no control group ran out.
    pub cgroup: Option<String>,
    /// That limit, bytes.
    pub limit: Option<u64>,
}

/// What ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OomScope {
    /// A control group had reached its limit.
    Cgroup,
    /// The whole host, or the memory nodes that the allocation was bound to, had none left.
    Host,
}

impl OomScope {
    /// Its word in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Host => "host",
        }
    }

    /// The one of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Cgroup, Self::Host]
            .into_iter()
            .find(|scope| scope.name() == name)
    }
}
