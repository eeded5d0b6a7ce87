//! Equal workers that no thread of their owner tells of: web servers, runners of tests, processes of
//! `multiprocessing.Process`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    StartMethod,
    facts::most_alive,
    owner::Group,
    parts::{Made, Parts},
    signs::{likeness, runs_jobs, sign},
};
use crate::{
    event::RANKS,
    model::{CreatorFrom, How, Process, Tree},
};

/// Fewer than this at once are no pool.
const LEAST: u64 = 2;

/// Pools among those that came to no other one.
pub(super) fn left_over(tree: &Tree, owner: usize, left: Vec<Made>) -> Vec<Group> {
    let mut by_maker: BTreeMap<(StartMethod, Option<u32>), Vec<Made>> = BTreeMap::new();
    for made in left {
        by_maker
            .entry((made.method, made.tid))
            .or_default()
            .push(made);
    }
    let mut groups = Vec::new();
    for ((method, _), members) in by_maker {
        let is_pool = match method {
            StartMethod::Fork => !runs_jobs(&tree.processes[owner]) && lives_long(tree, &members),
            // Their command lines tell.
            StartMethod::Spawn | StartMethod::Forkserver | StartMethod::Loky => true,
        };
        for members in generations(tree, members) {
            if is_pool && most_alive(tree, &members).is_some_and(|most| most >= LEAST) {
                groups.push(Group::crew(Some(method), members));
            }
        }
    }
    groups
}

/// Groups of programs that their owner executed with equal arguments, all at once and for long: owner and workers.
pub(super) fn executed(tree: &Tree, parts: &Parts) -> Vec<(usize, Vec<Made>)> {
    let mut alike: BTreeMap<(usize, Vec<u8>), Vec<Made>> = BTreeMap::new();
    for (at, process) in tree.processes.iter().enumerate() {
        if parts.roles.contains_key(&process.key) {
            continue;
        }
        if let Some((owner, likeness)) = employer(tree, process) {
            alike.entry((owner, likeness)).or_default().push(Made {
                at,
                ns: process.key.start_ns,
                tid: process.created.creator_tid,
                // Of no meaning here: the group has none.
                method: StartMethod::Spawn,
                server: None,
            });
        }
    }
    let mut crews: Vec<_> = alike
        .into_iter()
        .filter(|(_, members)| are_at_once(tree, members) && lives_long(tree, members))
        .filter(|(_, members)| !are_ranks(tree, members))
        .map(|((owner, _), members)| (owner, members))
        .collect();
    crews.retain(|(_, members)| members.len() as u64 >= LEAST);
    crews
}

/// Who executed a program of its own as a worker, and what its workers have in common.
fn employer(tree: &Tree, process: &Process) -> Option<(usize, Vec<u8>)> {
    if process.created.creator_from != CreatorFrom::Fork || sign(process).is_some() {
        return None;
    }
    let owner = tree.position(process.created.creator?)?;
    let executed = process.images.iter().any(|i| i.how == How::Exec);
    if !executed || runs_jobs(&tree.processes[owner]) || runs_jobs(process) {
        return None;
    }
    Some((owner, likeness(process)?))
}

/// Whether a launcher has numbered them as the processes of one parallel program: those share the work as equals, and
/// nobody hands out tasks to them. In a job of Slurm's everybody inherits a number, the same one.
fn are_ranks(tree: &Tree, members: &[Made]) -> bool {
    let number = |made: &Made, name: &[u8]| {
        let environment = tree.processes[made.at].environment.as_ref()?;
        let of = |value: &Vec<u8>| Some(value.strip_prefix(name)?.strip_prefix(b"=")?.to_vec());
        environment.values.iter().find_map(of)
    };
    RANKS.iter().any(|name| {
        let numbers: Option<BTreeSet<Vec<u8>>> = members.iter().map(|m| number(m, name)).collect();
        numbers.is_some_and(|numbers| members.len() > 1 && numbers.len() == members.len())
    })
}

/// Parts of a list in order of time between which nobody was alive.
fn generations(tree: &Tree, members: Vec<Made>) -> Vec<Vec<Made>> {
    let mut all: Vec<Vec<Made>> = Vec::new();
    let mut until = 0;
    for made in members {
        if made.ns > until || all.is_empty() {
            all.push(Vec::new());
        }
        let end = tree.processes[made.at].end_ns().unwrap_or(tree.end_ns);
        until = until.max(end);
        if let Some(last) = all.last_mut() {
            last.push(made);
        }
    }
    all
}

fn ends<'a>(tree: &'a Tree, members: &'a [Made]) -> impl Iterator<Item = u64> + 'a {
    let end = |made: &Made| tree.processes[made.at].end_ns().unwrap_or(tree.end_ns);
    members.iter().map(end)
}

/// Whether the last had been made before the first ended.
fn are_at_once(tree: &Tree, members: &[Made]) -> bool {
    let last = members.iter().map(|m| m.ns).max();
    last < ends(tree, members).min()
}

/// Whether the most live for at least half of the time there are any: jobs that follow each other don't.
fn lives_long(tree: &Tree, members: &[Made]) -> bool {
    let mut lives: Vec<u64> = ends(tree, members)
        .zip(members)
        .map(|(end, made)| end.saturating_sub(made.ns))
        .collect();
    lives.sort_unstable();
    let first = members.iter().map(|m| m.ns).min().unwrap_or(0);
    let last = ends(tree, members).max().unwrap_or(0);
    let median = lives.get(lives.len() / 2).copied().unwrap_or(0);
    median.saturating_mul(2) >= last.saturating_sub(first)
}
