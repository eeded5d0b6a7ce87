//! The largest steps in which mapped memory grew.

use crate::event::{Memory, Mm, Parts, Subject};

/// Steps that are kept.
const KEPT: usize = 10;

/// What made an address space larger, or made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Growth {
    /// A mapping: `mmap`, `mremap`, `brk`, a stack that grew.
    Mapped,
    /// A process began with a copy of its creator's address space.
    Forked,
    /// A program was executed.
    Executed,
}

/// A part of an address space that grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Private and writable: heaps, anonymous mappings, stacks of threads.
    Data,
    /// A stack that grows by itself.
    Stack,
    /// Executable and not writable.
    Exec,
    /// Anything else: shared, read-only or reserved.
    Other,
}

/// A step in which mapped memory grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, ns since boot.
    pub time_ns: u64,
    /// Address space.
    pub mm: Mm,
    /// Who did it; after a fork the new process. `None`: not known.
    pub subject: Option<Subject>,
    /// What it was.
    pub growth: Growth,
    /// By so many bytes; what came between two rows counts as one step.
    pub bytes: u64,
    /// VMS after it, bytes.
    pub vms: u64,
    /// What grew most; `None` if that isn't known.
    pub part: Option<Part>,
}

/// The largest steps so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    /// Takes a step. Of equals the earlier ones are kept.
    pub(super) fn push(&mut self, step: Step) {
        let at = self.0.partition_point(|other| other.bytes >= step.bytes);
        if at < KEPT && step.bytes > 0 {
            self.0.insert(at, step);
            self.0.truncate(KEPT);
        }
    }

    /// The largest first.
    pub(super) fn into_list(self) -> Vec<Step> {
        self.0
    }
}

/// Which part grew most between two states.
pub(super) fn grown_part(
    before: (Memory, Option<Parts>),
    now: (Memory, Option<Parts>),
) -> Option<Part> {
    let ((old, before), (new, now)) = (before, now);
    let (before, now) = before.zip(now)?;
    let whole = new.vms.saturating_sub(old.vms);
    let data = now.data.saturating_sub(before.data);
    let stack = now.stack.saturating_sub(before.stack);
    let exec = now.exec.saturating_sub(before.exec);
    let other = whole.saturating_sub(data.saturating_add(stack).saturating_add(exec));
    let parts = [
        (Part::Data, data),
        (Part::Stack, stack),
        (Part::Exec, exec),
        (Part::Other, other),
    ];
    let most = parts.iter().rev().max_by_key(|(_, bytes)| *bytes)?;
    (most.1 > 0).then_some(most.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(time_ns: u64, bytes: u64) -> Step {
        Step {
            time_ns,
            mm: 1,
            subject: None,
            growth: Growth::Mapped,
            bytes,
            vms: bytes,
            part: None,
        }
    }

    #[test]
    fn the_ten_largest_are_kept_and_of_equals_the_earliest() {
        let mut steps = Steps::default();
        for n in 1..=100 {
            steps.push(step(n, n % 50));
        }
        let kept: Vec<_> = steps
            .into_list()
            .iter()
            .map(|s| (s.time_ns, s.bytes))
            .collect();
        let expected = [(49, 49), (99, 49), (48, 48), (98, 48), (47, 47), (97, 47)];
        assert_eq!(kept[..6], expected);
        assert_eq!(kept.len(), KEPT);
    }

    #[test]
    fn the_part_that_grew_most_is_told() {
        let state = |vms, data, stack, exec| {
            let memory = Memory {
                vms,
                ..Memory::default()
            };
            let parts = Parts {
                data,
                exec,
                stack,
                page_tables: 0,
            };
            (memory, Some(parts))
        };
        let before = state(100, 10, 10, 10);
        let part = |now| grown_part(before, now);
        assert_eq!(part(state(150, 60, 10, 10)), Some(Part::Data));
        assert_eq!(part(state(150, 10, 50, 20)), Some(Part::Stack));
        assert_eq!(part(state(150, 10, 10, 60)), Some(Part::Exec));
        assert_eq!(part(state(150, 20, 10, 10)), Some(Part::Other));
        assert_eq!(part(state(100, 10, 10, 10)), None);
        assert_eq!(grown_part(before, (before.0, None)), None);
    }
}
