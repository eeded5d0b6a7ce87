//! `sched_process_exec`: images, with their file name and argument list.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use monitor_ebpf::abi::{
    ARGS_CHUNK, ARGS_CHUNKS, ArgsRecord, EXEC_DATA, ExecRecord, FILENAME_MAX, Kind, Rescue,
    TrackedProcess,
};

use crate::{
    address_space::{bind, find},
    charge,
    emit::{Subject, fill_header, now, output, output_piece},
    filter,
    kernel::{Task, exec_filename, exec_old_tid, read_string, read_user},
    maps::SCRATCH,
    pass::Pass,
    preempt::undisturbed,
    switch,
};

/// Most argument bytes in the first record.
const FIRST_ARGS: u32 = 4 * 1024;

/// Most bytes of a working directory. A power of two less one: it masks the length.
const CWD_MAX: u32 = 4095;

/// Room for one record with its bytes.
#[repr(C)]
pub(crate) struct Scratch {
    exec: ExecRecord,
    exec_data: [u8; EXEC_DATA],
    args: ArgsRecord,
    args_data: [u8; ARGS_CHUNK],
}

const _: () = assert!(CWD_MAX as usize + FILENAME_MAX + 1 + FIRST_ARGS as usize <= EXEC_DATA);

/// A process runs another program. Last step of exec: name and address space are the new ones, and
/// the pages of the argument list were just written, so they can be read.
#[btf_tracepoint(function = "sched_process_exec")]
pub(crate) fn sched_process_exec(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| exec(&ctx, Pass::First))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_exec")]
pub(crate) fn sched_process_exec_again(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| exec(&ctx, Pass::Second))
}

/// See [`crate::pass`].
#[btf_tracepoint(function = "sched_process_exec")]
pub(crate) fn sched_process_exec_last(ctx: BtfTracePointContext) -> i32 {
    undisturbed(|| exec(&ctx, Pass::Third))
}

#[inline(always)]
fn exec(ctx: &BtfTracePointContext, pass: Pass) -> i32 {
    let task = Task::argument::<0>(ctx);
    let pid = task.pid();
    let Some(process) = filter::of_thread(task) else {
        return 0;
    };
    let Some(scratch) = SCRATCH.get_ptr_mut(pass as u32) else {
        return 0;
    };
    let space = task.mm();
    if pass != Pass::First {
        // An exec gives a new address space. If it is known as this process's, it was reported.
        let known = find(space);
        // SAFETY: map values.
        if known.is_some_and(|known| unsafe { (*known).id == (*process).mm }) {
            return 0;
        }
        pass.count_rescue(Rescue::EXEC);
    }
    // Before there is much else to remember: each way through it is one more for the verifier to follow to the end.
    // SAFETY: this CPU's room.
    unsafe {
        let record = &raw mut (*scratch).exec;
        task.read_directory(
            (&raw mut (*scratch).exec_data).cast(),
            &raw mut (*record).cwd_len,
            &raw mut (*record).cwd_flags,
        );
    }
    let mm = bind(space, true, false);
    // SAFETY: a map value.
    let old_mm = unsafe {
        let old = (*process).mm;
        (*process).mm = mm;
        (*process).mm_address = space.address();
        if (*process).flags & TrackedProcess::PENDING != 0 {
            // The recorder knows its child's pid only; /proc gives starts in ticks.
            (*process).start_ns = task.start_ns();
            (*process).flags &= !TrackedProcess::PENDING;
            charge::fix(task);
        } else {
            charge::note();
        }
        old
    };
    let old_tid = exec_old_tid(ctx);
    // Whoever calls exec goes on as the first thread; a root begins here.
    if old_tid != pid {
        switch::forget(old_tid);
    }
    switch::enter_running(pid, pid);
    let time_ns = now();
    let subject = filter::subject(process, pid, task.tid());
    let (start, end) = space.arguments();
    let total = end.wrapping_sub(start) as u32;
    // SAFETY: per-CPU room of this program; the verifier checks every access to it.
    unsafe {
        let record = &raw mut (*scratch).exec;
        let cwd_len = (&raw const (*record).cwd_len).read_volatile() & CWD_MAX;
        let data = (&raw mut (*scratch).exec_data).cast::<u8>();
        let data = data.add(cwd_len as usize);
        let with_nul = read_string(exec_filename(ctx), data, FILENAME_MAX as u32 + 1);
        let filename_len = with_nul.saturating_sub(1) & FILENAME_MAX as u32;
        let wanted = if total > FIRST_ARGS {
            FIRST_ARGS
        } else {
            total
        };
        let first = data.add(filename_len as usize);
        let args_len = if read_user(start, first, wanted) {
            wanted
        } else {
            0
        };
        (*record).mm = mm;
        (*record).old_mm = old_mm;
        (*record).memory = space.memory();
        task.read_comm(&raw mut (*record).comm);
        (*record).old_tid = old_tid;
        (*record).args_total = total;
        (*record).filename_len = filename_len;
        (*record).args_len = args_len;
        let bare = size_of::<ExecRecord>() as u32 + filename_len + cwd_len;
        let size = bare + args_len;
        fill_header(record.cast(), Kind::EXEC, size, time_ns, subject);
        if !output(Kind::ARGS, record.cast(), size) {
            // No room for the arguments: that the program changed matters more than with what.
            (*record).args_len = 0;
            fill_header(record.cast(), Kind::EXEC, bare, time_ns, subject);
            output(Kind::EXEC, record.cast(), bare);
        } else if args_len == FIRST_ARGS {
            more_arguments(scratch, start, total, time_ns, subject);
        }
    }
    0
}

/// Sends the rest of a long argument list in pieces.
///
/// Each turn either sends a full piece and goes on, or returns, and no turn decides anything else:
/// the paths that the verifier follows then add up, where they would multiply.
///
/// # Safety
/// `scratch` is this CPU's room.
#[inline(always)]
unsafe fn more_arguments(
    scratch: *mut Scratch,
    start: u64,
    total: u32,
    time_ns: u64,
    subject: Subject,
) {
    let mut offset = FIRST_ARGS;
    for _ in 0..ARGS_CHUNKS {
        if total < offset + ARGS_CHUNK as u32 {
            if total > offset {
                // SAFETY: see above.
                unsafe {
                    send_piece(
                        scratch,
                        start,
                        offset,
                        bounded(total - offset),
                        time_ns,
                        subject,
                    )
                };
            }
            return;
        }
        // SAFETY: see above.
        if !unsafe { send_piece(scratch, start, offset, ARGS_CHUNK as u32, time_ns, subject) } {
            return;
        }
        offset += ARGS_CHUNK as u32;
    }
}

/// The same number, known to be below [`ARGS_CHUNK`] to the verifier too: the compiler knows it
/// already and would leave the mask out, and compares in a way that the verifier can't follow.
#[inline(always)]
pub(crate) fn bounded(mut size: u32) -> u32 {
    // SAFETY: no instruction at all; it makes the compiler forget what it knows of the number.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) size, options(nomem, nostack, preserves_flags))
    };
    size & (ARGS_CHUNK as u32 - 1)
}

/// Sends `size` bytes, at most [`ARGS_CHUNK`], from `offset` on; whether that worked.
///
/// # Safety
/// `scratch` is this CPU's room.
#[inline(always)]
unsafe fn send_piece(
    scratch: *mut Scratch,
    start: u64,
    offset: u32,
    size: u32,
    time_ns: u64,
    subject: Subject,
) -> bool {
    // SAFETY: per-CPU room of this program; the verifier checks every access to it.
    unsafe {
        let record = &raw mut (*scratch).args;
        let data = (&raw mut (*scratch).args_data).cast::<u8>();
        if !read_user(start + u64::from(offset), data, size) {
            return false;
        }
        (*record).offset = offset;
        (*record).args_len = size;
        let length = size_of::<ArgsRecord>() as u32 + size;
        fill_header(record.cast(), Kind::ARGS, length, time_ns, subject);
        output_piece(Kind::ARGS, record.cast(), length)
    }
}
