//! The finished model with what rules ask of it again and again.

use std::collections::HashMap;

use crate::{
    event::Recording,
    model::{
        Ending, How, Image, Process, Tree,
        pools::{Pool, Pools, Role},
        program,
    },
    units::ProcessKey,
};

/// A tree, the facts of its recording, and who made whom.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// Facts about the recording.
    pub recording: &'a Recording,
    /// Its pools of workers.
    pub pools: &'a Pools,
    children: HashMap<ProcessKey, Vec<usize>>,
    start_ns: u64,
}

impl<'a> Scene<'a> {
    /// From a tree, its pools, and what is known about its recording.
    pub fn new(tree: &'a Tree, pools: &'a Pools, recording: &'a Recording) -> Self {
        let mut children: HashMap<ProcessKey, Vec<usize>> = HashMap::new();
        for (at, process) in tree.processes.iter().enumerate() {
            if let Some(creator) = process.created.creator {
                children.entry(creator).or_default().push(at);
            }
        }
        let root = tree.root.and_then(|key| tree.position(key));
        let start_ns = root.map_or(recording.start_ns, |at| tree.processes[at].key.start_ns);
        Self {
            tree,
            recording,
            pools,
            children,
            start_ns,
        }
    }

    /// The process, if it is in the tree.
    pub fn process(&self, key: ProcessKey) -> Option<&'a Process> {
        self.tree.position(key).map(|at| &self.tree.processes[at])
    }

    /// The process that executed the command.
    pub fn root(&self) -> Option<&'a Process> {
        self.process(self.tree.root?)
    }

    /// Who made the process, if that one is in the tree.
    pub fn creator(&self, process: &Process) -> Option<&'a Process> {
        self.process(process.created.creator?)
    }

    /// Whom the process made, by start.
    pub fn children(&self, key: ProcessKey) -> impl Iterator<Item = &'a Process> + use<'_, 'a> {
        let places = self.children.get(&key).map_or(&[][..], Vec::as_slice);
        places.iter().map(|at| &self.tree.processes[*at])
    }

    /// Time since the start of the command, ns.
    pub fn since_start(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.start_ns)
    }

    /// Records of a kind that were lost, as the recording's end or its events tell, whichever is more.
    pub fn lost(&self, kind: &str) -> u64 {
        let at_end = self.recording.lost.get(kind).copied().unwrap_or(0);
        let on_the_way = self.tree.summary.lost().get(kind).copied().unwrap_or(0);
        at_end.max(on_the_way)
    }

    /// What a person would call the program that a process is, or was last: that of its creator if it never executed
    /// one itself. `None` if that was lost.
    pub fn name(&self, key: ProcessKey) -> Option<String> {
        let mut process = self.process(key)?;
        // No chain of creators is longer than the list of processes.
        for _ in 0..=self.tree.processes.len() {
            if let Some(image) = process.program() {
                let name = label(image);
                return (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned());
            }
            process = self.creator(process)?;
        }
        None
    }
}

/// What a person would call the program of an image.
pub(super) fn label(image: &Image) -> Vec<u8> {
    program::label(
        image.filename.as_deref().unwrap_or_default(),
        image.argv.as_deref().unwrap_or_default(),
        image.comm.as_deref().unwrap_or_default(),
    )
}

/// Whether the process was made with a copy of its creator's memory and never executed a program.
pub(super) fn stayed_a_copy(process: &Process) -> bool {
    use crate::model::CreatedBy;
    process.created.by == Some(CreatedBy::Fork)
        && process.images.iter().all(|i| i.how == How::Inherited)
}

/// Whether it works for another process: in a pool, or with that one's program, as a copy of its creator.
pub(super) fn is_worker(scene: &Scene<'_>, process: &Process) -> bool {
    scene.pools.role(process.key) == Some(Role::Worker) || stayed_a_copy(process)
}

/// Those of some processes that are in the tree.
pub(super) fn found<'a>(scene: &Scene<'a>, keys: &[ProcessKey]) -> Vec<&'a Process> {
    keys.iter().filter_map(|key| scene.process(*key)).collect()
}

/// Whether it is a worker whose own pool ended it: until then it waited for work, in a lock that its siblings share, or
/// worked.
pub(super) fn ended_with_its_pool(scene: &Scene<'_>, process: &Process) -> bool {
    let pools = scene.pools.pools.iter();
    let mut own = pools.filter(|pool| pool.workers.contains(&process.key));
    own.any(|pool| is_shut_down(pool, process) == Some(true))
}

/// Whether it belongs to how a pool is ended that its owner, or the server that made it, killed this worker: nobody
/// took its place. `None`: it isn't known who killed it.
pub(super) fn is_shut_down(pool: &Pool, worker: &Process) -> Option<bool> {
    let by = worker.sender.as_ref()?.process;
    let is_own = by.is_some() && (by == Some(pool.owner) || by == pool.server);
    Some(is_own && !pool.replaced_workers.contains(&worker.key))
}

/// Until when it is known to have lived, ns since boot: its end, or that of the recording if it was alive then.
/// `None` if that isn't known.
pub(super) fn lived_until(scene: &Scene<'_>, process: &Process) -> Option<u64> {
    match process.ending {
        Ending::Ended { at } => at,
        Ending::Alive => Some(scene.tree.end_ns),
        Ending::Unknown => None,
    }
}

/// Signal that ended the process.
pub(super) fn signal(process: &Process) -> Option<u32> {
    process
        .status
        .map(|status| status & 0x7f)
        .filter(|signal| *signal != 0)
}

/// Whether the process's own creator sent the signal that ended it. `None`: it isn't known who did.
pub(super) fn by_creator(process: &Process) -> Option<bool> {
    let by = process.sender.as_ref()?.process;
    Some(by.is_some() && by == process.created.creator)
}

/// Processes in groups of equal keys; groups and members stay in order.
pub(super) fn grouped_by<'a, K: PartialEq>(
    processes: impl Iterator<Item = &'a Process>,
    key: impl Fn(&Process) -> K,
) -> Vec<(K, Vec<&'a Process>)> {
    let mut groups: Vec<(K, Vec<&Process>)> = Vec::new();
    for process in processes {
        let of = key(process);
        match groups.iter_mut().rev().find(|(k, _)| *k == of) {
            Some((_, members)) => members.push(process),
            None => groups.push((of, vec![process])),
        }
    }
    groups
}

/// Identities of processes.
pub(super) fn keys(processes: &[&Process]) -> Vec<ProcessKey> {
    processes.iter().map(|p| p.key).collect()
}
