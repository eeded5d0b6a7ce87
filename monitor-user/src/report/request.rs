//! How much memory to ask a scheduler for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::units::Bytes;

/// How much memory to ask for, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RequestReport {
    /// This much, the margin included.
    pub bytes: u64,
    /// What it rests on.
    pub basis: Basis,
    /// What that was.
    pub basis_bytes: u64,
    /// How much was put on top, per cent of that.
    pub margin_percent: u64,
}

/// What a request rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// What the memory controller charged: limits hold for that (SLURM, containers).
    Charge,
    /// The highest sum of VMS: limits hold for virtual memory (PBS, LSF).
    SumOfVms,
    /// Memory in use was at most this, pages that processes share counted once.
    InUse,
    /// The highest sum of RSS: nothing better is known.
    SumOfRss,
}

/// What is known of a recording's memory, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Most that the memory controller charged to the command alone.
    pub(super) charge: Option<u64>,
    /// Highest sum of VMS.
    pub(super) vms: Option<u64>,
    /// Memory in use at least, when the sum of RSS was highest.
    pub(super) least: Option<u64>,
    /// Memory in use at most.
    pub(super) in_use: Option<u64>,
    /// Highest sum of RSS, with its bound.
    pub(super) rss: Option<u64>,
}

/// The next run needn't be exactly like this one.
const MARGIN_PERCENT: u64 = 10;
/// Requests are rounded up to whole multiples of this, bytes.
const GRAIN: u64 = 16 << 20;

/// Whether the job runs under a scheduler that limits virtual memory.
fn limits_virtual_memory(env: &BTreeMap<String, String>) -> bool {
    ["PBS_JOBID", "LSB_JOBID"]
        .iter()
        .any(|name| env.contains_key(*name))
}

/// Whether the job runs under a scheduler that limits what the memory controller charges.
fn limits_charge(env: &BTreeMap<String, String>) -> bool {
    env.contains_key("SLURM_JOB_ID")
}

/// How much to ask for; `None` if nothing is known of memory. `env`: the environment that names the job.
pub(super) fn request(env: &BTreeMap<String, String>, known: Known) -> Option<RequestReport> {
    let vms = known.vms.filter(|_| limits_virtual_memory(env));
    // Where shared memory is the same in many, only the charge shows it.
    let is_less = |charge: &u64| known.in_use.is_none_or(|in_use| *charge < in_use);
    // Not what is less than was in use: cached files may be charged to who had read them before.
    let is_enough = |charge: &u64| known.least.is_none_or(|least| *charge >= least);
    let charge = known
        .charge
        .filter(is_enough)
        .filter(|charge| limits_charge(env) || is_less(charge));
    let choices = [
        (Basis::SumOfVms, vms),
        (Basis::Charge, charge),
        (Basis::InUse, known.in_use),
        (Basis::SumOfRss, known.rss),
    ];
    let (basis, bytes) = choices
        .into_iter()
        .find_map(|(basis, known)| Some((basis, known?)))?;
    let with_margin = bytes.saturating_add(bytes / 100 * MARGIN_PERCENT);
    Some(RequestReport {
        bytes: with_margin.div_ceil(GRAIN).saturating_mul(GRAIN),
        basis,
        basis_bytes: bytes,
        margin_percent: MARGIN_PERCENT,
    })
}

impl RequestReport {
    /// What it rests on, in words.
    pub(super) fn reason(&self) -> String {
        let bytes = Bytes(self.basis_bytes);
        match self.basis {
            Basis::Charge => format!("the memory controller charged at most {bytes}"),
            Basis::SumOfVms => {
                format!("limits hold for virtual memory here, whose highest sum was {bytes}")
            }
            Basis::InUse => format!("in use were at most {bytes}, shared pages counted once"),
            Basis::SumOfRss => format!("the highest sum of RSS was {bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn under(name: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), "1".to_owned())])
    }

    #[test]
    fn the_basis_is_what_the_scheduler_limits() {
        let known = Known {
            charge: Some(100 * MIB),
            vms: Some(900 * MIB),
            least: Some(90 * MIB),
            in_use: Some(120 * MIB),
            rss: Some(500 * MIB),
        };
        let basis = |env: &BTreeMap<_, _>, known| request(env, known).map(|r| r.basis);
        for name in ["PBS_JOBID", "LSB_JOBID"] {
            assert_eq!(basis(&under(name), known), Some(Basis::SumOfVms));
        }
        let slurm = under("SLURM_JOB_ID");
        assert_eq!(basis(&slurm, known), Some(Basis::Charge));
        // Elsewhere whichever is less: page cache is charged, and shared memory may be in use in one place only.
        assert_eq!(basis(&BTreeMap::new(), known), Some(Basis::Charge));
        let with_cache = Known {
            charge: Some(300 * MIB),
            ..known
        };
        assert_eq!(basis(&BTreeMap::new(), with_cache), Some(Basis::InUse));
        assert_eq!(basis(&slurm, with_cache), Some(Basis::Charge));
        let charged_elsewhere = Known {
            charge: Some(80 * MIB),
            ..known
        };
        assert_eq!(basis(&slurm, charged_elsewhere), Some(Basis::InUse));
        let known = Known {
            charge: None,
            ..known
        };
        assert_eq!(basis(&slurm, known), Some(Basis::InUse));
        let known = Known {
            in_use: None,
            ..known
        };
        assert_eq!(basis(&slurm, known), Some(Basis::SumOfRss));
        assert_eq!(request(&slurm, Known::default()), None);
    }

    #[test]
    fn a_tenth_comes_on_top_and_the_sum_is_rounded_up() {
        let ask = |bytes| {
            let known = Known {
                in_use: Some(bytes),
                ..Known::default()
            };
            request(&BTreeMap::new(), known).map(|r| r.bytes)
        };
        assert_eq!(ask(1000 * MIB), Some(1104 * MIB));
        assert_eq!(ask(0), Some(0));
        assert_eq!(ask(1), Some(16 * MIB));
        assert!(ask(u64::MAX).is_some());
    }
}
