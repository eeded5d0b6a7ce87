//! A builder whose calls read like a story.

use std::collections::BTreeMap;

use crate::{
    event::{
        Environment, Event, Exec, Exit, Fork, Found, Loss, Memory, Mm, MmEnd, Oom, Reaped,
        Recording, Snapshot, Subject, Thread, ThreadExit, Usage, What,
    },
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

    /// The recorded command starts: a process that executes `argv`.
    pub fn root(&mut self, pid: u32, argv: &[&str]) -> &mut Self {
        let key = self.born(pid, None, false);
        self.recording.root_pid = pid;
        self.recording.root_start_ns = key.start_ns;
        self.recording.command = argv.iter().map(|a| (*a).to_owned()).collect();
        self.exec(pid, argv)
    }

    /// `parent` makes `child` with a copy of its memory.
    pub fn fork(&mut self, parent: u32, child: u32) -> &mut Self {
        self.child(parent, child, Some(0x120_0000), false)
    }

    /// As [`Story::fork`], called by a thread of `parent` that needn't be the leader.
    pub fn fork_by(&mut self, parent: u32, tid: u32, child: u32) -> &mut Self {
        self.fork(parent, child);
        if let Some(Event {
            what: What::Fork(fork),
            ..
        }) = self.events.last_mut()
        {
            fork.creator_tid = Some(tid);
        }
        self
    }

    /// `parent` makes `child` by vfork: both use one address space.
    pub fn vfork(&mut self, parent: u32, child: u32) -> &mut Self {
        self.child(parent, child, Some(0x4100), true)
    }

    /// `parent` makes `child` by clone with `CLONE_VM` alone.
    pub fn clone_vm(&mut self, parent: u32, child: u32) -> &mut Self {
        self.child(parent, child, Some(0x100), true)
    }

    /// As [`Story::fork`] or [`Story::vfork`], but nobody knows the flags.
    pub fn fork_without_flags(&mut self, parent: u32, child: u32, shared: bool) -> &mut Self {
        self.child(parent, child, None, shared)
    }

    /// A fork that fails after it has copied memory: an address space without a process.
    pub fn failed_fork(&mut self, parent: u32) -> &mut Self {
        let now = self.memory_of(self.actor(parent).mm);
        let mm = self.new_mm();
        self.set(None, mm, now);
        self.close(mm)
    }

    /// The copy of memory that `child`'s fork will have: a row before there is a process.
    ///
    /// The next fork uses this address space.
    pub fn copy_before_fork(&mut self, parent: u32) -> &mut Self {
        let now = self.memory_of(self.actor(parent).mm);
        let mm = self.next_mm;
        self.set(None, mm, now)
    }

    /// The process becomes another program; its name is the last part of `argv[0]`.
    pub fn exec(&mut self, pid: u32, argv: &[&str]) -> &mut Self {
        self.exec_from(pid, pid, argv)
    }

    /// As [`Story::exec`], called by a thread that needn't be the leader.
    pub fn exec_from(&mut self, pid: u32, tid: u32, argv: &[&str]) -> &mut Self {
        let argv: Vec<Vec<u8>> = argv.iter().map(|a| a.as_bytes().to_vec()).collect();
        self.exec_bytes(pid, tid, argv)
    }

    /// As [`Story::exec_from`] with arguments that needn't be text.
    pub fn exec_bytes(&mut self, pid: u32, tid: u32, argv: Vec<Vec<u8>>) -> &mut Self {
        let before = self.actor(pid);
        let mm = self.new_mm();
        let memory = Memory {
            file: MIB,
            vms: BASE_VMS,
            ..Memory::default()
        };
        self.set(None, mm, memory);
        if before.owns_mm {
            self.close(before.mm);
        }
        let filename = argv.first().cloned().unwrap_or_default();
        let name = crate::model::program::base(&filename);
        let comm = name[..name.len().min(15)].to_vec();
        let actor = Actor {
            comm: comm.clone(),
            mm,
            owns_mm: true,
            threads: 1,
            ..before
        };
        self.processes.insert(pid, actor);
        let exec = Exec {
            argv_bytes: argv.iter().map(|a| a.len() as u64 + 1).sum(),
            filename,
            argv,
            argv_truncated: false,
            comm,
            old_tid: tid,
            mm: Some(mm),
            old_mm: Some(before.mm),
            memory,
        };
        self.tell(pid, pid, What::Exec(exec))
    }

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

    /// The process makes a thread.
    pub fn thread(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.thread_by(pid, pid, tid)
    }

    /// A thread of the process makes another one.
    pub fn thread_by(&mut self, pid: u32, creator_tid: u32, tid: u32) -> &mut Self {
        let threads = self.change_threads(pid, 1);
        let thread = Thread {
            creator_tid,
            threads,
            clone_flags: 0x3d_0f00,
            comm: self.actor(pid).comm,
        };
        self.tell(pid, tid, What::Thread(thread))
    }

    /// A thread ends after 1 ms of CPU time; others are left.
    pub fn thread_exit(&mut self, pid: u32, tid: u32) -> &mut Self {
        let threads = self.change_threads(pid, -1);
        let exit = ThreadExit {
            cpu_ns: MS,
            threads,
        };
        self.tell(pid, tid, What::ThreadExit(exit))
    }

    /// A thread takes a name.
    pub fn rename(&mut self, pid: u32, tid: u32, name: &str) -> &mut Self {
        self.tell(pid, tid, What::Rename(name.as_bytes().to_vec()))
    }

    /// The process ends with a code.
    pub fn exit(&mut self, pid: u32, code: u32) -> &mut Self {
        self.end(pid, pid, code << 8)
    }

    /// A signal ends the process.
    pub fn killed(&mut self, pid: u32, signal: u32) -> &mut Self {
        self.end(pid, pid, signal)
    }

    /// The process ends with a wait status, `tid` last, after 2 ms of CPU time of that thread.
    pub fn end(&mut self, pid: u32, tid: u32, status: u32) -> &mut Self {
        let actor = self.actor(pid);
        self.exit_row(pid, tid, status);
        if actor.owns_mm {
            self.close(actor.mm);
        }
        self
    }

    /// Only the row of an end; memory stays.
    pub fn exit_row(&mut self, pid: u32, tid: u32, status: u32) -> &mut Self {
        let exit = Exit {
            status,
            parent: self.actor(pid).parent,
            cpu_ns: 2 * MS,
            first_run_ns: self.actor(pid).first_run_ns,
            stopped_ns: Some(self.actor(pid).stopped_ns),
        };
        self.tell(pid, tid, What::Exit(exit))
    }

    /// The process has another parent from here on; pid 1 is outside of the tree.
    pub fn reparent(&mut self, pid: u32, parent: u32) -> &mut Self {
        let outside = ProcessKey {
            pid: parent,
            start_ns: 1,
        };
        let parent = self.processes.get(&parent).map_or(outside, |p| p.key);
        if let Some(actor) = self.processes.get_mut(&pid) {
            actor.parent = Some(parent);
        }
        self
    }

    /// The process's parent waited for it.
    pub fn reaped(&mut self, pid: u32) -> &mut Self {
        self.tell(pid, pid, What::Reaped(Reaped::default()))
    }

    /// As [`Story::reaped`], with all that it used.
    pub fn reaped_with(&mut self, pid: u32, cpu_ns: u64, usage: Usage) -> &mut Self {
        let cpu_ns = Some(cpu_ns);
        self.tell(pid, pid, What::Reaped(Reaped { cpu_ns, usage }))
    }

    /// The OOM killer chooses the process.
    pub fn oom(&mut self, pid: u32, oom: Oom) -> &mut Self {
        self.tell(pid, pid, What::Oom(oom))
    }

    /// As [`Story::reaped`], with the kernel's sum of CPU time in ms.
    pub fn reaped_with_cpu(&mut self, pid: u32, ms: u64) -> &mut Self {
        self.reaped_with(pid, ms * MS, Usage::default())
    }

    /// The recorder finds the process at the end of the recording.
    pub fn still_there(&mut self, pid: u32, zombie: bool) -> &mut Self {
        let parent = self.actor(pid).parent;
        let snapshot = Snapshot {
            parent,
            zombie,
            first_run_ns: self.actor(pid).first_run_ns,
            stopped_ns: Some(self.actor(pid).stopped_ns),
            found: None,
        };
        self.tell(pid, pid, What::Snapshot(snapshot))
    }

    /// What the process's new program got of the variables that are kept.
    pub fn environment(&mut self, pid: u32, values: &[&str], is_whole: bool) -> &mut Self {
        let values = values.iter().map(|value| value.as_bytes().to_vec());
        let environment = Environment {
            values: values.collect(),
            is_whole,
        };
        self.tell(pid, pid, What::Environment(environment))
    }

    /// A process that was there already is found: `pid`, whose parent is `parent`, with the memory of everybody. With
    /// arguments it has executed a program, without it was only forked.
    pub fn found(&mut self, parent: u32, pid: u32, argv: &[&str]) -> &mut Self {
        let parent = self.processes.get(&parent).map_or(
            ProcessKey {
                pid: parent,
                start_ns: 1,
            },
            |actor| actor.key,
        );
        // It began before the recording did, later than those that were found before it.
        let start_ns = START / 2 + u64::from(pid);
        let key = ProcessKey { pid, start_ns };
        let mm = self.new_mm();
        let comm = argv.first().unwrap_or(&"forked").rsplit('/').next();
        let actor = Actor {
            key,
            comm: comm.unwrap_or_default().as_bytes().to_vec(),
            mm,
            owns_mm: true,
            threads: 1,
            parent: Some(parent),
            first_run_ns: None,
            stopped_ns: 0,
        };
        let (comm, threads) = (actor.comm.clone(), actor.threads);
        self.processes.insert(pid, actor);
        let found = Found {
            mm: Some(mm),
            memory: Some(self.memory_of(mm)),
            threads,
            has_executed: !argv.is_empty(),
            comm,
            argv: (!argv.is_empty())
                .then(|| argv.iter().map(|arg| arg.as_bytes().to_vec()).collect()),
        };
        let snapshot = Snapshot {
            parent: Some(parent),
            zombie: false,
            first_run_ns: None,
            stopped_ns: None,
            found: Some(found),
        };
        self.tell(pid, pid, What::Snapshot(snapshot))
    }

    /// The last event of this kind is lost, and the kernel counted it.
    pub fn lost(&mut self, kind: &str) -> &mut Self {
        *self.recording.lost.entry(kind.to_owned()).or_default() += 1;
        self.vanished(kind)
    }

    /// The last event of this kind is lost, and nobody counted it.
    pub fn vanished(&mut self, kind: &str) -> &mut Self {
        let last = self.events.iter().rposition(|e| kind_of(&e.what) == kind);
        if let Some(at) = last {
            self.events.remove(at);
        }
        self
    }

    /// A row that tells of lost records.
    pub fn loss_row(&mut self, kind: &str, n: u64) -> &mut Self {
        let loss = Loss {
            lost: BTreeMap::from([(kind.to_owned(), n)]),
        };
        self.push(None, What::Loss(loss))
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

    /// Closes an address space.
    pub fn close(&mut self, mm: Mm) -> &mut Self {
        let end = self.spaces.remove(&mm).unwrap_or(MmEnd {
            mm,
            ..MmEnd::default()
        });
        self.push(None, What::MmEnd(end))
    }

    fn child(&mut self, parent: u32, child: u32, flags: Option<u64>, shared: bool) -> &mut Self {
        let creator = self.actor(parent);
        let memory = self.memory_of(creator.mm);
        let key = self.born(child, Some(parent), shared);
        let mm = self.actor(child).mm;
        if !shared {
            self.keep(mm, memory);
        }
        let fork = Fork {
            creator: Some(creator.key),
            creator_tid: Some(parent),
            creator_threads: Some(creator.threads),
            clone_flags: flags,
            mm: Some(mm),
            creator_mm: Some(creator.mm),
            memory,
            comm: creator.comm,
            ns_pid: Some(child),
            ns_level: Some(0),
        };
        self.tell(key.pid, key.pid, What::Fork(fork))
    }

    fn born(&mut self, pid: u32, parent: Option<u32>, shared: bool) -> ProcessKey {
        let creator = parent.map(|p| self.actor(p));
        let key = ProcessKey {
            pid,
            start_ns: self.now,
        };
        let mm = match &creator {
            Some(creator) if shared => creator.mm,
            _ => self.new_mm(),
        };
        let actor = Actor {
            key,
            comm: creator.as_ref().map(|c| c.comm.clone()).unwrap_or_default(),
            mm,
            // What the root was before its exec isn't recorded.
            owns_mm: !shared && creator.is_some(),
            threads: 1,
            first_run_ns: creator.is_some().then_some(self.now),
            stopped_ns: 0,
            parent: creator.map(|c| c.key),
        };
        self.processes.insert(pid, actor);
        key
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

    fn change_threads(&mut self, pid: u32, by: i32) -> u32 {
        let actor = self.processes.get_mut(&pid);
        actor.map_or(1, |actor| {
            actor.threads = actor.threads.saturating_add_signed(by);
            actor.threads
        })
    }

    fn new_mm(&mut self) -> Mm {
        self.next_mm += 1;
        self.next_mm - 1
    }

    fn memory_of(&self, mm: Mm) -> Memory {
        self.spaces.get(&mm).map(|s| s.last).unwrap_or_default()
    }

    fn keep(&mut self, mm: Mm, now: Memory) {
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

    fn set(&mut self, pid: Option<u32>, mm: Mm, now: Memory) -> &mut Self {
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
    }
}
