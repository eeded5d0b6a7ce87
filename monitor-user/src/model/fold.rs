//! Takes events one by one.

use std::collections::{BTreeMap, HashMap};

use crate::{
    event::{Event, Exec, Exit, Fork, Found, Memory, Mm, MmEnd, Parts, Recording, What},
    model::{
        Summary, Timeline, Tree,
        activity::Activity,
        build,
        draft::{Draft, ImageDraft},
        marks,
        memory::{ImageAt, Spaces},
        order::Sorter,
        polled::Pollers,
        steps::{Growth, Part, Step, Steps, grown_part},
        titles,
        watch::Watched,
    },
    units::ProcessKey,
};

/// The fold: events in, a [`Tree`] out.
///
/// Events may come slightly out of order: a window of some thousand sorts them. One that comes
/// later than that is taken at its own time as far as the event allows.
#[derive(Clone, Debug, Default)]
pub struct Model {
    sorter: Sorter,
    pub(super) state: State,
}

/// What the events so far have said.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) processes: Vec<Draft>,
    pub(super) by_key: HashMap<ProcessKey, usize>,
    pub(super) spaces: Spaces,
    pub(super) summary: Summary,
    pub(super) timeline: Timeline,
    pub(super) pollers: Pollers,
    pub(super) steps: Steps,
    pub(super) activity: Activity,
    /// Records lost, as events in the stream tell.
    pub(super) lost: BTreeMap<String, u64>,
    /// Events that this state saw.
    pub(super) events: u64,
    /// Time of the last event.
    pub(super) last_ns: u64,
}

impl Model {
    /// A fold that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event.
    pub fn push(&mut self, event: &Event) {
        if let Some(event) = self.sorter.push(event.clone()) {
            self.state.apply(&event);
        }
    }

    /// The tree, with what is known about the recording as a whole.
    pub fn finish(mut self, recording: &Recording) -> Tree {
        while let Some(event) = self.sorter.pop() {
            self.state.apply(&event);
        }
        build::tree(self.state, recording)
    }
}

impl State {
    fn apply(&mut self, event: &Event) {
        self.events += 1;
        self.last_ns = self.last_ns.max(event.time_ns);
        self.summary.push(event);
        self.activity.push(event);
        if matches!(
            event.what,
            What::Fork(_) | What::Exec(_) | What::Memory { .. } | What::MmEnd(_) | What::Reaped(_)
        ) {
            let (rss, vms) = (self.summary.rss(), self.summary.vms());
            self.timeline.push(event.time_ns, self.events, rss, vms);
            self.pollers.push(event.time_ns, rss);
        }
        let process = event.subject.map(|s| self.process(s.process));
        match (&event.what, process) {
            (
                What::Memory {
                    mm,
                    now,
                    parts,
                    churn,
                    ..
                },
                _,
            ) => {
                self.grow(event, *mm, (*now, *parts));
                self.spaces.at(*mm, event.time_ns).churn = *churn;
                self.memory(event.time_ns, *mm, (*now, *parts), process);
            }
            (What::MmEnd(end), _) => self.mm_end(event.time_ns, end),
            (What::Loss(loss), _) => {
                for (kind, n) in &loss.lost {
                    *self.lost.entry(kind.clone()).or_default() += n;
                }
            }
            (_, Some(at)) => self.of_process(event, at),
            (_, None) => {}
        }
    }

    fn of_process(&mut self, event: &Event, at: usize) {
        let time_ns = event.time_ns;
        let tid = event.subject.map_or(0, |subject| subject.tid);
        let draft = &mut self.processes[at];
        draft.seen_ns = draft.seen_ns.max(time_ns);
        match &event.what {
            What::Fork(fork) => {
                if let Some(mm) = fork.mm.filter(|mm| Some(*mm) != fork.creator_mm) {
                    self.begin(event, mm, Growth::Forked, fork.memory);
                }
                self.fork(time_ns, at, fork);
            }
            What::Exec(exec) => {
                if let Some(mm) = exec.mm {
                    self.begin(event, mm, Growth::Executed, exec.memory);
                }
                self.exec(time_ns, at, exec);
                if let Some(text) = marks::of_exec(exec) {
                    self.mark(time_ns, at, text);
                }
            }
            What::Exit(exit) => self.exit(event, at, *exit),
            What::Thread(thread) => {
                draft.threads += 1;
                draft.threads_max = draft.threads_max.max(thread.threads);
                draft.lives.made(time_ns, tid, thread.creator_tid);
            }
            What::ThreadExit(exit) => {
                draft.thread_exits += 1;
                draft.watched.thread_ended(time_ns, tid);
                draft.lives.ended(time_ns, tid);
                draft.thread_cpu_ns = draft.thread_cpu_ns.saturating_add(exit.cpu_ns);
                let before = exit.threads.saturating_add(1);
                draft.threads_max_at_ends = draft.threads_max_at_ends.max(before);
            }
            // Other threads have names of their own.
            What::Rename(comm) => {
                if let Some(text) = marks::of_name(comm) {
                    draft.mark(time_ns, text);
                }
                if event.subject.is_some_and(|s| s.tid == s.process.pid) {
                    draft.name(time_ns, comm);
                }
            }
            What::Environment(environment) => {
                if draft
                    .environment
                    .as_ref()
                    .is_none_or(|(at, _)| *at <= time_ns)
                {
                    draft.environment = Some((time_ns, environment.clone()));
                }
            }
            What::Title(title) => titles::take(&mut draft.titles, time_ns, title),
            What::Reaped(reaped) => draft.reaped = Some((time_ns, *reaped)),
            What::Oom(oom) => draft.oom = Some((time_ns, oom.clone())),
            What::Snapshot(snapshot) => match &snapshot.found {
                Some(found) => self.found(time_ns, at, snapshot.parent, found),
                None => draft.snapshot = Some((time_ns, snapshot.clone())),
            },
            What::Signal(_)
            | What::ExecFailed(_)
            | What::ForkFailed(_)
            | What::Sleep(_)
            | What::Session(_)
            | What::Moved(_) => watched(&mut draft.watched, event),
            What::Memory { .. } | What::MmEnd(_) | What::Loss(_) => {}
        }
    }

    /// A process executes `rtrace mark`: the mark is of whom it was made by.
    fn mark(&mut self, time_ns: u64, at: usize, text: Vec<u8>) {
        let fork = self.processes[at].fork.as_ref();
        let creator = fork.and_then(|(_, fork)| fork.creator);
        let at = creator.map_or(at, |creator| self.process(creator));
        self.processes[at].mark(time_ns, text);
    }

    /// A process has a new address space.
    fn begin(&mut self, event: &Event, mm: Mm, growth: Growth, memory: Memory) {
        self.step(event, mm, growth, (0, memory.vms), None);
    }

    /// More may be mapped than before.
    fn grow(&mut self, event: &Event, mm: Mm, now: (Memory, Option<Parts>)) {
        let Some(space) = self.spaces.get(mm).filter(|space| space.rows.seen) else {
            return;
        };
        let before = (space.now, space.parts);
        if event.time_ns >= space.now_ns && now.0.vms > before.0.vms {
            let part = grown_part(before, now);
            self.step(event, mm, Growth::Mapped, (before.0.vms, now.0.vms), part);
        }
    }

    fn step(&mut self, event: &Event, mm: Mm, growth: Growth, vms: (u64, u64), part: Option<Part>) {
        self.steps.push(Step {
            time_ns: event.time_ns,
            mm,
            subject: event.subject,
            growth,
            bytes: vms.1.saturating_sub(vms.0),
            vms: vms.1,
            part,
        });
    }

    fn process(&mut self, key: ProcessKey) -> usize {
        *self.by_key.entry(key).or_insert_with(|| {
            self.processes.push(Draft::new(key));
            self.processes.len() - 1
        })
    }

    fn fork(&mut self, time_ns: u64, at: usize, fork: &Fork) {
        if self.processes[at].fork.is_some() {
            return;
        }
        if let Some(creator) = fork.creator {
            let creator = self.process(creator);
            let threads = fork.creator_threads.unwrap_or(1);
            let draft = &mut self.processes[creator];
            draft.threads_max = draft.threads_max.max(threads);
            if let Some(mm) = fork.creator_mm {
                self.runs_in(time_ns, creator, mm);
            }
        }
        let draft = &mut self.processes[at];
        let is_first = draft.images.is_empty();
        draft.name(time_ns, &fork.comm);
        draft.fork = Some((time_ns, fork.clone()));
        let shared = fork.mm.is_some() && fork.mm == fork.creator_mm;
        // It began when the kernel made the task, a little before the event that tells of it.
        let mut image = ImageDraft::inherited(draft.key.start_ns, Some(fork.comm.clone()), fork.mm);
        image.shared = shared;
        draft.images.push(image);
        let image_at = (at, draft.images.len() - 1);
        let Some(mm) = fork.mm else { return };
        let space = self.spaces.at(mm, time_ns);
        if !shared {
            space.note(time_ns, fork.memory);
            space.start = Some(fork.memory);
            space.owner = Some(image_at);
        } else if is_first {
            space.guests.push(image_at);
            let (now_ns, now) = (space.now_ns, space.now);
            // Nothing may be known of it yet: then its first row will be.
            if space.rows.seen {
                self.track(image_at, now_ns.max(time_ns), now);
            }
        }
    }

    /// A process was there when the recording began.
    fn found(&mut self, time_ns: u64, at: usize, parent: Option<ProcessKey>, found: &Found) {
        let draft = &mut self.processes[at];
        if draft.fork.is_some() || draft.found.is_some() {
            return;
        }
        draft.name(time_ns, &found.comm);
        draft.threads_max = draft.threads_max.max(found.threads);
        draft.found = Some((time_ns, parent, found.clone()));
        let mut image = ImageDraft::found(draft.key.start_ns, found);
        let space = found.mm.map(|mm| self.spaces.at(mm, time_ns));
        // Two that use one address space: the first of them stands for its owner.
        image.shared = space.as_ref().is_some_and(|space| space.owner.is_some());
        let is_shared = image.shared;
        let draft = &mut self.processes[at];
        draft.images.push(image);
        let image_at = (at, draft.images.len() - 1);
        let (Some(space), Some(memory)) = (space, found.memory) else {
            return;
        };
        if is_shared {
            space.guests.push(image_at);
            self.track(image_at, time_ns, memory);
        } else {
            space.note(time_ns, memory);
            space.owner = Some(image_at);
        }
    }

    fn exec(&mut self, time_ns: u64, at: usize, exec: &Exec) {
        let draft = &mut self.processes[at];
        let before = draft.current();
        let is_newest = before.is_none_or(|b| draft.images[b].image.start_ns <= Some(time_ns));
        draft.name(time_ns, &exec.comm);
        draft.watched.executed(exec.old_tid, draft.key.pid);
        // Of the program before.
        draft.environment.take_if(|(at, _)| *at < time_ns);
        draft.images.push(ImageDraft::executed(time_ns, exec));
        let image_at = (at, draft.images.len() - 1);
        if let Some(old) = exec.old_mm {
            self.runs_in(time_ns, at, old);
        }
        if let Some(before) = before.filter(|_| is_newest) {
            self.leave((at, before));
        }
        if let Some(mm) = exec.mm {
            let space = self.spaces.at(mm, time_ns);
            space.note(time_ns, exec.memory);
            space.start = Some(exec.memory);
            space.owner = Some(image_at);
            space.seen_by = None;
        }
    }

    fn exit(&mut self, event: &Event, at: usize, exit: Exit) {
        let tid = event.subject.map_or(0, |subject| subject.tid);
        self.processes[at].watched.thread_ended(event.time_ns, tid);
        self.processes[at].end(event, exit);
        if let Some(current) = self.processes[at].current() {
            self.leave((at, current));
        }
    }

    fn memory(
        &mut self,
        time_ns: u64,
        mm: Mm,
        (now, parts): (Memory, Option<Parts>),
        process: Option<usize>,
    ) {
        let space = self.spaces.at(mm, time_ns);
        if time_ns >= space.now_ns {
            space.parts = parts;
        }
        if space.note(time_ns, now) && !space.guests.is_empty() {
            for guest in space.guests.clone() {
                self.track(guest, time_ns, now);
            }
        }
        if let Some(process) = process {
            self.runs_in(time_ns, process, mm);
        }
    }

    fn mm_end(&mut self, time_ns: u64, end: &MmEnd) {
        let space = self.spaces.at(end.mm, time_ns);
        space.end = Some(*end);
        let guests = std::mem::take(&mut space.guests);
        for guest in guests {
            self.processes[guest.0].images[guest.1].left_with = Some(end.last.rss());
        }
    }

    fn track(&mut self, (process, image): ImageAt, time_ns: u64, now: Memory) {
        let image = &mut self.processes[process].images[image];
        image.track.get_or_insert_default().note(time_ns, now);
    }

    /// An image stops using its address space.
    ///
    /// If others go on in it, what they do later isn't this image's peak.
    fn leave(&mut self, at: ImageAt) {
        let image = &mut self.processes[at.0].images[at.1];
        let Some(mm) = image.image.mm else { return };
        let Some(space) = self.spaces.get(mm) else {
            return;
        };
        let rss = space.rows.seen.then(|| space.now.rss());
        let is_owner = space.owner == Some(at);
        if is_owner && !space.guests.is_empty() && image.track.is_none() {
            image.track = Some(space.rows);
            image.left_with = rss;
        } else if image.shared && image.left_with.is_none() {
            image.left_with = rss;
            let time_ns = space.now_ns;
            self.spaces.at(mm, time_ns).guests.retain(|g| *g != at);
        }
    }

    /// A process was seen in an address space: news only if no fork or exec has said so.
    fn runs_in(&mut self, time_ns: u64, process: usize, mm: Mm) {
        let space = self.spaces.at(mm, time_ns);
        match space.owner {
            Some((owner, _)) if owner == process => {}
            Some(_) => {
                let known = space.guests.iter().any(|(guest, _)| *guest == process);
                if !known && !space.borrowers.contains(&process) {
                    space.borrowers.push(process);
                }
            }
            None if space.seen_by.is_none() => space.seen_by = Some(process),
            None => {
                if space.seen_by != Some(process) && !space.borrowers.contains(&process) {
                    space.borrowers.push(process);
                }
            }
        }
    }
}

/// Takes what is told of a process beside its birth, its programs and its end.
fn watched(watched: &mut Watched, event: &Event) {
    let time_ns = event.time_ns;
    match &event.what {
        What::Signal(signal) => watched.signal(time_ns, signal),
        What::ExecFailed(failed) => watched.exec_failed(time_ns, failed),
        What::ForkFailed(failed) => watched.fork_failed(failed),
        What::Sleep(sleep) => {
            let tid = event.subject.map_or(0, |subject| subject.tid);
            watched.slept(time_ns, tid, sleep);
        }
        What::Session(_) => watched.session_ns = watched.session_ns.or(Some(time_ns)),
        What::Moved(moved) => watched.moved(time_ns, moved),
        _ => {}
    }
}
