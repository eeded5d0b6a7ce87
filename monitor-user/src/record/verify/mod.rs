//! `--verify`: compares what is recorded of memory with what `/proc` says, while recording.
//!
//! A thread of its own goes over the traced processes now and then. It only reads: maps, and files of `/proc` as any
//! monitor does. What that costs the command: `smaps_rollup` is made under a reader's lock, and a process that ends
//! while it is read gives its memory back when that is done. The thread isn't given a low priority, since it would
//! hold the lock for longer.
//!
//! Every value that the kernel side holds is that of the last event, whatever the resolution of the rows is, so
//! resolution plays no part here.

mod kept;
mod look;
mod point;
mod settle;
mod tally;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use monitor_ebpf::abi::TrackedProcess;

pub(super) use kept::Kept;
pub(super) use point::Exactness;

use self::{
    look::look,
    settle::{Skip, settle},
    tally::Tally,
};
use crate::{event::Verification, host::process_memory::is_asleep};

/// Between two rounds over all processes, at least.
const EVERY: Duration = Duration::from_millis(50);
/// And this many times what a round took, so that it is a tenth of one CPU at most.
const REST: u32 = 9;

/// The thread that compares.
pub(super) struct Verifier {
    tally: Arc<Mutex<Tally>>,
    /// Dropped to end it.
    go_on: Option<Sender<()>>,
    thread: thread::JoinHandle<()>,
}

impl Verifier {
    /// Begins. The rights in effect are the thread's for good.
    pub(super) fn start(kept: Kept, exactness: Exactness) -> Self {
        let tally = Tally::new(exactness.is_status_approximate());
        let tally = Arc::new(Mutex::new(tally));
        let (go_on, stop) = channel();
        let rounds = Rounds {
            kept,
            exactness,
            tally: Arc::clone(&tally),
            stop,
        };
        Self {
            tally,
            go_on: Some(go_on),
            thread: thread::spawn(move || rounds.run()),
        }
    }

    /// What it has found so far.
    pub(super) fn found(&self) -> Verification {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.verification()
    }

    /// Lets it go over who is still there once more, and end.
    pub(super) fn finish_soon(&mut self) {
        self.go_on = None;
    }

    /// Whether it has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

struct Rounds {
    kept: Kept,
    exactness: Exactness,
    tally: Arc<Mutex<Tally>>,
    stop: Receiver<()>,
}

impl Rounds {
    fn run(&self) {
        loop {
            let begun = Instant::now();
            let mut waited = Duration::ZERO;
            for (pid, process) in self.chosen() {
                if self.is_over() {
                    break;
                }
                waited += self.check(pid, &process);
            }
            let worked = begun.elapsed().saturating_sub(waited);
            let rest = EVERY.max(worked * REST);
            if self.stop.recv_timeout(rest) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        for (pid, process) in self.chosen() {
            let _waited = self.check(pid, &process);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Traced processes, one for each address space: its first owner. A child of vfork is in its creator's until its
    /// exec is seen, which is a little after it got its own.
    fn chosen(&self) -> Vec<(u32, TrackedProcess)> {
        let mut owners = BTreeMap::new();
        for (pid, process) in self.kept.running() {
            let (owner, sharers) = owners
                .entry(process.mm_address)
                .or_insert(((pid, process), 0_u32));
            *sharers += 1;
            if process.start_ns < owner.1.start_ns {
                *owner = (pid, process);
            }
        }
        let is_per_thread = self.exactness.is_status_approximate();
        let mut chosen = Vec::new();
        for (owner, sharers) in owners.into_values() {
            if is_per_thread && sharers > 1 {
                self.tally(|tally| tally.skip(Skip::Busy));
            } else {
                chosen.push(owner);
            }
        }
        chosen.sort_unstable_by_key(|(pid, _)| *pid);
        chosen
    }

    /// Compares a process. How long it only waited for what it had seen to settle.
    fn check(&self, pid: u32, process: &TrackedProcess) -> Duration {
        let is_approximate = self.tally(|tally| tally.is_approximate());
        let look = || look(&self.kept, self.exactness, (pid, process), is_approximate);
        let first = match look() {
            Ok(first) => first,
            Err(why) => {
                self.tally(|tally| tally.skip(why));
                return Duration::ZERO;
            }
        };
        let mut waited = Duration::ZERO;
        let settled = settle(first.point, is_approximate, |delay| {
            thread::sleep(delay);
            waited += delay;
            // Before, so that nothing can have begun meanwhile that isn't seen in the maps.
            let is_asleep = is_asleep(pid);
            look().map(|look| (look.point, is_asleep))
        });
        self.tally(|tally| {
            if first.is_refused {
                tally.skip(Skip::Refused);
            }
            tally.add_settled(&settled);
        });
        waited
    }

    fn tally<T>(&self, act: impl FnOnce(&mut Tally) -> T) -> T {
        act(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
