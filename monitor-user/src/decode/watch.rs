//! Signals, failed calls, threads that wait.

use monitor_ebpf::abi::{PathRecord, SignalInfo, SignalRecord, SleepRecord, TaskState};
use syscalls::Sysno;
use zerocopy::FromBytes;

use super::records::{process, text};
use crate::event::{ExecFailed, Moved, Sender, SenderKind, Signal, Sleep, WaitState};

/// Codes up to 0 with which processes send signals (`include/uapi/asm-generic/siginfo.h`): kill, sigqueue, tgkill.
const BY_USER: [i32; 3] = [0, -1, -6];

pub(super) fn signal(record: &SignalRecord) -> Signal {
    let code = (record.info == SignalInfo::CODE).then_some(record.code);
    let is_by_user = code.is_some_and(|code| BY_USER.contains(&code));
    let sender = if is_by_user {
        Sender {
            kind: SenderKind::User,
            process: process(record.current_pid, record.current_start_ns),
            tid: Some(record.current_tid),
            comm: text(&record.current_comm),
        }
    } else {
        Sender::default()
    };
    Signal {
        signal: record.signal,
        code,
        sender,
        for_process: record.group != 0,
    }
}

pub(super) fn sleep(record: &SleepRecord) -> Sleep {
    Sleep {
        since_ns: record.since_ns,
        state: wait_state(record.state),
        call: call_name(record.call),
        still: false,
    }
}

/// How a thread waits whose state has these bits ([`TaskState`]).
pub fn wait_state(bits: u32) -> WaitState {
    if bits & TaskState::TRACED != 0 {
        WaitState::Traced
    } else if bits & TaskState::STOPPED != 0 {
        WaitState::Stopped
    } else if bits & TaskState::UNINTERRUPTIBLE != 0 {
        WaitState::Uninterruptible
    } else {
        WaitState::Sleeping
    }
}

/// Name of a system call of this machine; `None` for `u32::MAX`, which stands for none, and for one that isn't
/// known.
pub fn call_name(number: u32) -> Option<String> {
    let number = Some(number).filter(|number| *number != u32::MAX)?;
    Sysno::new(number as usize).map(|call| call.name().to_owned())
}

pub(super) fn exec_failed(bytes: &[u8]) -> Option<ExecFailed> {
    let (record, filename) = path(bytes)?;
    Some(ExecFailed {
        errno: record.number,
        filename,
    })
}

pub(super) fn moved(bytes: &[u8]) -> Option<Moved> {
    let (record, path) = path(bytes)?;
    Some(Moved {
        hierarchy: (record.number != u32::MAX).then_some(record.number),
        path,
    })
}

fn path(bytes: &[u8]) -> Option<(PathRecord, Vec<u8>)> {
    let (record, data) = PathRecord::read_from_prefix(bytes).ok()?;
    let path = data.get(..record.path_len as usize)?;
    Some((record, path.to_vec()))
}
