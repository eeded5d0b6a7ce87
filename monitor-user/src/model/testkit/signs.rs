//! What else can be told in a story: signals, failed calls, waits.

use super::story::{MS, Story};
use crate::event::{
    ExecFailed, ForkFailed, Moved, RefusedBy, Sender, SenderKind, Signal, Sleep, WaitState, What,
};

impl Story {
    /// Process `from` sends a signal to process `to`, as kill does.
    pub fn signal(&mut self, from: u32, to: u32, signal: u32) -> &mut Self {
        let sender = self.actor(from);
        let signal = Signal {
            signal,
            code: Some(0),
            for_process: true,
            sender: Sender {
                kind: SenderKind::User,
                process: Some(sender.key),
                tid: Some(from),
                comm: sender.comm,
            },
        };
        self.tell(to, to, What::Signal(signal))
    }

    /// The kernel sends a signal to a process.
    pub fn kernel_signal(&mut self, to: u32, signal: u32) -> &mut Self {
        let signal = Signal {
            signal,
            for_process: true,
            ..Signal::default()
        };
        self.tell(to, to, What::Signal(signal))
    }

    /// A call of exec fails.
    pub fn exec_failed(&mut self, pid: u32, errno: u32, path: &str) -> &mut Self {
        let filename = path.as_bytes().to_vec();
        let failed = ExecFailed { errno, filename };
        self.tell(pid, pid, What::ExecFailed(failed))
    }

    /// A call of fork fails, why isn't known.
    pub fn fork_failed(&mut self, pid: u32, errno: u32) -> &mut Self {
        let failed = ForkFailed {
            errno,
            ..ForkFailed::default()
        };
        self.tell(pid, pid, What::ForkFailed(failed))
    }

    /// A call of fork fails with EAGAIN, since this limit was reached.
    pub fn fork_refused(
        &mut self,
        pid: u32,
        by: RefusedBy,
        limit: u64,
        cgroup: Option<&str>,
    ) -> &mut Self {
        let failed = ForkFailed {
            errno: 11,
            refused_by: Some(by),
            limit: Some(limit),
            cgroup: cgroup.map(str::to_owned),
        };
        self.tell(pid, pid, What::ForkFailed(failed))
    }

    /// A thread runs again after it has waited for `ms` milliseconds in a system call.
    pub fn slept(&mut self, pid: u32, tid: u32, ms: u64, call: &str) -> &mut Self {
        self.wait(pid, tid, ms, (WaitState::Sleeping, Some(call), false))
    }

    /// A process runs again after a signal had stopped it for `ms` milliseconds.
    pub fn stopped(&mut self, pid: u32, ms: u64) -> &mut Self {
        self.add_stop(pid, ms * MS);
        self.wait(pid, pid, ms, (WaitState::Stopped, None, false))
    }

    /// The recorder finds a thread at the end of the recording that has waited for `ms` milliseconds.
    pub fn waits_on(&mut self, pid: u32, tid: u32, ms: u64, call: &str) -> &mut Self {
        self.wait(pid, tid, ms, (WaitState::Sleeping, Some(call), true))
    }

    /// A process makes a session of its own.
    pub fn setsid(&mut self, pid: u32) -> &mut Self {
        self.tell(pid, pid, What::Session(pid))
    }

    /// A process is moved to another control group.
    pub fn moved(&mut self, pid: u32, path: &str) -> &mut Self {
        let moved = Moved {
            hierarchy: Some(0),
            path: path.as_bytes().to_vec(),
        };
        self.tell(pid, pid, What::Moved(moved))
    }

    fn wait(
        &mut self,
        pid: u32,
        tid: u32,
        ms: u64,
        (state, call, still): (WaitState, Option<&str>, bool),
    ) -> &mut Self {
        let sleep = Sleep {
            since_ns: self.now_ns().saturating_sub(ms * MS),
            state,
            call: call.map(str::to_owned),
            still,
        };
        self.tell(pid, tid, What::Sleep(sleep))
    }
}
