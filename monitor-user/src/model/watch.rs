//! What signals, failed calls and waits tell of a process while the fold runs.

use std::collections::BTreeMap;

use crate::event::{ExecFailed, ForkFailed, Moved, Signal, Sleep, WaitState};

/// Failed execs that are kept of a process; all are counted.
const FAILURES: usize = 256;
/// Moves between control groups that are kept of a process.
const MOVES: usize = 64;
/// Ways in which forks of a process failed that are told apart: a limit may be changed again and again.
const WAYS: usize = 64;
/// Longest waits that are kept of a process.
const WAITS: usize = 8;
/// The kernel wakes a thread before it shows the signal that does so: that long, at most, ns. It is also what waits
/// that are told of last at least, so that shorter work isn't told from none anyway.
const WOKEN_NS: u64 = 100_000_000;
/// Threads that end within this time before the last one may have been ended by the same signal, ns.
const TOGETHER_NS: u64 = 1_000_000_000;

/// A failed exec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecFailure {
    /// When, ns since boot.
    pub time_ns: u64,
    /// Number of the error (`errno`).
    pub errno: u32,
    /// Path that was to be executed; empty if it couldn't be read.
    pub filename: Vec<u8>,
}

/// A long wait of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub tid: u32,
    /// When it left the CPU, ns since boot.
    pub since_ns: u64,
    /// When it ran again; if `still`, when the recorder looked.
    pub until_ns: u64,
    /// How it waited.
    pub state: WaitState,
    /// System call that it waited in; `None`: in none, or not known.
    pub call: Option<String>,
    /// It waited on when the recording ended.
    pub still: bool,
}

impl Wait {
    /// How long it waited, ns.
    pub fn ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }

    /// Whether it waited for something in a system call, and wasn't merely stopped.
    fn is_in_call(&self) -> bool {
        matches!(self.state, WaitState::Sleeping | WaitState::Uninterruptible)
            && self.call.is_some()
    }
}

/// A process that did nothing but wait until it was killed, or until the recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// In which system call: that of its first thread, or else of the one that waited longest.
    pub call: String,
    /// For how long nothing of it had run, ns.
    pub ns: u64,
}

impl Blocked {
    /// What it waited for, in one word: `futex`, `read`, `wait`, `sleep` or `other`.
    pub fn kind(&self) -> &'static str {
        match self.call.as_str() {
            "futex" | "futex_wait" | "futex_waitv" | "futex_requeue" => "futex",
            "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg"
            | "recvmmsg" => "read",
            "wait4" | "waitid" => "wait",
            "nanosleep" | "clock_nanosleep" => "sleep",
            _ => "other",
        }
    }
}

/// What was seen of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    /// The last signal of each number, with its time.
    signals: BTreeMap<u32, (u64, Signal)>,
    pub(super) exec_failures: Vec<ExecFailure>,
    pub(super) failed_execs: u64,
    /// How many forks failed in this way.
    pub(super) fork_failures: BTreeMap<ForkFailed, u64>,
    /// When it made a session of its own.
    pub(super) session_ns: Option<u64>,
    pub(super) moves: Vec<(u64, Moved)>,
    pub(super) waits: Vec<Wait>,
    /// The last wait of each thread that is alive.
    last: BTreeMap<u32, Wait>,
    /// Threads that have just ended, with their last wait.
    ended: Vec<(u64, Option<Wait>)>,
}

impl Watched {
    pub(super) fn signal(&mut self, time_ns: u64, signal: &Signal) {
        let last = self.signals.entry(signal.signal);
        let last = last.or_insert_with(|| (time_ns, signal.clone()));
        if last.0 <= time_ns {
            *last = (time_ns, signal.clone());
        }
    }

    pub(super) fn exec_failed(&mut self, time_ns: u64, failed: &ExecFailed) {
        self.failed_execs += 1;
        // Of more than are kept the last one tells how it came out.
        self.exec_failures.truncate(FAILURES - 1);
        self.exec_failures.push(ExecFailure {
            time_ns,
            errno: failed.errno,
            filename: failed.filename.clone(),
        });
    }

    /// Of more ways than are kept only the error is told.
    pub(super) fn fork_failed(&mut self, failed: &ForkFailed) {
        let is_kept = self.fork_failures.contains_key(failed) || self.fork_failures.len() < WAYS;
        let way = if is_kept {
            failed.clone()
        } else {
            ForkFailed {
                errno: failed.errno,
                ..ForkFailed::default()
            }
        };
        *self.fork_failures.entry(way).or_default() += 1;
    }

    pub(super) fn moved(&mut self, time_ns: u64, moved: &Moved) {
        if self.moves.len() < MOVES {
            self.moves.push((time_ns, moved.clone()));
        }
    }

    pub(super) fn slept(&mut self, time_ns: u64, tid: u32, sleep: &Sleep) {
        let wait = Wait {
            tid,
            since_ns: sleep.since_ns,
            until_ns: time_ns,
            state: sleep.state,
            call: sleep.call.clone(),
            still: sleep.still,
        };
        self.waits.push(wait.clone());
        if self.waits.len() > WAITS {
            let shortest = self.waits.iter().enumerate().min_by_key(|(_, w)| w.ns());
            if let Some((at, _)) = shortest {
                self.waits.remove(at);
            }
        }
        self.last.insert(tid, wait);
    }

    /// A thread has ended, the last one or another.
    pub(super) fn thread_ended(&mut self, time_ns: u64, tid: u32) {
        let wait = self.last.remove(&tid);
        let since = time_ns.saturating_sub(TOGETHER_NS);
        self.ended.retain(|(ended_ns, _)| *ended_ns >= since);
        self.ended.push((time_ns, wait));
    }

    /// The thread `old` goes on as the process's first one, and no other is left.
    pub(super) fn executed(&mut self, old: u32, pid: u32) {
        let own = self.last.remove(&old);
        self.last.clear();
        if let Some(mut wait) = own {
            wait.tid = pid;
            self.last.insert(pid, wait);
        }
    }

    /// The signal of this number that was sent last before a death by it, and when.
    pub(super) fn fatal(&self, signal: u32, end_ns: u64) -> Option<(u64, &Signal)> {
        let (time_ns, signal) = self.signals.get(&signal)?;
        (*time_ns <= end_ns).then_some((*time_ns, signal))
    }

    /// Whether all of it waited when a signal ended it.
    pub(super) fn blocked_until_killed(&self, killed_ns: u64) -> Option<Blocked> {
        let ended = self.ended.iter().filter(|(at, _)| *at >= killed_ns);
        let waits: Option<Vec<&Wait>> = ended.map(|(_, wait)| wait.as_ref()).collect();
        let waits = waits?;
        let woken_ns = killed_ns.saturating_sub(WOKEN_NS);
        let is_until_then = |wait: &&Wait| wait.since_ns < killed_ns && wait.until_ns >= woken_ns;
        waits.iter().all(is_until_then).then(|| blocked(&waits))?
    }

    /// Whether all of it, that many threads, waits when the recording ends.
    pub(super) fn blocked_still(&self, threads: u32) -> Option<Blocked> {
        let waits: Vec<&Wait> = self.last.values().filter(|wait| wait.still).collect();
        (waits.len() as u64 == u64::from(threads)).then(|| blocked(&waits))?
    }
}

/// Of waits of all threads of a process.
fn blocked(waits: &[&Wait]) -> Option<Blocked> {
    let ns = waits.iter().map(|wait| wait.ns()).min()?;
    if !waits.iter().all(|wait| wait.is_in_call()) {
        return None;
    }
    // The first thread has the smallest number, unless numbers have begun anew.
    let first = waits.iter().min_by_key(|wait| wait.tid)?;
    Some(Blocked {
        call: first.call.clone()?,
        ns,
    })
}
