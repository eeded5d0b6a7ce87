//! The list of all rules.

use crate::findings::{
    Rule, cpu_oversubscribed, escape_pid_namespace, escape_session, exec_failed,
    exit_waits_for_child, fork_deadlock_suspected, fork_failed, fork_multithreaded, fork_slow,
    fork_spin_suspected, fork_storm, image_peak_inherited, memory_growth, memory_left_charged,
    memory_oom_kill, memory_shared_counted_twice, pid_reused, pool_broken, pool_start_method,
    process_core_dumped, process_killed, process_stopped, process_survivor, process_zombie,
    stall_tree_asleep, tree_work_elsewhere, trust_incomplete, vms_inherited, worker_idle,
    worker_killed, worker_leftover, worker_orphaned, worker_recycled, worker_replaced,
};

/// Every rule, by id.
pub const RULES: &[Rule] = &[
    cpu_oversubscribed::RULE,
    escape_pid_namespace::RULE,
    escape_session::RULE,
    exec_failed::RULE,
    exit_waits_for_child::RULE,
    fork_deadlock_suspected::RULE,
    fork_failed::RULE,
    fork_multithreaded::RULE,
    fork_slow::RULE,
    fork_spin_suspected::RULE,
    fork_storm::RULE,
    image_peak_inherited::RULE,
    memory_growth::RULE,
    memory_left_charged::RULE,
    memory_oom_kill::RULE,
    memory_shared_counted_twice::RULE,
    pid_reused::RULE,
    pool_broken::RULE,
    pool_start_method::RULE,
    process_core_dumped::RULE,
    process_killed::RULE,
    process_stopped::RULE,
    process_survivor::RULE,
    process_zombie::RULE,
    stall_tree_asleep::RULE,
    tree_work_elsewhere::RULE,
    trust_incomplete::RULE,
    vms_inherited::RULE,
    worker_idle::RULE,
    worker_killed::RULE,
    worker_leftover::RULE,
    worker_orphaned::RULE,
    worker_recycled::RULE,
    worker_replaced::RULE,
];

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
