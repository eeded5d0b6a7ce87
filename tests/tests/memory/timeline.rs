//! Memory over time as a trace has it, row by row.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use anyhow::Context;
use rtrace::{
    event::{Event, Memory, Mm, Parts, Recording, What},
    trace::Trace,
};

/// A state of an address space from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// From then, ns since boot.
    pub(crate) time_ns: u64,
    /// Its memory.
    pub(crate) now: Memory,
    /// What it consists of; only rows of changes have that.
    pub(crate) parts: Option<Parts>,
}

/// All rows about memory.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// What is known of the recording.
    pub(crate) recording: Recording,
    /// States of each address space, in order of time.
    pub(crate) states: BTreeMap<Mm, Vec<State>>,
    /// Address spaces of each process, with the time from which it had them.
    spaces: HashMap<u32, BTreeMap<u64, Mm>>,
}

impl Timeline {
    /// Reads a trace.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let trace = Trace::open(path).with_context(|| path.display().to_string())?;
        let mut timeline = Self {
            recording: trace.recording().clone(),
            states: BTreeMap::new(),
            spaces: HashMap::new(),
        };
        for event in trace.events() {
            timeline.take(&event?);
        }
        Ok(timeline)
    }

    /// The state that a process's memory had at a moment.
    pub(crate) fn at(&self, pid: u32, time_ns: u64) -> Option<&State> {
        let (_, mm) = self.spaces.get(&pid)?.range(..=time_ns).next_back()?;
        let states = self.states.get(mm)?;
        let until = states.partition_point(|state| state.time_ns <= time_ns);
        states[..until].last()
    }

    fn take(&mut self, event: &Event) {
        let (mm, now, parts) = match &event.what {
            What::Fork(fork) => (fork.mm, fork.memory, None),
            What::Exec(exec) => (exec.mm, exec.memory, None),
            What::Memory { mm, now, parts, .. } => (Some(*mm), *now, *parts),
            _ => return,
        };
        let Some(mm) = mm else { return };
        if let (What::Fork(_) | What::Exec(_), Some(subject)) = (&event.what, event.subject) {
            let spaces = self.spaces.entry(subject.process.pid).or_default();
            spaces.insert(event.time_ns, mm);
        }
        self.states.entry(mm).or_default().push(State {
            time_ns: event.time_ns,
            now,
            parts,
        });
    }
}
