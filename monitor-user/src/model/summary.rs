//! A light fold: sums and their highest values, without the past.
//!
//! A recorder keeps it while it records, so its memory is bounded by the processes and address
//! spaces that are there: an address space is dropped at its end, a process when it is reaped.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{
    event::{Churn, Event, Exec, Exit, Fork, Found, Memory, Mm, What},
    model::{
        program,
        sharing::{InUse, Sharing},
    },
    units::ProcessKey,
};

/// Ended processes whose reaping hasn't come that are remembered, and numbers of ended address
/// spaces, so that a late event doesn't bring them back.
const REMEMBERED: usize = 4096;

/// Running sums over the tree.
///
/// An address space counts once, whoever uses it, from its first event to its end. That includes
/// the copy that fork fills before the child has a pid, and the one that exec builds before the
/// program changes: the kernel has given out those pages, also if fork or exec fails in the end.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    processes: BTreeMap<ProcessKey, Live>,
    by_pid: BTreeMap<u32, u64>,
    spaces: BTreeMap<Mm, Space>,
    ended: VecDeque<ProcessKey>,
    closed: VecDeque<Mm>,
    rss: u64,
    vms: u64,
    peak_rss: Option<Peak>,
    /// Whether the shares of `peak_rss` are still to be noted: the state is as it was then.
    peak_is_now: bool,
    peak_vms: u64,
    sharing: Sharing,
    /// Highest upper bound of memory in use, and that moment.
    most_in_use: Option<(u64, InUse)>,
    max_spaces: u64,
    max_threads: u32,
    live: u64,
    max_live: u64,
    created: u64,
    threads: u64,
    bad_exits: u64,
    deaths_by_signal: u64,
    events: u64,
    /// The first process of all, and its end.
    root: Option<(ProcessKey, Option<u64>)>,
    lost: BTreeMap<String, u64>,
    /// Address spaces taken out of the sums although their end never came.
    unclosed: u64,
}

/// The highest sum of RSS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// When, ns since boot.
    pub time_ns: u64,
    /// Sum of RSS over all address spaces, bytes.
    pub rss: u64,
    /// Every address space then, by number.
    pub shares: Vec<Share>,
    /// What was really in use then, as rows tell.
    pub in_use: InUse,
}

impl Peak {
    /// Who had most: of equals the one with the lowest number, so that the answer depends on the numbers alone.
    pub fn top(&self) -> Option<&Share> {
        self.shares.iter().rev().max_by_key(|s| s.memory.rss())
    }
}

/// What an address space had of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The address space.
    pub mm: Mm,
    /// Process that it belongs to; `None` while it had none.
    pub process: Option<ProcessKey>,
    /// What a person would call the program, as bytes.
    pub program: Arc<[u8]>,
    /// Its memory.
    pub memory: Memory,
}

#[derive(Clone, Debug, Default)]
struct Live {
    program: Arc<[u8]>,
    /// Usually one; two while an exec is under way, or after its event was lost.
    mms: Vec<Mm>,
    ended: bool,
}

/// How the state of an address space came about.
#[derive(Clone, Copy, Debug)]
enum Came {
    /// As a copy of that one.
    Forked(Mm),
    /// Afresh.
    Executed,
    /// Before the recording began.
    Found,
    /// By a change.
    Changed(Option<Churn>),
}

#[derive(Clone, Debug, Default)]
struct Space {
    memory: Memory,
    users: Vec<ProcessKey>,
}

impl Summary {
    /// A fold that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event. Events come in order of time, as a recorder or reader sorts them.
    pub fn push(&mut self, event: &Event) {
        self.events += 1;
        let subject = event.subject.map(|s| s.process);
        if subject.is_some_and(|key| self.is_past(key)) {
            return;
        }
        match (&event.what, subject) {
            (What::Fork(fork), Some(key)) => self.fork(event.time_ns, key, fork),
            (What::Exec(exec), Some(key)) => self.exec(event.time_ns, key, exec),
            (What::Thread(thread), Some(key)) => {
                self.process(key);
                self.threads += 1;
                self.max_threads = self.max_threads.max(thread.threads);
            }
            (
                What::Rename(_)
                | What::ThreadExit(_)
                | What::Oom(_)
                | What::Environment(_)
                | What::Title(_)
                | What::Signal(_)
                | What::ExecFailed(_)
                | What::ForkFailed(_)
                | What::Sleep(_)
                | What::Session(_)
                | What::Moved(_),
                Some(key),
            ) => {
                self.process(key);
            }
            (What::Exit(exit), Some(key)) => self.exit(event.time_ns, key, *exit),
            (What::Reaped(_), Some(key)) => self.reaped(key),
            (What::Memory { mm, now, churn, .. }, subject) => {
                self.set(event.time_ns, *mm, *now, Came::Changed(*churn));
                if let Some(key) = subject {
                    self.runs_in(key, *mm);
                }
            }
            (What::MmEnd(end), _) => self.close(end.mm),
            (What::Loss(loss), _) => {
                for (kind, n) in &loss.lost {
                    *self.lost.entry(kind.clone()).or_default() += n;
                }
            }
            (What::Snapshot(snapshot), Some(key)) => {
                if let Some(found) = &snapshot.found {
                    self.found(event.time_ns, key, found);
                }
            }
            (_, None) => {}
        }
    }

    /// Highest sum of RSS so far; `None` before any memory was seen.
    pub fn peak(&self) -> Option<Peak> {
        let mut peak = self.peak_rss.clone()?;
        if self.peak_is_now {
            peak.shares = self.shares();
            peak.in_use = self.sharing.in_use();
        }
        Some(peak)
    }

    /// Highest sum of VMS so far, bytes; `None` before any memory was seen.
    pub fn peak_vms(&self) -> Option<u64> {
        self.peak_rss.as_ref().map(|_| self.peak_vms)
    }

    /// The moment at which most memory may have been in use, ns since boot, and how much: only the upper bound is
    /// that of this moment. It need not be the moment of the highest sum of RSS. `None` before any memory was seen.
    pub fn most_in_use(&self) -> Option<(u64, InUse)> {
        self.most_in_use
    }

    /// Sum of RSS now, bytes.
    pub fn rss(&self) -> u64 {
        self.rss
    }

    /// Sum of VMS now, bytes.
    pub fn vms(&self) -> u64 {
        self.vms
    }

    /// Processes alive now; zombies are not.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Those alive now, by pid, and what a person would call their program, as bytes.
    pub fn alive(&self) -> impl Iterator<Item = (ProcessKey, &[u8])> {
        let alive = self.processes.iter().filter(|(_, live)| !live.ended);
        alive.map(|(key, live)| (*key, &*live.program))
    }

    /// Most processes alive at once.
    pub fn max_live(&self) -> u64 {
        self.max_live
    }

    /// Processes ever.
    pub fn processes(&self) -> u64 {
        self.created
    }

    /// Threads ever, besides the first of each process; fewer than there were after a loss.
    pub fn threads(&self) -> u64 {
        self.threads
    }

    /// Processes that ended with a code other than 0.
    pub fn bad_exits(&self) -> u64 {
        self.bad_exits
    }

    /// Processes that a signal ended.
    pub fn deaths_by_signal(&self) -> u64 {
        self.deaths_by_signal
    }

    /// Address spaces now.
    pub fn spaces(&self) -> usize {
        self.spaces.len()
    }

    /// Most address spaces at once.
    pub fn max_spaces(&self) -> u64 {
        self.max_spaces
    }

    /// Most threads of one process at once, as far as events of threads tell; at least 1.
    pub fn max_threads(&self) -> u32 {
        self.max_threads.max(1)
    }

    /// Start and end of the first process, which is the command; the end is `None` before it came.
    pub fn root(&self) -> Option<(ProcessKey, Option<u64>)> {
        self.root
    }

    /// Events seen.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Records lost, by kind, as the events of losses tell.
    pub fn lost(&self) -> &BTreeMap<String, u64> {
        &self.lost
    }

    /// Address spaces that were taken out of the sums because nobody was left to use them,
    /// although the event of their end had not come.
    pub fn unclosed(&self) -> u64 {
        self.unclosed
    }

    /// Processes and address spaces held now: what the memory of this fold depends on.
    pub fn held(&self) -> usize {
        self.processes.len() + self.spaces.len()
    }

    fn fork(&mut self, time_ns: u64, key: ProcessKey, fork: &Fork) {
        self.process(key);
        let program = fork
            .creator
            .and_then(|creator| self.processes.get(&creator))
            .map_or_else(
                || fork.comm.as_slice().into(),
                |creator| Arc::clone(&creator.program),
            );
        if let Some(live) = self
            .processes
            .get_mut(&key)
            .filter(|l| l.program.is_empty())
        {
            live.program = program;
        }
        let shared = fork.mm.is_some() && fork.mm == fork.creator_mm;
        if let (Some(creator), Some(mm)) = (fork.creator, fork.creator_mm) {
            self.process(creator);
            self.runs_in(creator, mm);
        }
        if let Some(mm) = fork.mm {
            if !shared {
                let came = fork.creator_mm.map_or(Came::Executed, Came::Forked);
                self.set(time_ns, mm, fork.memory, came);
            }
            self.runs_in(key, mm);
            if !shared {
                self.name_share(key, mm);
            }
        }
    }

    /// A process was there when the recording began.
    fn found(&mut self, time_ns: u64, key: ProcessKey, found: &Found) {
        let argv = found.argv.as_deref().unwrap_or_default();
        self.process(key).program = program::label(b"", argv, &found.comm).into();
        if let (Some(mm), Some(memory)) = (found.mm, found.memory) {
            self.set(time_ns, mm, memory, Came::Found);
            self.runs_in(key, mm);
        }
    }

    fn exec(&mut self, time_ns: u64, key: ProcessKey, exec: &Exec) {
        self.settle();
        let live = self.process(key);
        live.program = program::label(&exec.filename, &exec.argv, &exec.comm).into();
        for old in std::mem::take(&mut live.mms) {
            if Some(old) != exec.mm {
                self.leave(key, old);
            }
        }
        if let Some(mm) = exec.mm {
            self.set(time_ns, mm, exec.memory, Came::Executed);
            self.runs_in(key, mm);
            self.name_share(key, mm);
        }
    }

    /// A new program's address space can have had its share before its exec was complete.
    fn name_share(&mut self, key: ProcessKey, mm: Mm) {
        let program = Arc::clone(&self.process(key).program);
        let Some(peak) = self.peak_rss.as_mut() else {
            return;
        };
        if let Ok(at) = peak.shares.binary_search_by_key(&mm, |share| share.mm) {
            let share = &mut peak.shares[at];
            share.process = Some(key);
            share.program = program;
        }
    }

    fn exit(&mut self, time_ns: u64, key: ProcessKey, exit: Exit) {
        let live = self.process(key);
        // Two threads that end at once can both look like the last one before Linux 6.16.
        if live.ended {
            return;
        }
        live.ended = true;
        if let Some((_, end)) = self.root.as_mut().filter(|(root, _)| *root == key) {
            *end = Some(time_ns);
        }
        self.live = self.live.saturating_sub(1);
        match exit.signal() {
            Some(_) => self.deaths_by_signal += 1,
            None if exit.code() != Some(0) => self.bad_exits += 1,
            None => {}
        }
        self.ended.push_back(key);
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// A process is gone, so its memory is too.
    fn reaped(&mut self, key: ProcessKey) {
        if self.processes.contains_key(&key) {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: ProcessKey) {
        let Some(gone) = self.processes.remove(&key) else {
            return;
        };
        if !gone.ended {
            self.live = self.live.saturating_sub(1);
        }
        if self.by_pid.get(&key.pid) == Some(&key.start_ns) {
            self.by_pid.remove(&key.pid);
        }
        for mm in gone.mms {
            self.leave(key, mm);
        }
    }

    /// Whether its pid belongs to a newer process already.
    fn is_past(&self, key: ProcessKey) -> bool {
        let newest = self.by_pid.get(&key.pid);
        newest.is_some_and(|start_ns| *start_ns > key.start_ns)
    }

    /// The process, made if it is new. Another one with its pid must have ended.
    fn process(&mut self, key: ProcessKey) -> &mut Live {
        if !self.processes.contains_key(&key) {
            let before = self.by_pid.insert(key.pid, key.start_ns);
            if let Some(start_ns) = before {
                self.forget(ProcessKey { start_ns, ..key });
            }
            self.by_pid.insert(key.pid, key.start_ns);
            self.created += 1;
            self.root.get_or_insert((key, None));
            self.live += 1;
            self.max_live = self.max_live.max(self.live);
        }
        self.processes.entry(key).or_default()
    }

    fn runs_in(&mut self, key: ProcessKey, mm: Mm) {
        if self.is_closed(mm) {
            return;
        }
        let live = self.process(key);
        if !live.mms.contains(&mm) {
            live.mms.push(mm);
        }
        let space = self.spaces.entry(mm).or_default();
        if !space.users.contains(&key) {
            space.users.push(key);
        }
    }

    /// Numbers are never given twice: an event of such an address space comes late.
    fn is_closed(&self, mm: Mm) -> bool {
        !self.spaces.contains_key(&mm) && self.closed.contains(&mm)
    }

    fn set(&mut self, time_ns: u64, mm: Mm, now: Memory, came: Came) {
        if self.is_closed(mm) {
            return;
        }
        let before = self
            .spaces
            .get(&mm)
            .map_or_else(Memory::default, |s| s.memory);
        if now.rss() <= before.rss() {
            self.settle();
        }
        self.spaces.entry(mm).or_default().memory = now;
        match came {
            Came::Forked(creator) => self.sharing.fork(mm, creator, now),
            Came::Executed => self.sharing.exec(mm, now),
            Came::Found => self.sharing.found(mm, now),
            Came::Changed(churn) => self.sharing.set(mm, now, churn),
        }
        let in_use = self.sharing.sums();
        if self
            .most_in_use
            .is_none_or(|(_, most)| in_use.high > most.high)
        {
            self.most_in_use = Some((time_ns, in_use));
        }
        self.rss = self
            .rss
            .saturating_sub(before.rss())
            .saturating_add(now.rss());
        self.vms = self.vms.saturating_sub(before.vms).saturating_add(now.vms);
        let spaces = self.spaces.len() as u64;
        self.max_spaces = self.max_spaces.max(spaces);
        self.peak_vms = self.peak_vms.max(self.vms);
        if self
            .peak_rss
            .as_ref()
            .is_none_or(|peak| self.rss > peak.rss)
        {
            self.peak_rss = Some(Peak {
                time_ns,
                rss: self.rss,
                shares: Vec::new(),
                in_use: InUse::default(),
            });
            self.peak_is_now = true;
        }
    }

    fn leave(&mut self, key: ProcessKey, mm: Mm) {
        let Some(space) = self.spaces.get_mut(&mm) else {
            return;
        };
        space.users.retain(|user| *user != key);
        if space.users.is_empty() {
            self.unclosed += 1;
            self.close(mm);
        }
    }

    fn close(&mut self, mm: Mm) {
        self.settle();
        self.sharing.close(mm);
        if let Some(space) = self.spaces.remove(&mm) {
            self.rss = self.rss.saturating_sub(space.memory.rss());
            self.vms = self.vms.saturating_sub(space.memory.vms);
            for user in space.users {
                if let Some(live) = self.processes.get_mut(&user) {
                    live.mms.retain(|m| *m != mm);
                }
            }
        }
        self.closed.push_back(mm);
        if self.closed.len() > REMEMBERED {
            self.closed.pop_front();
        }
    }

    /// Notes who has what, while the state is still that of the peak. It is done only when the sum is about to
    /// fall, so growth costs nothing.
    fn settle(&mut self) {
        if std::mem::take(&mut self.peak_is_now) {
            let shares = self.shares();
            let in_use = self.sharing.in_use();
            if let Some(peak) = &mut self.peak_rss {
                peak.shares = shares;
                peak.in_use = in_use;
            }
        }
    }

    /// Every address space now, by number.
    pub(super) fn shares(&self) -> Vec<Share> {
        let share = |(mm, space): (&Mm, &Space)| {
            let process = space.users.first().copied();
            let live = process.and_then(|key| self.processes.get(&key));
            Share {
                mm: *mm,
                process,
                program: live.map(|l| Arc::clone(&l.program)).unwrap_or_default(),
                memory: space.memory,
            }
        };
        self.spaces.iter().map(share).collect()
    }
}
