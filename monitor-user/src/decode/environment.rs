//! Pieces of environments, of which only the values of a short list of names go on from here.

use std::collections::HashMap;

use monitor_ebpf::abi::{ENV_CHUNK, ENV_CHUNKS, EnvRecord, Header};
use zerocopy::FromBytes;

use super::records::event;
use crate::event::{Environment, Event, Kept, What};

/// Environments of which pieces are still to come, by process id.
#[derive(Default)]
pub(super) struct Environments {
    kept: Kept,
    pending: HashMap<u32, Pending>,
}

/// What became of a piece.
pub(super) enum Taken {
    /// It was the last one.
    Whole(Box<Event>),
    /// More are to come, or it is of no use.
    Nothing,
    /// It can't be read.
    Malformed,
}

struct Pending {
    header: Header,
    bytes: Vec<u8>,
}

impl Environments {
    pub(super) fn new(kept: Kept) -> Self {
        Self {
            kept,
            pending: HashMap::new(),
        }
    }

    /// Takes a piece.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Taken {
        let Ok((record, data)) = EnvRecord::read_from_prefix(bytes) else {
            return Taken::Malformed;
        };
        let Some(piece) = data.get(..record.env_len as usize) else {
            return Taken::Malformed;
        };
        let pid = record.header.pid;
        let mut pending = if record.offset == 0 {
            self.pending.remove(&pid);
            Pending {
                header: record.header,
                bytes: Vec::new(),
            }
        } else {
            let known = self.pending.remove(&pid);
            let fits = |p: &Pending| {
                p.header.time_ns == record.header.time_ns && p.bytes.len() == record.offset as usize
            };
            // Without those before, which were lost and counted in the kernel, it says nothing.
            let Some(pending) = known.filter(fits) else {
                return Taken::Nothing;
            };
            pending
        };
        pending.bytes.extend_from_slice(piece);
        let total = record.env_total as usize;
        let is_last = piece.len() < ENV_CHUNK || pending.bytes.len() >= ENV_CHUNK * ENV_CHUNKS;
        if is_last {
            let is_whole = pending.bytes.len() >= total;
            let values = self.values(&pending.bytes, is_whole);
            let environment = Environment { values, is_whole };
            let event = event(&pending.header, What::Environment(environment));
            return Taken::Whole(Box::new(event));
        }
        self.pending.insert(pid, pending);
        Taken::Nothing
    }

    /// A process has ended: nothing more comes of it.
    pub(super) fn forget(&mut self, pid: u32) {
        self.pending.remove(&pid);
    }

    /// Those that are kept. What comes last may be cut if it isn't the whole.
    fn values(&self, bytes: &[u8], is_whole: bool) -> Vec<Vec<u8>> {
        let end = match bytes.iter().rposition(|byte| *byte == 0) {
            Some(last) if !is_whole => last,
            _ => bytes.len(),
        };
        let strings = bytes
            .get(..end)
            .unwrap_or_default()
            .split(|byte| *byte == 0);
        let is_kept = |string: &&[u8]| {
            let equals = string.iter().position(|byte| *byte == b'=');
            equals
                .and_then(|at| string.get(..at))
                .is_some_and(|name| self.kept.contains(name))
        };
        strings.filter(is_kept).map(<[u8]>::to_vec).collect()
    }
}
