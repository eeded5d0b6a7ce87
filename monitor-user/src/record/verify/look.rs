//! One look at a process from both sides.

use monitor_ebpf::abi::{AddressSpace, TrackedProcess};

use super::{
    kept::Kept,
    point::{Exactness, Point, Quantity, Value},
    settle::Skip,
};
use crate::host::{
    facts,
    process_memory::{Silence, Status, rollup_rss, start_ticks, started},
};

/// A quiet moment, and what wasn't permitted then.
pub(super) struct Look {
    pub(super) point: Point,
    /// `smaps_rollup` couldn't be read.
    pub(super) is_refused: bool,
}

/// Looks at a process.
///
/// `status` comes first: it takes no lock. `smaps_rollup` takes the address space's, and letting go of that lock
/// shows the hook how much is mapped, which would put right what is to be checked.
pub(super) fn look(
    kept: &Kept,
    exactness: Exactness,
    (pid, process): (u32, &TrackedProcess),
    is_approximate: bool,
) -> Result<Look, Skip> {
    let space = || kept.space(process).ok_or(Skip::Gone);
    let before = space()?;
    let status = Status::read(pid)?;
    let middle = space()?;
    if !is_quiet(&before, &middle) {
        return Err(Skip::Busy);
    }
    let mut values = exactness.by_status(&middle.now, &status);
    let mut is_refused = false;
    let is_vms_off =
        |value: &Value| value.quantity == Quantity::Vms && value.is_beyond(is_approximate);
    if !values.iter().any(is_vms_off) {
        match rollup_rss(pid) {
            Ok(rss) => {
                if is_rss_quiet(&middle, &space()?) {
                    values.push(exactness.by_rollup(&middle.now, rss, status.threads));
                }
            }
            Err(Silence::Refused) => is_refused = true,
            Err(Silence::Gone) => return Err(Skip::Gone),
        }
    }
    // The pid may be another process's by now, or may have been all the time: entries of the dead stay for a while.
    let is_same = started(pid)? == start_ticks(process.start_ns);
    let is_unchanged = kept.process(pid).as_ref() == Some(process);
    if !is_same || !is_unchanged {
        return Err(Skip::Gone);
    }
    Ok(Look {
        point: Point {
            pid,
            start_ns: process.start_ns,
            time_ns: facts::boot_ns(),
            values,
        },
        is_refused,
    })
}

impl From<Silence> for Skip {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Gone => Self::Gone,
            Silence::Refused => Self::Refused,
        }
    }
}

/// Whether nothing was recorded between two readings.
fn is_quiet(before: &AddressSpace, after: &AddressSpace) -> bool {
    is_rss_quiet(before, after) && before.now.total_vm == after.now.total_vm
}

fn is_rss_quiet(before: &AddressSpace, after: &AddressSpace) -> bool {
    before.arrivals == after.arrivals && before.now.rss == after.now.rss
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_or_a_change_and_back_is_not_quiet() {
        let before = AddressSpace::default();
        assert!(is_quiet(&before, &before));
        let mut after = before;
        after.arrivals = 2;
        assert!(!is_quiet(&before, &after) && !is_rss_quiet(&before, &after));
        let mut after = before;
        after.now.rss[1] = 1;
        assert!(!is_quiet(&before, &after) && !is_rss_quiet(&before, &after));
        let mut after = before;
        after.now.total_vm = 1;
        assert!(!is_quiet(&before, &after) && is_rss_quiet(&before, &after));
        // A record of it changes nothing.
        let mut after = before;
        after.sent.total_vm = 1;
        assert!(is_quiet(&before, &after));
    }
}
