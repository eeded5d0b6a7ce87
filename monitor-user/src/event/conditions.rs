//! What bounds and shapes a program from outside: what a diagnosis or a comparison of two runs needs later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Conditions of the command, or of the first process that was named, when the recording began. `None` is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// User, as a number.
    pub uid: Option<u32>,
    /// CPUs that it may run on, as a list ("0-3,8").
    pub allowed_cpus: Option<String>,
    /// Limits of its control groups and of those above that can be seen, the innermost first.
    pub cgroup_limits: Vec<HeldLimit>,
    /// Limits of the process itself (`ulimit`) by name, such as `max_open_files`; empty: not known.
    pub ulimits: BTreeMap<String, Ulimit>,
    /// `vm.overcommit_memory`: 0 by judgement, 1 always, 2 never.
    pub overcommit_memory: Option<u32>,
    /// `vm.overcommit_ratio`, percent; it counts where the mode is 2.
    pub overcommit_ratio: Option<u32>,
    /// Huge pages without being asked for: `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
}

/// A limit of a control group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldLimit {
    /// Folder of the group.
    pub group: String,
    /// File that holds the limit.
    pub file: String,
    /// What is in it.
    pub value: String,
}

/// A limit of a process, in the unit that `/proc/PID/limits` has. One that isn't there is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ulimit {
    /// The one that holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<u64>,
    /// The one up to which the process itself may raise it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard: Option<u64>,
}
