//! `sched_process_exec` once more: the environment that the new program begins with.
//!
//! A program of its own: what the verifier has to look at in [`crate::exec`] doesn't grow by it.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{ENV_CHUNK, ENV_CHUNKS, EnvRecord, Kind, TrackedProcess};

use crate::{
    emit::{Subject, fill_header, now, output_piece},
    exec::bounded,
    filter,
    kernel::{Task, read_user},
    maps::ENV_SCRATCH,
    preempt::undisturbed,
    title,
};

/// Room for one piece.
#[repr(C)]
pub(crate) struct Scratch {
    record: EnvRecord,
    data: [u8; ENV_CHUNK],
}

/// A process runs another program; the exec itself was reported just before.
#[btf_tracepoint(function = "sched_process_exec")]
pub(crate) fn sched_process_exec_env(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| environment(&ctx))
}

#[inline(always)]
fn environment(ctx: &BtfTracePointContext) -> i32 {
    let task = Task::argument::<0>(ctx);
    let pid = task.pid();
    let Some(process) = filter::entry(pid) else {
        return 0;
    };
    if filter::flags(process) & (TrackedProcess::PENDING | TrackedProcess::DEAD) != 0 {
        return 0;
    }
    title::remember();
    let Some(scratch) = ENV_SCRATCH.get_ptr_mut(0) else {
        return 0;
    };
    let (start, end) = task.mm().environment();
    let total = end.wrapping_sub(start) as u32;
    let subject = filter::subject(process, pid, task.tid());
    // SAFETY: this CPU's room.
    unsafe { send(scratch, start, total, subject) };
    0
}

/// Sends it in pieces. The turns are as in `exec.rs`, for the verifier's sake.
///
/// # Safety
/// `scratch` is this CPU's room.
#[inline(always)]
unsafe fn send(scratch: *mut Scratch, start: u64, total: u32, subject: Subject) {
    let time_ns = now();
    let mut offset = 0_u32;
    for _ in 0..ENV_CHUNKS {
        if total < offset + ENV_CHUNK as u32 {
            // The last one may be empty: it tells that there is nothing more.
            let size = bounded(total - offset);
            // SAFETY: see above.
            unsafe { piece(scratch, start, (offset, total), size, time_ns, subject) };
            return;
        }
        // SAFETY: see above.
        let is_sent = unsafe {
            let size = ENV_CHUNK as u32;
            piece(scratch, start, (offset, total), size, time_ns, subject)
        };
        if !is_sent {
            return;
        }
        offset += ENV_CHUNK as u32;
    }
}

/// Sends `size` bytes, at most [`ENV_CHUNK`], from `offset` on; whether that worked.
///
/// # Safety
/// `scratch` is this CPU's room.
#[inline(always)]
unsafe fn piece(
    scratch: *mut Scratch,
    start: u64,
    (offset, total): (u32, u32),
    size: u32,
    time_ns: u64,
    subject: Subject,
) -> bool {
    // SAFETY: per-CPU room of this program; the verifier checks every access to it.
    unsafe {
        let record = &raw mut (*scratch).record;
        let data = (&raw mut (*scratch).data).cast::<u8>();
        if !read_user(start + u64::from(offset), data, size) {
            return false;
        }
        (*record).offset = offset;
        (*record).env_total = total;
        (*record).env_len = size;
        (*record).reserved = 0;
        let length = size_of::<EnvRecord>() as u32 + size;
        fill_header(record.cast(), Kind::ENV, length, time_ns, subject);
        output_piece(Kind::ENV, record.cast(), length)
    }
}
