//! The recorded command as a child process, and its end.

use std::mem::MaybeUninit;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::runtime::Runtime;

use super::signals::Signals;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// As `wait` gives it.
    pub(super) status: u32,
    /// `ru_maxrss`: highest RSS of it or of a descendant that was reaped, bytes.
    pub(super) max_rss_bytes: u64,
}

/// The command after the recording: ended, or still at work if the recording was to end before it.
pub struct Running(State);

enum State {
    None,
    Ended(u32),
    Still {
        runtime: Runtime,
        signals: Box<Signals>,
        pid: Pid,
    },
}

impl Running {
    /// Nothing was started.
    pub(super) fn none() -> Self {
        Self(State::None)
    }

    pub(super) fn ended(status: u32) -> Self {
        Self(State::Ended(status))
    }

    pub(super) fn still(runtime: Runtime, signals: Signals, pid: Pid) -> Self {
        Self(State::Still {
            runtime,
            signals: Box::new(signals),
            pid,
        })
    }

    /// Waits for the command's end, passing signals on as while recording; its status as `wait` gives it, or 0 if there
    /// was no command.
    pub fn wait(self) -> u32 {
        match self.0 {
            State::None => 0,
            State::Ended(status) => status,
            State::Still {
                runtime,
                mut signals,
                pid,
            } => runtime.block_on(wait(&mut signals, pid)),
        }
    }
}

async fn wait(signals: &mut Signals, pid: Pid) -> u32 {
    loop {
        // It may have ended before: the signal that tells of it is taken once.
        if let Some(end) = ended(pid) {
            return end.status;
        }
        tokio::select! {
            _ = signals.child.recv() => {}
            _ = signals.interrupt.recv() => {}
            _ = signals.quit.recv() => {}
            _ = signals.terminate.recv() => pass_on(pid, Signal::SIGTERM),
            _ = signals.hangup.recv() => pass_on(pid, Signal::SIGHUP),
        }
    }
}

/// The command's end, if it has ended.
///
/// Not by nix, which refuses a status with a real-time signal after it has reaped the process.
#[expect(unsafe_code, reason = "the raw status is what is wanted")]
pub(super) fn ended(pid: Pid) -> Option<End> {
    let mut status = 0;
    let mut usage = MaybeUninit::<nix::libc::rusage>::zeroed();
    // SAFETY: a system call that writes one number and one struct of numbers, for which zero is a value.
    let (reaped, usage) = unsafe {
        let options = nix::libc::WNOHANG;
        let reaped = nix::libc::wait4(pid.as_raw(), &raw mut status, options, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    (reaped == pid.as_raw()).then(|| End {
        status: status.unsigned_abs(),
        // The kernel counts KiB.
        max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    })
}

/// Passes a signal on to the command.
pub(super) fn pass_on(pid: Pid, signal: Signal) {
    // It may be gone already.
    let _gone = kill(pid, signal);
}
