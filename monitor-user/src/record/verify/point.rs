//! What is compared at one quiet moment of a process.

use monitor_ebpf::abi::Memory;

use crate::{event::Difference, host::process_memory::Status, record::hooks::RssBound};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    Anon,
    File,
    Shmem,
    Swap,
    Vms,
    /// All kinds together, by `smaps_rollup`; the others are by `status`.
    Rss,
}

impl Quantity {
    pub(super) const ALL: [Self; 6] = [
        Self::Anon,
        Self::File,
        Self::Shmem,
        Self::Swap,
        Self::Vms,
        Self::Rss,
    ];

    /// Its name in a trace and in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anon => "anon",
            Self::File => "file",
            Self::Shmem => "shmem",
            Self::Swap => "swap",
            Self::Vms => "vms",
            Self::Rss => "rss",
        }
    }
}

/// A value from both sides, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) quantity: Quantity,
    pub(super) recorded: u64,
    pub(super) proc: u64,
    /// By how much what is recorded may be off.
    pub(super) bound: u64,
    /// By how much `/proc` may be off too, where it is approximate.
    pub(super) proc_bound: u64,
}

impl Value {
    /// By how much they may differ.
    pub(super) fn limit(&self, is_approximate: bool) -> u64 {
        let more = if is_approximate { self.proc_bound } else { 0 };
        self.bound.saturating_add(more)
    }

    pub(super) fn difference(&self) -> u64 {
        self.recorded.abs_diff(self.proc)
    }

    pub(super) fn is_beyond(&self, is_approximate: bool) -> bool {
        self.difference() > self.limit(is_approximate)
    }

    /// Whether it differs to the same side.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.quantity == other.quantity
            && (self.recorded > self.proc) == (other.recorded > other.proc)
    }
}

/// A quiet moment of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) pid: u32,
    pub(super) start_ns: u64,
    pub(super) time_ns: u64,
    pub(super) values: Vec<Value>,
}

impl Point {
    pub(super) fn value(&self, quantity: Quantity) -> Option<&Value> {
        self.values.iter().find(|value| value.quantity == quantity)
    }

    /// Values that differ by more than they may.
    pub(super) fn beyond(&self, is_approximate: bool) -> impl Iterator<Item = &Value> {
        let is_beyond = move |value: &&Value| value.is_beyond(is_approximate);
        self.values.iter().filter(is_beyond)
    }

    pub(super) fn difference(&self, value: &Value, is_approximate: bool) -> Difference {
        Difference {
            pid: self.pid,
            start_ns: self.start_ns,
            time_ns: self.time_ns,
            quantity: value.quantity.name().to_owned(),
            recorded_bytes: value.recorded,
            proc_bytes: value.proc,
            bound_bytes: value.limit(is_approximate),
        }
    }
}

/// How exact both sides are here.
#[derive(Clone, Copy, Debug)]
pub(in crate::record) struct Exactness {
    /// Each counter of RSS, as it is recorded.
    pub(in crate::record) recorded: RssBound,
    /// A counter without what CPUs or threads keep to themselves, as `/proc/PID/status` may show it.
    pub(in crate::record) shared: RssBound,
    /// What is mapped is read when system calls end (5.10), the growth of stacks as late as that of RSS.
    pub(in crate::record) is_vms_late: bool,
    /// Bytes.
    pub(in crate::record) page_size: u64,
}

/// RSS is the sum of this many counters, each with its own error.
const KINDS: u64 = 3;

impl Exactness {
    /// Whether `status` is known to be approximate.
    pub(super) fn is_status_approximate(&self) -> bool {
        self.shared.is_per_thread
    }

    fn counter(self, threads: u64) -> u64 {
        of_process(self.recorded, threads)
    }

    fn bytes(self, pages: i64) -> u64 {
        // Counters are below zero for a moment, and shown as 0 by the kernel too.
        u64::try_from(pages).unwrap_or(0) * self.page_size
    }

    /// RSS by kind, swap and VMS.
    pub(super) fn by_status(self, recorded: &Memory, status: &Status) -> Vec<Value> {
        let bound = self.counter(status.threads);
        let proc_bound = of_process(self.shared, status.threads);
        let [file, anon, swap, shmem] = recorded.rss;
        let kinds = [
            (Quantity::Anon, anon, status.anon),
            (Quantity::File, file, status.file),
            (Quantity::Shmem, shmem, status.shmem),
            (Quantity::Swap, swap, status.swap),
        ];
        let kinds = kinds.map(|(quantity, pages, proc)| Value {
            quantity,
            recorded: self.bytes(pages),
            proc,
            bound,
            proc_bound,
        });
        let vms = Value {
            quantity: Quantity::Vms,
            recorded: recorded.total_vm.saturating_mul(self.page_size),
            proc: status.vms,
            bound: if self.is_vms_late { bound } else { 0 },
            proc_bound: 0,
        };
        kinds.into_iter().chain([vms]).collect()
    }

    /// RSS in all, which `smaps_rollup` has exactly.
    pub(super) fn by_rollup(self, recorded: &Memory, rss: u64, threads: u64) -> Value {
        let [file, anon, _, shmem] = recorded.rss;
        Value {
            quantity: Quantity::Rss,
            recorded: self.bytes(file + anon + shmem),
            proc: rss,
            bound: self.counter(threads).saturating_mul(KINDS),
            proc_bound: 0,
        }
    }
}

fn of_process(bound: RssBound, threads: u64) -> u64 {
    let times = if bound.is_per_thread {
        threads.max(1)
    } else {
        1
    };
    bound.bytes.saturating_mul(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn exactness(recorded: u64, is_per_thread: bool) -> Exactness {
        Exactness {
            recorded: RssBound {
                bytes: recorded,
                is_per_thread,
            },
            shared: RssBound {
                bytes: 64 * PAGE,
                is_per_thread,
            },
            is_vms_late: is_per_thread,
            page_size: PAGE,
        }
    }

    const RECORDED: Memory = Memory {
        rss: [10, 20, 5, 3],
        total_vm: 100,
    };

    fn status() -> Status {
        Status {
            anon: 20 * PAGE,
            file: 10 * PAGE,
            shmem: 3 * PAGE,
            swap: 5 * PAGE,
            vms: 100 * PAGE,
            threads: 2,
        }
    }

    type Change = fn(&mut Status);

    #[test]
    fn each_kind_is_compared_with_its_own() {
        let exact = exactness(0, false);
        let same = exact.by_status(&RECORDED, &status());
        assert_eq!(same.len(), 5);
        assert!(same.iter().all(|value| value.difference() == 0));
        assert_eq!(
            exact.by_rollup(&RECORDED, 33 * PAGE, 2).difference(),
            0,
            "swap isn't resident"
        );
        let changes: [(Change, Quantity); 5] = [
            (|s| s.anon += PAGE, Quantity::Anon),
            (|s| s.file -= PAGE, Quantity::File),
            (|s| s.shmem += PAGE, Quantity::Shmem),
            (|s| s.swap = 0, Quantity::Swap),
            (|s| s.vms += PAGE, Quantity::Vms),
        ];
        for (change, quantity) in changes {
            let mut other = status();
            change(&mut other);
            let values = exact.by_status(&RECORDED, &other);
            let beyond: Vec<_> = values.iter().filter(|v| v.is_beyond(false)).collect();
            assert_eq!(beyond.len(), 1, "{quantity:?}");
            assert_eq!(beyond[0].quantity, quantity);
        }
        assert!(exact.by_rollup(&RECORDED, 34 * PAGE, 2).is_beyond(true));
    }

    #[test]
    fn a_bound_is_for_each_thread_where_threads_keep_parts() {
        let old = exactness(64 * PAGE, true);
        assert!(old.is_status_approximate());
        let values = old.by_status(&RECORDED, &status());
        assert_eq!(values[0].limit(true), 2 * 64 * PAGE * 2);
        assert_eq!(values[4].limit(true), 2 * 64 * PAGE);
        assert_eq!(
            old.by_rollup(&RECORDED, 0, 2).limit(true),
            3 * 2 * 64 * PAGE
        );
        // What CPUs keep doesn't depend on threads.
        let fallback = exactness(64 * PAGE, false);
        let values = fallback.by_status(&RECORDED, &status());
        assert_eq!(
            (values[0].limit(false), values[4].limit(false)),
            (64 * PAGE, 0)
        );
        assert_eq!(
            fallback.by_rollup(&RECORDED, 0, 2).limit(false),
            3 * 64 * PAGE
        );
    }

    #[test]
    fn exactly_at_its_bound_a_value_is_right() {
        let bounded = exactness(4 * PAGE, false);
        let mut other = status();
        other.anon += 4 * PAGE;
        assert!(!bounded.by_status(&RECORDED, &other)[0].is_beyond(false));
        other.anon += PAGE;
        assert!(bounded.by_status(&RECORDED, &other)[0].is_beyond(false));
    }

    #[test]
    fn a_counter_below_zero_is_zero() {
        let recorded = Memory {
            rss: [-3, 0, 0, 0],
            total_vm: 0,
        };
        let values = exactness(0, false).by_status(&recorded, &Status::default());
        assert!(values.iter().all(|value| value.difference() == 0));
    }
}
