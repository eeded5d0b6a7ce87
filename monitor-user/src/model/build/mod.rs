//! From what events said to a tree: repairs, then each process, then totals.

mod images;
mod life;
mod parents;
mod watch;

use std::collections::{HashMap, HashSet};

use crate::{
    event::{Mm, Recording},
    model::{
        draft::Draft,
        fold::State,
        marks::Mark,
        titles,
        tree::{Created, CreatedBy, CreatorFrom, Ending, How, Process, Totals, Tree},
        trust::{self, Gaps},
    },
    units::ProcessKey,
};

/// What holds for the recording as a whole.
pub(super) struct Context<'a> {
    pub(super) recording: &'a Recording,
    pub(super) root: Option<ProcessKey>,
    /// Records lost by kind: what events and what the recording's end tell, whichever is more.
    pub(super) lost: std::collections::BTreeMap<String, u64>,
    /// The recording ended properly, so the recorder looked at who was alive.
    pub(super) has_end: bool,
    /// When it looked last, ns since boot; `None` if it found nobody.
    pub(super) looked_ns: Option<u64>,
    /// Address spaces of those whom the OOM killer chose.
    pub(super) victims: HashSet<Mm>,
    /// Newest start of each pid.
    pub(super) newest: HashMap<u32, u64>,
}

impl Context<'_> {
    /// Whether records of a kind were lost.
    pub(super) fn is_lost(&self, kind: &str) -> bool {
        self.lost.get(kind).is_some_and(|n| *n > 0)
    }
}

/// Makes the tree.
pub(super) fn tree(mut state: State, recording: &Recording) -> Tree {
    let context = context(&state, recording);
    let mut gaps = Gaps::default();
    images::repair(&mut state, &context, &mut gaps);
    let mut processes: Vec<Process> = state
        .processes
        .iter()
        .map(|draft| process(draft, &state, &context, &mut gaps))
        .collect();
    processes.sort_by_key(|p| (p.key.start_ns, p.key.pid));
    let mut titles = titles::all(&state.processes);
    for process in &mut processes {
        process.titles = titles.remove(&process.key).unwrap_or_default();
    }
    life::survivors(&mut processes, &context);
    parents::later(&mut processes, &state);
    images::owners(&mut processes, &state);
    gaps.mm_ends = images::unclosed(&processes, &state, &context);
    gaps.cut_arguments = cut_arguments(&processes);
    let trust = trust::trust(&context, &gaps, state.events);
    let totals = totals(&processes, &state, context.root);
    let end_ns = recording.end_ns.unwrap_or(state.last_ns);
    Tree {
        root: context.root,
        polled: state.pollers.polled(&processes, end_ns),
        processes,
        totals,
        summary: state.summary,
        timeline: state.timeline,
        steps: state.steps.into_list(),
        // What threads did before they were found isn't known.
        stalls: recording
            .sleep_ns
            .filter(|_| gaps.found + gaps.entered == 0)
            .map(|_| state.activity.stalls(end_ns)),
        trust,
        end_ns,
    }
}

fn context<'a>(state: &State, recording: &'a Recording) -> Context<'a> {
    let mut lost = recording.lost.clone();
    for (kind, n) in &state.lost {
        let total = lost.entry(kind.clone()).or_default();
        *total = (*total).max(*n);
    }
    let mut newest = HashMap::new();
    for draft in &state.processes {
        let start = newest.entry(draft.key.pid).or_insert(draft.key.start_ns);
        *start = (*start).max(draft.key.start_ns);
    }
    let drafts = state.processes.iter();
    let victims = drafts.clone().filter_map(|d| d.oom.as_ref()?.1.mm);
    Context {
        victims: victims.collect(),
        recording,
        root: root(state, recording),
        lost,
        has_end: recording.end_ns.is_some() && !recording.cut_short,
        looked_ns: drafts
            .filter_map(|d| d.snapshot.as_ref().map(|s| s.0))
            .max(),
        newest,
    }
}

fn root(state: &State, recording: &Recording) -> Option<ProcessKey> {
    let pid = recording.root_pid;
    if pid != 0 {
        let start_ns = recording.root_start_ns;
        // The recorder learns the start from an event, which may have been lost.
        let drafts = state.processes.iter().filter(|d| d.key.pid == pid);
        let first = drafts.map(|d| d.key.start_ns).min();
        let start_ns = match start_ns {
            0 => first.unwrap_or(0),
            known => known,
        };
        return Some(ProcessKey { pid, start_ns });
    }
    let made_by_nobody = |d: &&Draft| matches!(&d.fork, Some((_, fork)) if fork.creator.is_none());
    let roots = state.processes.iter().filter(made_by_nobody);
    roots.map(|d| d.key).min_by_key(|k| (k.start_ns, k.pid))
}

fn process(draft: &Draft, state: &State, context: &Context<'_>, gaps: &mut Gaps) -> Process {
    let is_root = context.root == Some(draft.key);
    let ending = life::ending(draft, context);
    let created = created(draft, state, is_root);
    if let Some((found_ns, _, _)) = &draft.found {
        let attached_ns = context.recording.attached_ns.unwrap_or(u64::MAX);
        if context.recording.group.is_some() && *found_ns > attached_ns {
            gaps.entered += 1;
        } else {
            gaps.found += 1;
        }
    } else if draft.fork.is_none() && !is_root {
        gaps.forks += 1;
        if created.creator.is_some() {
            gaps.creators_from_parent += 1;
        }
    }
    match ending {
        Ending::Ended { at: None } => gaps.ends += 1,
        Ending::Unknown => gaps.unknown_ends += 1,
        Ending::Ended { .. } | Ending::Alive => {}
    }
    gaps.marks += draft.marks_dropped;
    if draft.environment.as_ref().is_some_and(|(_, e)| !e.is_whole) {
        gaps.cut_environments += 1;
    }
    let exit = draft.exit().map(|(_, _, exit)| exit);
    let threads = life::threads(draft, context);
    if threads.is_none() {
        gaps.threads += 1;
    }
    let look = draft.snapshot.as_ref().map(|(_, look)| look);
    let watched = &draft.watched;
    let has_calls = watch::has_calls(context);
    let namespace = namespace(draft);
    Process {
        key: draft.key,
        comm: draft.comm.as_ref().map(|(_, comm)| comm.clone()),
        found_ns: draft.found.as_ref().map(|(at, _, _)| *at),
        images: images::images(draft, state, ending),
        environment: draft.environment.as_ref().map(|(_, e)| e.clone()),
        titles: Vec::new(),
        marks: marks(draft),
        threads_created: threads.and_then(|t| t.created),
        threads_max: threads.map(|t| t.max),
        threads: draft.lives.all().filter(|_| !context.is_lost("thread")),
        cpu_ns: life::cpu_ns(draft, context),
        usage: draft
            .reaped
            .map(|(_, reaped)| reaped.usage)
            .unwrap_or_default(),
        oom: draft.oom.clone(),
        killed_for_memory: life::killed_for_memory(draft, context),
        status: exit
            .map(|e| e.status)
            .or(context.recording.exit_status.filter(|_| is_root)),
        final_parent: exit.and_then(|e| e.parent).or(look.and_then(|l| l.parent)),
        later_parents: Vec::new(),
        survived_root: None,
        zombie_ns: life::zombie_ns(draft),
        zombie_at_end: life::zombie_at_end(draft, ending),
        first_run_ns: exit
            .and_then(|e| e.first_run_ns)
            .or(look.and_then(|l| l.first_run_ns)),
        // How long before it was found isn't known.
        stopped_ns: exit
            .and_then(|e| e.stopped_ns)
            .or(look.and_then(|l| l.stopped_ns))
            .filter(|_| draft.found.is_none()),
        sender: watch::sender(draft),
        exec_failures: has_calls.then(|| watched.exec_failures.clone()),
        failed_execs: has_calls.then_some(watched.failed_execs),
        fork_failures: has_calls.then(|| watched.fork_failures.clone()),
        blocked_at_end: watch::blocked_at_end(draft, ending, context),
        waits: watch::waits(draft),
        session_ns: watched.session_ns,
        ns_pid: namespace.map(|(pid, _)| pid),
        ns_level: namespace.map(|(_, level)| level),
        moves: watched.moves.clone(),
        created,
        ending,
    }
}

/// Its pid in its own pid namespace, and how deep that is, as its creation tells or, of one that was found, the finding.
fn namespace(draft: &Draft) -> Option<(u32, u32)> {
    let of_fork = draft
        .fork
        .as_ref()
        .and_then(|(_, fork)| fork.ns_pid.zip(fork.ns_level));
    let found = draft.found.as_ref();
    of_fork.or_else(|| found.and_then(|(_, _, found)| found.ns_pid.zip(found.ns_level)))
}

/// Events may have come a little out of order.
fn marks(draft: &Draft) -> Vec<Mark> {
    let mut marks = draft.marks.clone();
    marks.sort_by_key(|mark| mark.ns);
    marks
}

fn created(draft: &Draft, state: &State, is_root: bool) -> Created {
    if is_root {
        return Created {
            by: Some(CreatedBy::Root),
            creator_threads: Some(1),
            ..Created::default()
        };
    }
    if let Some((_, parent, _)) = &draft.found {
        let parent = parent.filter(|p| *p != draft.key && state.by_key.contains_key(p));
        return Created {
            creator: parent,
            creator_from: match parent {
                Some(_) => CreatorFrom::ParentAtStart,
                None => CreatorFrom::Fork,
            },
            ..Created::default()
        };
    }
    let Some((_, fork)) = &draft.fork else {
        let exit = draft.exit().and_then(|(_, _, exit)| exit.parent);
        let parent = exit.filter(|p| *p != draft.key && state.by_key.contains_key(p));
        return Created {
            creator: parent,
            creator_from: match parent {
                Some(_) => CreatorFrom::ParentAtEnd,
                None => CreatorFrom::Fork,
            },
            ..Created::default()
        };
    };
    // An address space of its own is a copy. A shared one doesn't tell vfork from CLONE_VM.
    let has_copy = matches!((fork.mm, fork.creator_mm), (Some(own), Some(old)) if own != old);
    Created {
        by: fork
            .clone_flags
            .map(CreatedBy::from_flags)
            .or(has_copy.then_some(CreatedBy::Fork)),
        flags: fork.clone_flags,
        creator: fork.creator,
        creator_from: CreatorFrom::Fork,
        creator_tid: fork.creator_tid,
        creator_threads: fork.creator_threads,
        fork_ns: fork.fork_ns,
        creator_rss: fork.creator_rss,
        creator_vms: fork.creator_vms,
        creator_page_tables: fork.creator_page_tables,
    }
}

fn cut_arguments(processes: &[Process]) -> u64 {
    let images = processes.iter().flat_map(|process| &process.images);
    let cut = images.filter(|image| image.how == How::Exec && image.argv_truncated == Some(true));
    cut.count() as u64
}

fn totals(processes: &[Process], state: &State, root: Option<ProcessKey>) -> Totals {
    let created: Option<Vec<u64>> = processes
        .iter()
        .map(|p| p.threads_created.map(u64::from))
        .collect();
    let survived: Option<Vec<bool>> = processes.iter().map(|p| p.survived_root).collect();
    let killed: Option<Vec<bool>> = processes
        .iter()
        // Who hasn't ended wasn't killed.
        .map(|p| {
            p.killed_for_memory
                .or((p.ending == Ending::Alive).then_some(false))
        })
        .collect();
    Totals {
        processes: processes.len() as u64,
        oom_kills: killed.map(|k| k.iter().filter(|yes| **yes).count() as u64),
        threads_created: created.map(|c| c.iter().sum()),
        max_depth: max_depth(processes, root),
        survivors: survived.map(|s| s.iter().filter(|yes| **yes).count() as u64),
        max_spaces: state.summary.max_spaces(),
        failed_forks: processes
            .iter()
            .map(|p| p.fork_failures.as_ref().map(|f| f.values().sum::<u64>()))
            .sum(),
        failed_execs: processes.iter().map(|p| p.failed_execs).sum(),
    }
}

/// Longest chain of creators that ends at the root.
fn max_depth(processes: &[Process], root: Option<ProcessKey>) -> u64 {
    let creators: HashMap<ProcessKey, Option<ProcessKey>> = processes
        .iter()
        .map(|p| (p.key, p.created.creator))
        .collect();
    let mut depths: HashMap<ProcessKey, u64> = root.map(|r| (r, 0)).into_iter().collect();
    for process in processes {
        // Up to somebody whose depth is known, then down again; a chain without such is cut off.
        let mut chain = Vec::new();
        let mut at = Some(process.key);
        while let Some(key) = at.filter(|k| !depths.contains_key(k)) {
            chain.push(key);
            at = creators.get(&key).copied().flatten();
            if chain.len() > processes.len() {
                at = None;
            }
        }
        let Some(mut depth) = at.and_then(|key| depths.get(&key).copied()) else {
            continue;
        };
        for key in chain.into_iter().rev() {
            depth += 1;
            depths.insert(key, depth);
        }
    }
    depths.into_values().max().unwrap_or(0)
}
