//! Address spaces and what they hold.

use super::{BASE_VMS, MIB, Story};
use crate::event::{Memory, Mm, MmEnd, Subject, What};

impl Story {
    /// The process has `mib` of anonymous memory beside the 1 MiB of its program file.
    pub fn memory(&mut self, pid: u32, mib: u64) -> &mut Self {
        let mm = self.actor(pid).mm;
        let now = Memory {
            anon: mib * MIB,
            vms: BASE_VMS + mib * MIB,
            ..self.memory_of(mm)
        };
        self.memory_is(pid, now)
    }

    /// The process's memory is exactly this.
    pub fn memory_is(&mut self, pid: u32, now: Memory) -> &mut Self {
        let mm = self.actor(pid).mm;
        self.set(Some(pid), mm, now)
    }

    /// As [`Story::memory_is`], changed by somebody else, so without a subject.
    pub fn memory_by_others(&mut self, pid: u32, now: Memory) -> &mut Self {
        let mm = self.actor(pid).mm;
        self.set(None, mm, now)
    }

    /// Closes an address space.
    pub fn close(&mut self, mm: Mm) -> &mut Self {
        let end = self.spaces.remove(&mm).unwrap_or(MmEnd {
            mm,
            ..MmEnd::default()
        });
        self.push(None, What::MmEnd(end))
    }

    pub(super) fn new_mm(&mut self) -> Mm {
        self.next_mm += 1;
        self.next_mm - 1
    }

    pub(super) fn memory_of(&self, mm: Mm) -> Memory {
        self.spaces.get(&mm).map(|s| s.last).unwrap_or_default()
    }

    pub(super) fn keep(&mut self, mm: Mm, now: Memory) {
        let space = self.spaces.entry(mm).or_insert(MmEnd {
            mm,
            peak: now,
            peak_ns: self.now,
            ..MmEnd::default()
        });
        if now.rss() > space.peak.rss() {
            space.peak = now;
            space.peak_ns = self.now;
        }
        space.last = now;
        space.peak_vms = space.peak_vms.max(now.vms);
        space.peak_swap = space.peak_swap.max(now.swap);
    }

    pub(super) fn set(&mut self, pid: Option<u32>, mm: Mm, now: Memory) -> &mut Self {
        self.keep(mm, now);
        let subject = pid.map(|pid| Subject {
            process: self.actor(pid).key,
            tid: pid,
        });
        self.push(
            subject,
            What::Memory {
                mm,
                now,
                parts: None,
                churn: None,
                cpu_ns: None,
                charge: None,
            },
        )
    }
}
