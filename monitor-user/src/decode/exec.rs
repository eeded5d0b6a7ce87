//! An exec record and the pieces of its argument list.

use monitor_ebpf::abi::{ARGS_CHUNK, ARGS_CHUNKS, ArgsRecord, Cwd, ExecRecord, Header};
use zerocopy::FromBytes;

use super::records::{address_space, event, memory, text};
use crate::event::{Directory, Event, Exec, What};

/// An exec whose arguments are still coming.
pub(super) struct PendingExec {
    header: Header,
    exec: Exec,
    arguments: Vec<u8>,
    /// Nothing more will fit or come: the kernel side has sent all it sends.
    expected: usize,
}

impl PendingExec {
    /// Reads an exec record; `None` if its lengths don't fit.
    pub(super) fn begin(bytes: &[u8], page_size: u64) -> Option<Self> {
        let (record, data) = ExecRecord::read_from_prefix(bytes).ok()?;
        let (cwd, data) = data.split_at_checked(record.cwd_len as usize)?;
        let (filename, data) = data.split_at_checked(record.filename_len as usize)?;
        let arguments = data.get(..record.args_len as usize)?;
        let total = record.args_total as usize;
        let most = arguments.len() + ARGS_CHUNK * ARGS_CHUNKS;
        // Nothing in the first record means that the list couldn't be read at all.
        let expected = if arguments.is_empty() {
            0
        } else {
            total.min(most)
        };
        Some(Self {
            header: record.header,
            exec: Exec {
                filename: filename.to_vec(),
                argv_bytes: total as u64,
                comm: text(&record.comm),
                old_tid: record.old_tid,
                mm: address_space(record.mm),
                old_mm: address_space(record.old_mm),
                memory: memory(&record.memory, page_size),
                cwd: directory(cwd, record.cwd_flags),
                ..Exec::default()
            },
            arguments: arguments.to_vec(),
            expected,
        })
    }

    pub(super) fn time_ns(&self) -> u64 {
        self.header.time_ns
    }

    /// Takes another piece; whether it was well formed. A gap before it ends the list there.
    pub(super) fn extend(&mut self, bytes: &[u8]) -> bool {
        let Ok((record, data)) = ArgsRecord::read_from_prefix(bytes) else {
            return false;
        };
        let Some(piece) = data.get(..record.args_len as usize) else {
            return false;
        };
        if record.offset as usize == self.arguments.len() {
            self.arguments.extend_from_slice(piece);
        } else {
            self.expected = self.arguments.len();
        }
        true
    }

    pub(super) fn is_whole(&self) -> bool {
        self.arguments.len() >= self.expected
    }

    /// The event, with as many arguments as have come.
    pub(super) fn finish(mut self) -> Event {
        self.exec.argv_truncated = (self.arguments.len() as u64) < self.exec.argv_bytes;
        let list = self
            .arguments
            .strip_suffix(b"\0")
            .unwrap_or(&self.arguments);
        if !self.arguments.is_empty() {
            self.exec.argv = list.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        }
        event(&self.header, What::Exec(self.exec))
    }
}

/// A path from names of folders, from the innermost one outwards, each with its NUL.
fn directory(names: &[u8], flags: u32) -> Option<Directory> {
    if flags & Cwd::UNKNOWN != 0 {
        return None;
    }
    let is_cut = flags & Cwd::CUT != 0;
    let names = names.strip_suffix(b"\0").unwrap_or(names);
    let mut folders: Vec<&[u8]> = names.split(|byte| *byte == 0).collect();
    folders.reverse();
    let mut path = folders.join(&b'/');
    if !is_cut {
        path.insert(0, b'/');
    }
    Some(Directory {
        path,
        is_cut,
        is_deleted: flags & Cwd::DELETED != 0,
        is_unreachable: flags & Cwd::UNREACHABLE != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_from_the_innermost_outwards() {
        let path = |names: &[u8], flags| directory(names, flags).map(|cwd| cwd.path);
        assert_eq!(path(b"c\0b \xff\0a\0", 0), Some(b"/a/b \xff/c".to_vec()));
        assert_eq!(path(b"c\0b\0", Cwd::CUT), Some(b"b/c".to_vec()));
        assert_eq!(path(b"", 0), Some(b"/".to_vec()));
        assert_eq!(path(b"a\0", Cwd::UNKNOWN), None);
    }

    #[test]
    fn what_else_there_is_to_say_is_kept() {
        let said = |flags| {
            let cwd = directory(b"a\0", flags).unwrap();
            (cwd.is_cut, cwd.is_deleted, cwd.is_unreachable)
        };
        assert_eq!(said(0), (false, false, false));
        assert_eq!(said(Cwd::DELETED), (false, true, false));
        assert_eq!(said(Cwd::UNREACHABLE | Cwd::DELETED), (false, true, true));
        assert_eq!(said(Cwd::CUT), (true, false, false));
    }
}
