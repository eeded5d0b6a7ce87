//! Diagnoses over the finished model: what went wrong around fork, in words, with evidence.
//!
//! A diagnosis is one file with a [`Rule`]: its id, what it means, what to do, and a function from the model to
//! [`Finding`]s. [`RULES`] lists them all; the report, `rtrace explain` and the documentation are made from that list
//! alone. A finding holds evidence as values, and its text is made from those. A rule that lacks the events that it
//! needs isn't silent: it is not assessed, with the reason.

mod assess;
mod explain;
mod finding;
mod living_on;
mod needs;
mod registry;
mod rule;
mod scene;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;

mod cpu_oversubscribed;
mod elsewhere_line;
mod escape_pid_namespace;
mod escape_session;
mod exec_failed;
mod exit_waits_for_child;
mod fork_deadlock_suspected;
mod fork_failed;
mod fork_multithreaded;
mod fork_slow;
mod fork_spin_suspected;
mod fork_storm;
mod image_peak_inherited;
mod memory_growth;
mod memory_left_charged;
mod memory_oom_kill;
mod memory_shared_counted_twice;
mod pid_reused;
mod pool_broken;
mod pool_start_method;
mod process_core_dumped;
mod process_killed;
mod process_stopped;
mod process_survivor;
mod process_zombie;
mod stall_tree_asleep;
mod tree_work_elsewhere;
mod trust_incomplete;
mod vms_inherited;
mod worker_idle;
mod worker_killed;
mod worker_leftover;
mod worker_orphaned;
mod worker_recycled;
mod worker_replaced;

pub use assess::{Assessment, Selection, Unassessed, UnknownId, assess, is_meant};
pub use explain::{explanation, overview, page, sections, sentence};
pub use finding::{Finding, Severity, Value};
pub use registry::{RULES, find};
pub use rule::Rule;
pub use scene::Scene;
