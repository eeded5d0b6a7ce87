//! How processes, threads and programs begin.

use super::{Actor, BASE_VMS, MIB, MS, START, Story};
use crate::event::{
    Directory, Environment, Event, Exec, Fork, Found, Memory, Snapshot, Thread, ThreadExit, Title,
    What,
};
use crate::units::ProcessKey;

impl Story {
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

    /// The process that was made last was made by a call that took so long, ns (`None`: not known), by a creator with page tables of so many
    /// bytes.
    ///
    /// # Panics
    /// The last event is no creation.
    pub fn call_took(&mut self, fork_ns: impl Into<Option<u64>>, page_tables: u64) -> &mut Self {
        let Some(What::Fork(fork)) = self.events.last_mut().map(|event| &mut event.what) else {
            panic!("the last event is no creation");
        };
        fork.fork_ns = fork_ns.into();
        fork.creator_rss = Some(fork.memory.rss());
        fork.creator_vms = Some(fork.memory.vms);
        fork.creator_page_tables = Some(page_tables);
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

    /// As [`Story::fork`] with `CLONE_PARENT`: the child is one of its creator's parent.
    pub fn clone_parent(&mut self, parent: u32, child: u32) -> &mut Self {
        self.child(parent, child, Some(0x8000), false);
        let above = self.actor(parent).parent;
        if let Some(actor) = self.processes.get_mut(&child) {
            actor.parent = above;
        }
        self
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
            cwd: None,
        };
        self.tell(pid, pid, What::Exec(exec))
    }

    /// The exec that was just told of, or the process that was just found, had this working directory.
    ///
    /// # Panics
    /// Neither was told of last.
    pub fn in_directory(&mut self, path: &str) -> &mut Self {
        self.in_directory_that_is(Directory {
            path: path.as_bytes().to_vec(),
            ..Directory::default()
        })
    }

    /// As [`Story::in_directory`], with all that may be said of it.
    ///
    /// # Panics
    /// Neither was told of last.
    pub fn in_directory_that_is(&mut self, cwd: Directory) -> &mut Self {
        match self.events.last_mut().map(|event| &mut event.what) {
            Some(What::Exec(exec)) => exec.cwd = Some(cwd),
            Some(What::Snapshot(Snapshot {
                found: Some(found), ..
            })) => found.cwd = Some(cwd),
            other => panic!("neither an exec nor one that was found: {other:?}"),
        }
        self
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

    /// The process is seen to have written this over its arguments.
    pub fn title(&mut self, pid: u32, words: &[&str], is_cut: bool) -> &mut Self {
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.tell(pid, pid, What::Title(Title { words, is_cut }))
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
            ns_pid: Some(pid),
            ns_level: Some(0),
            comm,
            argv: (!argv.is_empty())
                .then(|| argv.iter().map(|arg| arg.as_bytes().to_vec()).collect()),
            cwd: None,
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

    pub(super) fn child(
        &mut self,
        parent: u32,
        child: u32,
        flags: Option<u64>,
        shared: bool,
    ) -> &mut Self {
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
            fork_ns: None,
            creator_rss: None,
            creator_vms: None,
            creator_page_tables: None,
        };
        self.tell(key.pid, key.pid, What::Fork(fork))
    }

    pub(super) fn born(&mut self, pid: u32, parent: Option<u32>, shared: bool) -> ProcessKey {
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

    pub(super) fn change_threads(&mut self, pid: u32, by: i32) -> u32 {
        let actor = self.processes.get_mut(&pid);
        actor.map_or(1, |actor| {
            actor.threads = actor.threads.saturating_add_signed(by);
            actor.threads
        })
    }
}
