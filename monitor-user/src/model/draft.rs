//! A process while the fold runs: what events said, in no particular order.

use crate::{
    event::{Environment, Event, Exec, Exit, Fork, Found, Mm, Oom, Reaped, Snapshot, Title},
    model::{
        marks::{self, Mark},
        memory::Track,
        threads::Threads,
        tree::{How, Image},
        watch::Watched,
    },
    units::ProcessKey,
};

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) key: ProcessKey,
    /// Its last event, of memory not counted.
    pub(super) seen_ns: u64,
    /// Its creation, with its time.
    pub(super) fork: Option<(u64, Fork)>,
    /// Images in the order of their events; places never change.
    pub(super) images: Vec<ImageDraft>,
    /// Last name of the leader, with its time.
    pub(super) comm: Option<(u64, Vec<u8>)>,
    /// Rows of new threads.
    pub(super) threads: u32,
    /// Most live threads that any row told of.
    pub(super) threads_max: u32,
    /// As the ends of threads tell, which is too high where threads were created between the moment at
    /// which one counted as gone and the event of its end (before 6.16).
    pub(super) threads_max_at_ends: u32,
    /// Rows of threads that ended and left others.
    pub(super) thread_exits: u32,
    /// Their CPU time, ns.
    pub(super) thread_cpu_ns: u64,
    /// Rows of last threads: time, thread, row. More than one if two ended at once (before 6.16).
    pub(super) exits: Vec<(u64, u32, Exit)>,
    /// Reaping, with its time.
    pub(super) reaped: Option<(u64, Reaped)>,
    /// The OOM killer chose it: time and row. Never more than once.
    pub(super) oom: Option<(u64, Oom)>,
    /// What its last program got of the variables that are kept, with the time; `None`: not known.
    pub(super) environment: Option<(u64, Environment)>,
    /// What it was seen to have written over its arguments, with the time.
    pub(super) titles: Vec<(u64, Title)>,
    /// Moments that it marked.
    pub(super) marks: Vec<Mark>,
    /// Marks for which there was no more room.
    pub(super) marks_dropped: u64,
    /// It was there when the recording began: when that was seen, its parent then, and what was seen.
    pub(super) found: Option<(u64, Option<ProcessKey>, Found)>,
    /// Look at the end of the recording, with its time.
    pub(super) snapshot: Option<(u64, Snapshot)>,
    /// Signals, failed calls, waits.
    pub(super) watched: Watched,
    /// Its threads, one by one.
    pub(super) lives: Threads,
}

/// An image of a process.
#[derive(Clone, Debug)]
pub(super) struct ImageDraft {
    pub(super) image: Image,
    /// It uses the address space of another process.
    pub(super) shared: bool,
    /// Its own highest values, where they aren't those of the address space's whole life.
    pub(super) track: Option<Track>,
    /// RSS of a shared address space when this image left it.
    pub(super) left_with: Option<u64>,
}

impl Draft {
    pub(super) fn new(key: ProcessKey) -> Self {
        Self {
            key,
            seen_ns: 0,
            fork: None,
            images: Vec::new(),
            comm: None,
            threads: 0,
            threads_max: 1,
            threads_max_at_ends: 1,
            thread_exits: 0,
            thread_cpu_ns: 0,
            exits: Vec::new(),
            reaped: None,
            oom: None,
            environment: None,
            titles: Vec::new(),
            marks: Vec::new(),
            marks_dropped: 0,
            found: None,
            snapshot: None,
            watched: Watched::default(),
            lives: Threads::default(),
        }
    }

    /// Takes a name of the leader, unless a later one is known.
    pub(super) fn name(&mut self, time_ns: u64, comm: &[u8]) {
        if self.comm.as_ref().is_none_or(|(at, _)| *at <= time_ns) {
            self.comm = Some((time_ns, comm.to_vec()));
        }
    }

    /// Takes a moment that it marked.
    pub(super) fn mark(&mut self, ns: u64, text: Vec<u8>) {
        if self.marks.len() < marks::MOST {
            self.marks.push(Mark { ns, text });
        } else {
            self.marks_dropped += 1;
        }
    }

    /// Place of the image that began last.
    pub(super) fn current(&self) -> Option<usize> {
        let starts = self.images.iter().enumerate();
        starts
            .max_by_key(|(_, i)| i.image.start_ns)
            .map(|(at, _)| at)
    }

    /// The row of its end that holds: the last one.
    pub(super) fn exit(&self) -> Option<&(u64, u32, Exit)> {
        self.exits.iter().max_by_key(|(time, _, _)| *time)
    }

    /// Takes a row of a last thread; the same thread ends only once.
    pub(super) fn end(&mut self, event: &Event, exit: Exit) {
        let tid = event.subject.map_or(self.key.pid, |s| s.tid);
        self.exits.retain(|(_, other, _)| *other != tid);
        self.exits.push((event.time_ns, tid, exit));
    }
}

impl ImageDraft {
    /// What a process starts with.
    pub(super) fn inherited(start_ns: u64, comm: Option<Vec<u8>>, mm: Option<Mm>) -> Self {
        Self::of(Image {
            comm,
            mm,
            ..empty(How::Inherited, Some(start_ns))
        })
    }

    /// What a process was when the recording began. Which path it had given to exec isn't known, nor when.
    pub(super) fn found(start_ns: u64, found: &Found) -> Self {
        if !found.has_executed {
            let mut image = Self::inherited(start_ns, Some(found.comm.clone()), found.mm);
            image.image.cwd.clone_from(&found.cwd);
            return image;
        }
        let bytes = |argv: &Vec<Vec<u8>>| argv.iter().map(|arg| arg.len() as u64 + 1).sum();
        Self::of(Image {
            comm: Some(found.comm.clone()),
            argv: found.argv.clone(),
            argv_bytes: found.argv.as_ref().map(bytes),
            argv_truncated: found.argv.as_ref().map(|_| false),
            cwd: found.cwd.clone(),
            mm: found.mm,
            ..empty(How::Exec, None)
        })
    }

    /// What an exec made.
    pub(super) fn executed(start_ns: u64, exec: &Exec) -> Self {
        Self::of(Image {
            filename: Some(exec.filename.clone()),
            comm: Some(exec.comm.clone()),
            argv: Some(exec.argv.clone()),
            argv_bytes: Some(exec.argv_bytes),
            argv_truncated: Some(exec.argv_truncated),
            cwd: exec.cwd.clone(),
            mm: exec.mm,
            ..empty(How::Exec, Some(start_ns))
        })
    }

    /// An exec whose event was lost; only its address space is known.
    pub(super) fn lost(mm: Mm) -> Self {
        Self::of(Image {
            mm: Some(mm),
            ..empty(How::Exec, None)
        })
    }

    fn of(image: Image) -> Self {
        Self {
            image,
            shared: false,
            track: None,
            left_with: None,
        }
    }
}

fn empty(how: How, start_ns: Option<u64>) -> Image {
    Image {
        how,
        start_ns,
        end_ns: None,
        filename: None,
        comm: None,
        argv: None,
        argv_bytes: None,
        argv_truncated: None,
        cwd: None,
        mm: None,
        shared_mm_with: None,
        memory: None,
    }
}
