//! A builder whose calls read like a story.

mod birth;
mod end;
mod memory;

use std::collections::BTreeMap;

use crate::{
    event::{Event, Mm, MmEnd, Recording, Subject, What},
    model::{Model, Tree},
    units::ProcessKey,
};

/// A millisecond in ns.
pub const MS: u64 = 1_000_000;
/// A mebibyte.
pub const MIB: u64 = 1 << 20;
/// Time at which a story begins, ns since boot.
pub const START: u64 = 1_000 * MS;

/// VMS of everybody without memory of its own yet.
const BASE_VMS: u64 = 4 * MIB;

/// A stream in the making. Processes are named by pid; the last one with that pid is meant.
#[derive(Clone, Debug)]
pub struct Story {
    now: u64,
    cpu: u16,
    events: Vec<Event>,
    processes: BTreeMap<u32, Actor>,
    spaces: BTreeMap<Mm, MmEnd>,
    next_mm: Mm,
    recording: Recording,
}

#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) key: ProcessKey,
    pub(super) comm: Vec<u8>,
    mm: Mm,
    owns_mm: bool,
    threads: u32,
    parent: Option<ProcessKey>,
    /// Nobody saw the recorded command's first run.
    first_run_ns: Option<u64>,
    stopped_ns: u64,
}

impl Default for Story {
    fn default() -> Self {
        Self::new()
    }
}

impl Story {
    /// An empty story on a fixed host with 2 CPUs; it begins at [`START`].
    pub fn new() -> Self {
        Self {
            now: START,
            cpu: 0,
            events: Vec::new(),
            processes: BTreeMap::new(),
            spaces: BTreeMap::new(),
            next_mm: 1,
            recording: Recording {
                rtrace_version: "0.1.0".into(),
                abi_version: 4,
                host: "testhost".into(),
                kernel: "6.18.0".into(),
                machine: "x86_64".into(),
                cpus: 2,
                memory_bytes: 8 << 30,
                page_size: 4096,
                start_ns: START,
                resolution_bytes: 64 << 10,
                rss_bound_bytes: 256 << 10,
                buffer_bytes: 8 << 20,
                sleep_ns: Some(100 * MS),
                ..Recording::default()
            },
        }
    }

    /// Lets `ms` milliseconds pass.
    pub fn after(&mut self, ms: u64) -> &mut Self {
        self.now += ms * MS;
        self
    }

    /// What follows happens on this CPU.
    pub fn on_cpu(&mut self, cpu: u16) -> &mut Self {
        self.cpu = cpu;
        self
    }

    /// Any event, as it is.
    pub fn event(&mut self, event: Event) -> &mut Self {
        self.events.push(event);
        self
    }

    /// Changes what is known about the recording.
    pub fn recording(&mut self, change: impl FnOnce(&mut Recording)) -> &mut Self {
        change(&mut self.recording);
        self
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Facts about the recording if it ended now.
    pub fn recorded(&self) -> Recording {
        let mut recording = self.recording.clone();
        if !recording.cut_short {
            recording.end_ns.get_or_insert(self.now);
        }
        recording
    }

    /// The tree that the model makes of it.
    pub fn tree(&self) -> Tree {
        let mut model = Model::new();
        for event in &self.events {
            model.push(event);
        }
        model.finish(&self.recorded())
    }

    /// Identity of the last process with this pid.
    pub fn key(&self, pid: u32) -> ProcessKey {
        self.actor(pid).key
    }

    /// Number of the address space that the process uses.
    pub fn mm(&self, pid: u32) -> Mm {
        self.actor(pid).mm
    }

    /// Somebody nobody has told of yet exists from now on: a story of losses needs such.
    pub(super) fn actor(&self, pid: u32) -> Actor {
        let unknown = || Actor {
            key: ProcessKey {
                pid,
                start_ns: self.now,
            },
            comm: Vec::new(),
            mm: 0,
            owns_mm: false,
            threads: 1,
            parent: None,
            first_run_ns: None,
            stopped_ns: 0,
        };
        self.processes.get(&pid).cloned().unwrap_or_else(unknown)
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now
    }

    pub(super) fn add_stop(&mut self, pid: u32, ns: u64) {
        if let Some(actor) = self.processes.get_mut(&pid) {
            actor.stopped_ns += ns;
        }
    }

    pub(super) fn tell(&mut self, pid: u32, tid: u32, what: What) -> &mut Self {
        let process = self.actor(pid).key;
        self.push(Some(Subject { process, tid }), what)
    }

    fn push(&mut self, subject: Option<Subject>, what: What) -> &mut Self {
        self.events.push(Event {
            time_ns: self.now,
            cpu: self.cpu,
            subject,
            what,
        });
        self
    }
}

/// Name of a kind of event, as trace and losses have it.
pub(super) fn kind_of(what: &What) -> &'static str {
    match what {
        What::Fork(_) => "fork",
        What::Thread(_) => "thread",
        What::Exec(_) => "exec",
        What::Rename(_) => "rename",
        What::ThreadExit(_) => "thread_exit",
        What::Exit(_) => "exit",
        What::Reaped(_) => "reaped",
        What::Memory { .. } => "memory",
        What::MmEnd(_) => "mm_end",
        What::Snapshot(_) => "snapshot",
        What::Environment(_) => "env",
        What::Loss(_) => "loss",
        What::Oom(_) => "oom",
        What::Signal(_) => "signal",
        What::ExecFailed(_) => "exec_failed",
        What::ForkFailed(_) => "fork_failed",
        What::Sleep(_) => "sleep",
        What::Session(_) => "session",
        What::Moved(_) => "moved",
        What::Title(_) => "title",
    }
}
