//! What can be chosen of a recording.

use super::{
    attach::Attach,
    load::{Passes, Resolution},
    until::Until,
};
use crate::{
    event::{Kept, RecordedGroup},
    host::{memory_group::Choice, user::Invoker},
};

/// How to record.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Options {
    /// Size of the ring buffer, bytes; rounded up to a power of two and a page.
    pub buffer_bytes: u32,
    /// How exactly memory is followed.
    pub resolution: Resolution,
    /// Hooks to leave out, for tests.
    pub without: Vec<String>,
    /// Which programs are attached, for tests; `None`: what this kernel needs.
    pub passes: Option<Passes>,
    /// Possible CPUs up to which their parts of counters are added up, for tests; `None`: as many as the kernel's
    /// verifier takes.
    pub most_cpus: Option<u32>,
    /// Possible CPUs up to which these parts are added up at every event, for tests; `None`: as many as is cheap.
    pub full_sum_cpus: Option<u32>,
    /// Calls of exec and fork that fail are told of, at some cost for each system call on the host.
    pub failed_calls: bool,
    /// Compare what is recorded with `/proc` meanwhile.
    pub verify: bool,
    /// Print messages of the BPF programs.
    pub debug: bool,
    /// Keep argument lists as they are: secrets in them aren't hidden.
    pub keep_arguments: bool,
    /// Variables of the environment that are kept of each program.
    pub kept_variables: Kept,
    /// Nothing that the command executes can gain privileges.
    pub no_new_privileges: bool,
    /// The user behind sudo, as whom the command runs; `None`: as whoever runs rtrace.
    pub invoker: Option<Invoker>,
    /// Which memory control group the command is charged to.
    pub charge: Choice,
    /// Which processes that are there already are recorded.
    pub attach: Attach,
    /// When the recording ends.
    pub until: Until,
    /// Told which container is waited for, before there can be a recording.
    pub tell: fn(&RecordedGroup),
}
