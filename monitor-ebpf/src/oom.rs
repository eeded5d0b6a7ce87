//! `mark_victim`: the OOM killer chose a process; and what ran out, by the reclaim before.
//!
//! `mark_victim` doesn't say whether a control group or the whole host ran out of memory. But it is
//! called by the thread whose allocation failed, after that thread has tried to reclaim: pages of a
//! control group (`try_charge_memcg`, `memory.max`) or any (`__alloc_pages_slowpath`). There is a
//! tracepoint for each, so the last one that the thread passed tells.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{Kind, OomRecord, OomScope, TrackedProcess};

use crate::{
    address_space,
    emit::{emit, now},
    filter,
    kernel::{
        Mm, current_ids,
        oom::{Victim, victim},
    },
    maps::{LIMIT, RECLAIMS},
    preempt::undisturbed,
};

/// A thread reclaims pages of a control group, whose limit its allocation would exceed.
#[btf_tracepoint(function = "mm_vmscan_memcg_reclaim_begin")]
pub(crate) fn mm_vmscan_memcg_reclaim_begin(_: BtfTracePointContext) -> i32 {
    undisturbed(|| reclaims(OomScope::CGROUP))
}

/// A thread reclaims any pages: there are too few free ones for its allocation.
#[btf_tracepoint(function = "mm_vmscan_direct_reclaim_begin")]
pub(crate) fn mm_vmscan_direct_reclaim_begin(_: BtfTracePointContext) -> i32 {
    undisturbed(|| reclaims(OomScope::HOST))
}

/// Not only threads of traced processes: whose allocation fails and who is killed for it may be
/// strangers to each other.
#[inline(always)]
fn reclaims(scope: u32) -> i32 {
    let (_, tid) = current_ids();
    // Without room the scope isn't known.
    let _no_room = RECLAIMS.insert(tid, scope, 0);
    0
}

/// A process was chosen, and has been sent its SIGKILL.
#[btf_tracepoint(function = "mark_victim")]
pub(crate) fn mark_victim(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| chosen(&ctx))
}

#[inline(always)]
fn chosen(ctx: &BtfTracePointContext) -> i32 {
    let (pid, named) = match victim(ctx) {
        Victim::Task { pid, mm } => (pid, mm),
        Victim::Thread(tid) => (process_of(tid), Mm::at(0)),
    };
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    if filter::flags(process) & (TrackedProcess::PENDING | TrackedProcess::DEAD) != 0 {
        return 0;
    }
    let (id, mm) = address_space_of(process, named);
    let memory = mm.probed();
    let Some(limit) = LIMIT.get_ptr_mut(0) else {
        return 0;
    };
    mm.find_nearest_limit(limit);
    let (_, tid) = current_ids();
    // SAFETY: a map value.
    let scope = unsafe { RECLAIMS.get(&tid).copied() }.unwrap_or(OomScope::UNKNOWN);
    let subject = filter::subject(process, pid, pid);
    emit::<OomRecord>(Kind::OOM, now(), subject, |record| {
        // SAFETY: room that was just reserved.
        unsafe {
            (*record).mm = id;
            (*record).memory = memory;
            (*record).limit = (*limit).pages;
            (*record).scope = scope;
            (*record).has_memory = u32::from(mm.address() != 0);
            (*limit).read_name(&raw mut (*record).cgroup);
        }
    });
    0
}

/// Number and place of a victim's address space. If the kernel hasn't `named` it, it is the one that the
/// process was last seen to get, unless that is gone: the place may be another's by now.
#[inline(always)]
fn address_space_of(process: *mut TrackedProcess, named: Mm) -> (u64, Mm) {
    // SAFETY: map values.
    unsafe {
        if named.address() != 0 {
            return (
                address_space::find(named).map_or(0, |space| (*space).id),
                named,
            );
        }
        let entered = Mm::at((*process).mm_address);
        match address_space::find(entered) {
            Some(space) if (*space).id == (*process).mm => ((*space).id, entered),
            _ => (0, Mm::at(0)),
        }
    }
}

/// The process of a thread of which only the id is known: its own, unless the thread runs.
#[inline(always)]
fn process_of(tid: u32) -> u32 {
    match current_ids() {
        (pid, current) if current == tid => pid,
        _ => tid,
    }
}
