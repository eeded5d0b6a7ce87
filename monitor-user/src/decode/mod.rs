//! Ring-buffer records to events.
//!
//! Nothing here trusts the length or the content of a record: what can't be read is counted.

mod environment;
mod exec;
mod records;
mod refusal;
mod title;
mod usage;
mod watch;

use std::collections::HashMap;

use monitor_ebpf::abi::{Header, Kind};
use zerocopy::FromBytes;

pub use self::watch::{call_name, wait_state};
use self::{
    environment::{Environments, Taken},
    exec::PendingExec,
};
use crate::event::{Event, Kept};

/// Turns records into events. Keeps the execs whose argument list hasn't arrived whole.
pub struct Decoder {
    page_size: u64,
    pending: HashMap<u32, PendingExec>,
    environments: Environments,
    malformed: u64,
}

impl Decoder {
    /// A decoder for a kernel with pages of that many bytes. Of environments it lets only those variables through.
    pub fn new(page_size: u64, kept: Kept) -> Self {
        Self {
            page_size,
            pending: HashMap::new(),
            environments: Environments::new(kept),
            malformed: 0,
        }
    }

    /// Takes one record; hands the events that are whole now to `sink`: none, one or two.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Event)) {
        let Ok((header, _)) = Header::read_from_prefix(bytes) else {
            self.malformed += 1;
            return;
        };
        let decoded = match header.kind {
            Kind::EXEC => match PendingExec::begin(bytes, self.page_size) {
                Some(exec) if exec.is_whole() => Some(exec.finish()),
                Some(exec) => {
                    // One that is still there lost the rest of its arguments.
                    if let Some(earlier) = self.pending.insert(header.pid, exec) {
                        sink(earlier.finish());
                    }
                    return;
                }
                None => None,
            },
            Kind::ARGS => {
                self.more_arguments(&header, bytes, sink);
                return;
            }
            Kind::ENV => match self.environments.push(bytes) {
                Taken::Whole(event) => Some(*event),
                Taken::Nothing => return,
                Taken::Malformed => None,
            },
            _ => records::decode(&header, bytes, self.page_size),
        };
        if header.kind == Kind::EXIT {
            self.environments.forget(header.pid);
        }
        // Whatever else a process does comes after its exec.
        if let Some(earlier) = self.pending.remove(&header.pid) {
            sink(earlier.finish());
        }
        match decoded {
            Some(event) => sink(event),
            None => self.malformed += 1,
        }
    }

    /// Hands out the execs from before `limit_ns` that still wait for arguments: the pieces of one
    /// list come together, so what is missing then was lost.
    pub fn give_up_before(&mut self, limit_ns: u64, sink: impl FnMut(Event)) {
        if self.pending.values().any(|exec| exec.time_ns() < limit_ns) {
            self.hand_out(|exec| exec.time_ns() < limit_ns, sink);
        }
    }

    /// Hands out all execs that still wait: nothing comes any more.
    pub fn finish(&mut self, sink: impl FnMut(Event)) {
        self.hand_out(|_| true, sink);
    }

    fn hand_out(&mut self, is_due: impl Fn(&PendingExec) -> bool, sink: impl FnMut(Event)) {
        let due = self.pending.extract_if(|_, exec| is_due(exec));
        let mut events: Vec<_> = due.map(|(_, exec)| exec.finish()).collect();
        events.sort_by_key(|event| event.time_ns);
        events.into_iter().for_each(sink);
    }

    /// Records that couldn't be read.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn more_arguments(&mut self, header: &Header, bytes: &[u8], mut sink: impl FnMut(Event)) {
        let Some(exec) = self
            .pending
            .get_mut(&header.pid)
            .filter(|exec| exec.time_ns() == header.time_ns)
        else {
            // The exec itself was lost, and counted in the kernel.
            return;
        };
        if !exec.extend(bytes) {
            self.malformed += 1;
        }
        if exec.is_whole()
            && let Some(exec) = self.pending.remove(&header.pid)
        {
            sink(exec.finish());
        }
    }
}

#[cfg(test)]
mod tests;
