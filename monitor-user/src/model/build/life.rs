//! Ends, threads, CPU time and survival of processes.

use std::collections::HashSet;

use super::Context;
use crate::{
    model::{
        draft::Draft,
        tree::{Ending, Process},
    },
    units::ProcessKey,
};

/// A process that lives on for less than this after the root doesn't count as a survivor.
const SURVIVAL_NS: u64 = 250_000_000;

/// The kernel frees a process within this time after it was reaped (10 to 50 ms were measured).
const FREEING_NS: u64 = 200_000_000;

const SIGKILL: u32 = 9;
/// The hook that tells of victims, and the first version of the record layout that had it.
const OOM_HOOK: &str = "mark_victim";
const OOM_SINCE: u32 = 2;

/// Threads of a process.
#[derive(Clone, Copy)]
pub(super) struct Threads {
    /// `None`: it was there before the recording began.
    pub(super) created: Option<u32>,
    pub(super) max: u32,
}

/// Whether and when a process ended.
pub(super) fn ending(draft: &Draft, context: &Context<'_>) -> Ending {
    if let Some((time_ns, _, _)) = draft.exit() {
        return Ending::Ended { at: Some(*time_ns) };
    }
    if let Some((seen_ns, _, found)) = &draft.found
        && found.threads == 0
    {
        // It was ending when it was found; the event of that may have come just before.
        return Ending::Ended { at: Some(*seen_ns) };
    }
    let is_root = context.root == Some(draft.key);
    let followed = context.newest.get(&draft.key.pid) > Some(&draft.key.start_ns);
    let waited_for = is_root && context.recording.exit_status.is_some();
    if draft.reaped.is_some() || followed || waited_for {
        return Ending::Ended { at: None };
    }
    match &draft.snapshot {
        Some((_, look)) if look.zombie => Ending::Ended { at: None },
        Some(_) => Ending::Alive,
        // It did something after the recorder had looked.
        None if context.looked_ns.is_some_and(|at| draft.seen_ns > at) => Ending::Unknown,
        None if context.has_end => Ending::Ended { at: None },
        None => Ending::Unknown,
    }
}

/// Threads, if no loss has made them uncertain.
///
/// Each thread has a row for its birth and one for its end, and each row of an end tells how many
/// were left. So for a process that has ended, either kind of row is enough.
pub(super) fn threads(draft: &Draft, context: &Context<'_>) -> Option<Threads> {
    let ends = draft.thread_exits + u32::try_from(draft.exits.len()).unwrap_or(u32::MAX);
    let births_lost = context.is_lost("thread");
    let ends_known = !draft.exits.is_empty() && !context.is_lost("thread_exit");
    if births_lost && !ends_known {
        return None;
    }
    // Skipped runs of a BPF program aren't counted by kind: ends can still tell of more births.
    let created = draft.threads.max(ends.saturating_sub(1));
    let is_short_of_births = births_lost || created > draft.threads;
    let at_ends = if is_short_of_births {
        draft.threads_max_at_ends
    } else {
        1
    };
    Some(Threads {
        created: draft.found.is_none().then_some(created),
        max: draft.threads_max.max(at_ends),
    })
}

/// CPU time: the kernel's final sum, else that of the rows of all threads.
pub(super) fn cpu_ns(draft: &Draft, context: &Context<'_>) -> Option<u64> {
    if let Some(total) = draft.reaped.and_then(|(_, reaped)| reaped.cpu_ns) {
        return Some(total);
    }
    let ends = draft.thread_exits + u32::try_from(draft.exits.len()).unwrap_or(u32::MAX);
    let is_whole = !draft.exits.is_empty()
        && draft.found.is_none()
        && ends == draft.threads.saturating_add(1)
        && !(context.is_lost("thread") && context.is_lost("thread_exit"));
    let last: u64 = draft.exits.iter().map(|(_, _, exit)| exit.cpu_ns).sum();
    is_whole.then(|| draft.thread_cpu_ns.saturating_add(last))
}

/// Whether the OOM killer ended it. A victim that ended by itself or by another signal was about to
/// end anyway. `None` without an end, and where the recording couldn't tell.
pub(super) fn killed_for_memory(draft: &Draft, context: &Context<'_>) -> Option<bool> {
    let (_, _, exit) = draft.exit()?;
    let is_killed = exit.signal() == Some(SIGKILL);
    // The kernel kills all who share the memory that it wants back, and tells of one.
    let mm = draft.current().and_then(|at| draft.images[at].image.mm);
    let shares = mm.is_some_and(|mm| context.victims.contains(&mm));
    let is_victim = draft.oom.is_some() || shares;
    if is_victim || !is_killed {
        return Some(is_killed && is_victim);
    }
    let recording = context.recording;
    let is_off = recording.missing_hooks.iter().any(|hook| hook == OOM_HOOK)
        || recording.stand_ins.contains_key(OOM_HOOK)
        || recording
            .recursion_misses
            .get(OOM_HOOK)
            .is_some_and(|n| *n > 0)
        || recording.abi_version < OOM_SINCE;
    (!is_off && !context.is_lost("oom")).then_some(false)
}

/// Time from the end of the last thread to the freeing.
pub(super) fn zombie_ns(draft: &Draft) -> Option<u64> {
    let (end_ns, _, _) = draft.exit()?;
    let (reaped_ns, _) = draft.reaped?;
    Some(reaped_ns.saturating_sub(*end_ns))
}

/// Whether it was a zombie when the recorder looked at the end.
pub(super) fn zombie_at_end(draft: &Draft, ending: Ending) -> Option<bool> {
    match (&draft.snapshot, ending) {
        (Some((looked_ns, look)), _) if look.zombie => {
            let (end_ns, _, _) = draft.exit()?;
            (looked_ns.saturating_sub(*end_ns) > FREEING_NS).then_some(true)
        }
        (None, Ending::Unknown) => None,
        _ => Some(false),
    }
}

/// Says of each process whether it survived the root.
pub(super) fn survivors(processes: &mut [Process], context: &Context<'_>) {
    let root = processes.iter().find(|p| Some(p.key) == context.root);
    let root_ending = root.map_or(Ending::Unknown, |r| r.ending);
    let alive_ns = context.looked_ns;
    let strangers = strangers(processes, context);
    for process in processes {
        process.survived_root =
            if Some(process.key) == context.root || strangers.contains(&process.key) {
                Some(false)
            } else {
                survived(process, root_ending, alive_ns)
            };
    }
}

/// Those who don't descend from the root: of a whole host most. Creators come before whom they made.
fn strangers(processes: &[Process], context: &Context<'_>) -> HashSet<ProcessKey> {
    let mut strangers = HashSet::new();
    if !context.recording.whole_host {
        return strangers;
    }
    for process in processes {
        let creator = process.created.creator;
        let is_above = creator.is_none_or(|creator| strangers.contains(&creator));
        if is_above && Some(process.key) != context.root {
            strangers.insert(process.key);
        }
    }
    strangers
}

fn survived(process: &Process, root: Ending, alive_ns: Option<u64>) -> Option<bool> {
    let root_end = match root {
        Ending::Alive => return Some(false),
        Ending::Unknown | Ending::Ended { at: None } => return None,
        Ending::Ended { at: Some(at) } => at,
    };
    let limit = root_end.saturating_add(SURVIVAL_NS);
    if process.key.start_ns >= root_end {
        return Some(false);
    }
    match process.ending {
        Ending::Ended { at: Some(at) } => Some(at > limit),
        // If the recorder looked too early, it can't know.
        Ending::Alive => (alive_ns? > limit).then_some(true),
        Ending::Ended { at: None } | Ending::Unknown => None,
    }
}
