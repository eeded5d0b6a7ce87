//! Who had what when the sum of RSS was highest.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use super::Id;
use crate::{
    model::{
        Peak, Share, Tree,
        pools::{Pools, Role},
    },
    report::ByteText,
    units::ProcessKey,
};

/// What an address space had at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShareReport {
    /// The process; `None` if the address space had none yet.
    pub process: Option<Id>,
    /// What a person would call its program then.
    pub program: ByteText,
    /// Its anonymous pages.
    pub anon_bytes: u64,
    /// Its pages of files.
    pub file_bytes: u64,
    /// Its pages of shared memory.
    pub shmem_bytes: u64,
    /// What of it was swapped out.
    pub swap_bytes: u64,
}

/// What the address spaces of processes with the same part had at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleReport {
    /// `worker`, `resource_tracker`, `forkserver` or `manager` of a pool, `main` for the recorded command, `owner` for
    /// whoever else asked for workers, else `other`.
    pub role: &'static str,
    /// Address spaces.
    pub processes: u64,
    /// Their anonymous pages.
    pub anon_bytes: u64,
    /// Their pages of files.
    pub file_bytes: u64,
    /// Their pages of shared memory.
    pub shmem_bytes: u64,
    /// What of them was swapped out.
    pub swap_bytes: u64,
}

pub(super) fn shares(peak: &Peak, id: &impl Fn(ProcessKey) -> Id) -> Vec<ShareReport> {
    let mut shares: Vec<_> = peak.shares.iter().collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.memory.rss()));
    let report = |share: &Share| ShareReport {
        process: share.process.map(id),
        program: ByteText(share.program.to_vec()),
        anon_bytes: share.memory.anon,
        file_bytes: share.memory.file,
        shmem_bytes: share.memory.shmem,
        swap_bytes: share.memory.swap,
    };
    shares.into_iter().map(report).collect()
}

/// Adds up by role. A command that works in a pool itself (of whoever was there before it) is a worker.
pub(super) fn roles(tree: &Tree, pools: &Pools, peak: &Peak) -> Vec<RoleReport> {
    let role = |share: &Share| {
        let of_pool = share.process.and_then(|key| pools.role(key));
        let is_main = share.process.is_some() && share.process == tree.root;
        match of_pool {
            Some(role) => Role::name(role),
            None if is_main => "main",
            None if pools
                .pools
                .iter()
                .any(|pool| Some(pool.owner) == share.process) =>
            {
                "owner"
            }
            None => "other",
        }
    };
    let mut all: BTreeMap<&'static str, RoleReport> = BTreeMap::new();
    for share in &peak.shares {
        let role = role(share);
        let sum = all.entry(role).or_insert_with(|| RoleReport::none(role));
        sum.processes += 1;
        for (sum, more) in [
            (&mut sum.anon_bytes, share.memory.anon),
            (&mut sum.file_bytes, share.memory.file),
            (&mut sum.shmem_bytes, share.memory.shmem),
            (&mut sum.swap_bytes, share.memory.swap),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    // The map has sorted by name, so equals stay in that order.
    all.sort_by_key(|sum| Reverse(sum.rss_bytes()));
    all
}

impl RoleReport {
    fn none(role: &'static str) -> Self {
        Self {
            role,
            processes: 0,
            anon_bytes: 0,
            file_bytes: 0,
            shmem_bytes: 0,
            swap_bytes: 0,
        }
    }

    /// Their RSS, bytes.
    pub fn rss_bytes(&self) -> u64 {
        self.anon_bytes
            .saturating_add(self.file_bytes)
            .saturating_add(self.shmem_bytes)
    }
}
