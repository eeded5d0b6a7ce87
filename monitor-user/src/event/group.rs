//! A control group whose processes are recorded.

use serde::{Deserialize, Serialize};

use super::Container;

/// Which control group was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedGroup {
    /// As it was named: the group, or the container.
    pub wanted: String,
    /// Its path from the top of its hierarchy; `None`: it wasn't there.
    pub path: Option<String>,
    /// Its hierarchy: "version 2", or "version 1" and its controllers; `None`: it wasn't there.
    pub hierarchy: Option<String>,
    /// When its first process was found or came, ns since boot; `None`: there was none.
    pub first_ns: Option<u64>,
    /// The container that has this group; `None`: none is known.
    pub container: Option<Container>,
}
