//! Parents that processes had after their creators.
//!
//! When a process's last thread ends, the kernel gives its children to another process, which the row of that end
//! names. That row is written a little before the kernel does it: a child that ends in between still had the old
//! parent, as its own end tells.

use crate::{
    model::{
        fold::State,
        tree::{Parent, Process},
    },
    units::ProcessKey,
};

const CLONE_PARENT: u64 = 0x8000;

/// Fills in [`Process::later_parents`]. Creators come before whom they made.
pub(super) fn later(processes: &mut [Process], state: &State) {
    for at in 0..processes.len() {
        let mut parents = first(&processes[at], &processes[..at], state);
        inherit(&mut parents, &processes[at], state);
        settle(&mut parents, processes[at].final_parent);
        if processes[at].created.creator.is_some() {
            parents.remove(0);
        }
        processes[at].later_parents = parents;
    }
}

/// The creator, and whose child the process was made instead of the creator's.
fn first(process: &Process, before: &[Process], state: &State) -> Vec<Parent> {
    let mut parents: Vec<Parent> = process.parents().collect();
    let created = &process.created;
    let start_ns = process.key.start_ns;
    let Some(creator) = created.creator else {
        // The parent of one that was found is known, though nobody else is of it.
        let draft = state.by_key.get(&process.key);
        let found = draft.and_then(|at| state.processes[*at].found.as_ref());
        let parent = found.and_then(|(_, parent, _)| *parent);
        return parent
            .map(|key| Parent { ns: None, key })
            .into_iter()
            .collect();
    };
    if created.flags.is_some_and(|flags| flags & CLONE_PARENT != 0) {
        let place = before
            .binary_search_by_key(&(creator.start_ns, creator.pid), |p| {
                (p.key.start_ns, p.key.pid)
            })
            .ok();
        parents.extend(
            place
                .and_then(|at| parent_at(&before[at], start_ns))
                .map(|key| Parent {
                    ns: Some(start_ns),
                    key,
                }),
        );
    }
    parents
}

/// A process's parent at a time; `None` if it isn't known.
fn parent_at(process: &Process, ns: u64) -> Option<ProcessKey> {
    let later = &process.later_parents;
    if later.iter().any(|parent| parent.ns.is_none()) {
        // Nobody knows whether that was before.
        let only = (later.len() == 1 && process.created.creator.is_none()).then(|| later[0].key);
        return only;
    }
    let last = later.iter().rev().find(|parent| parent.ns <= Some(ns));
    last.map(|parent| parent.key).or(process.created.creator)
}

/// Each parent that ended while the process lived gave it to the next one.
fn inherit(parents: &mut Vec<Parent>, process: &Process, state: &State) {
    let end_ns = process.end_ns().unwrap_or(u64::MAX);
    let mut since_ns = process.key.start_ns;
    while let Some(parent) = parents.last() {
        let draft = state.by_key.get(&parent.key);
        let Some((ns, _, exit)) = draft.and_then(|at| state.processes[*at].exit()) else {
            break;
        };
        let Some(key) = exit.reaper.filter(|_| (since_ns..end_ns).contains(ns)) else {
            break;
        };
        // Time goes on, so that two who name each other end the search.
        since_ns = ns.saturating_add(1);
        parents.push(Parent { ns: Some(*ns), key });
    }
}

/// The parent at the end is the last one, whatever the ends of others say.
fn settle(parents: &mut Vec<Parent>, final_parent: Option<ProcessKey>) {
    let Some(last) = final_parent else { return };
    // Of a parent that isn't recorded a look at `/proc` doesn't tell the start.
    let is_last =
        |parent: &Parent| parent.key == last || last.start_ns == 0 && parent.key.pid == last.pid;
    match parents.iter().rposition(is_last) {
        Some(at) => parents.truncate(at + 1),
        None => parents.push(Parent {
            ns: None,
            key: last,
        }),
    }
}
