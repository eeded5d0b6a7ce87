//! Decoded, owned events: what flows from the kernel (or a trace file) into trace and model.
//!
//! Memory is in bytes here, times are ns since boot (`CLOCK_BOOTTIME`), ids are those of the
//! recorder's pid namespace. `None` always means "not known", never zero.

mod call;
mod charge;
mod conditions;
mod container;
mod directory;
mod environment;
mod group;
mod memory;
mod oom;
mod process;
mod recording;
mod signal;
mod title;
mod verification;
mod wait;

pub use call::{ExecFailed, ForkFailed, Moved, RefusedBy};
pub use charge::{Charge, ChargeScope, ChargeSplit};
pub use conditions::{Conditions, HeldLimit, Ulimit};
pub use container::Container;
pub use directory::Directory;
pub use environment::{Environment, Kept, RANKS};
pub use group::RecordedGroup;
pub use memory::{Churn, Memory, MmEnd, Parts};
pub use oom::{Oom, OomScope};
pub use process::{Exec, Exit, Fork, Found, Loss, Reaped, Snapshot, Thread, ThreadExit, Usage};
pub use recording::Recording;
pub use signal::{Sender, SenderKind, Signal};
pub use title::Title;
pub use verification::{Compared, Difference, Skipped, Verification};
pub use wait::{Sleep, WaitState};

use crate::units::ProcessKey;

/// Number of an address space, unique in a recording.
pub type Mm = u64;

/// Whom an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The process.
    pub process: ProcessKey,
    /// The thread.
    pub tid: u32,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, ns since boot.
    pub time_ns: u64,
    /// On which CPU.
    pub cpu: u16,
    /// Whom it is about. `None` where the kernel can't know yet or any more: memory that somebody
    /// else changed, or memory of a child that has no pid yet.
    pub subject: Option<Subject>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The subject, a process, was created.
    Fork(Fork),
    /// The subject, a thread, was created.
    Thread(Thread),
    /// The subject became another program.
    Exec(Exec),
    /// The subject's name changed to these bytes (`prctl`, `pthread_setname_np`).
    Rename(Vec<u8>),
    /// The subject, a thread, ended and left others behind.
    ThreadExit(ThreadExit),
    /// The subject, the last thread of its process, ended.
    Exit(Exit),
    /// The subject, a process, was reaped by its parent.
    Reaped(Reaped),
    /// State of an address space after a change.
    Memory {
        /// The address space.
        mm: Mm,
        /// Its state.
        now: Memory,
        /// What it consists of; `None` in traces of before version 1.1.
        parts: Option<Parts>,
        /// What has happened to its anonymous pages; `None` in traces of before version 1.2.
        churn: Option<Churn>,
        /// CPU time of the subject, a thread, so far, ns; up to one tick less than the truth.
        cpu_ns: Option<u64>,
        /// What the memory controller charges the command's control group then, bytes, by whomever it is used.
        charge: Option<u64>,
    },
    /// An address space was torn down.
    MmEnd(MmEnd),
    /// The recorder looked at a process itself, at the beginning or the end of the recording.
    Snapshot(Snapshot),
    /// What the subject's new program got of its environment.
    Environment(Environment),
    /// The subject, a process, was seen to have written over its arguments.
    Title(Title),
    /// Events were lost since the last event of this kind.
    Loss(Loss),
    /// The OOM killer chose the subject, a process, and has sent it SIGKILL.
    Oom(Oom),
    /// A signal was sent to the subject.
    Signal(Signal),
    /// A call of exec by the subject failed.
    ExecFailed(ExecFailed),
    /// A call of fork, vfork or clone by the subject failed.
    ForkFailed(ForkFailed),
    /// The subject, a thread, has waited for long.
    Sleep(Sleep),
    /// The subject made a session of its own, of this number.
    Session(u32),
    /// The subject, a process, was moved to another control group.
    Moved(Moved),
}
