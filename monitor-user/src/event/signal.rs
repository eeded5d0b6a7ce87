//! Signals.

use crate::units::ProcessKey;

/// A signal was sent to the subject, a thread. Those that nobody dies of (SIGCHLD, SIGURG, SIGWINCH), those that the
/// receiver ignores, and the kernel's own that it handles aren't told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// The signal.
    pub signal: u32,
    /// `si_code`, where it was sent with one.
    pub code: Option<i32>,
    /// Who sent it.
    pub sender: Sender,
    /// For the whole process; else for the one thread.
    pub for_process: bool,
}

/// Who sent a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// Of which kind.
    pub kind: SenderKind,
    /// Process that sent it; `None` for the kernel.
    pub process: Option<ProcessKey>,
    /// Its thread.
    pub tid: Option<u32>,
    /// Name of that thread; empty for the kernel.
    pub comm: Vec<u8>,
}

/// Kind of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderKind {
    /// A process: kill, tgkill, a pidfd, raise.
    User,
    /// The kernel: faults, limits, memory, terminals, timers.
    #[default]
    Kernel,
}

impl SenderKind {
    /// Its word in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }

    /// The one of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::Kernel]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}
