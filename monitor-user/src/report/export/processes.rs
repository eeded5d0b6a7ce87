//! The table of processes.

use super::{
    cell::Cell,
    columns::{Column, columns},
};
use crate::report::{ExitReport, Id, ImageReport, OomReport, ProcessReport, SenderReport};

fn pid(id: Option<Id>) -> Cell {
    id.map(|id| id.pid).into()
}

fn start(id: Option<Id>) -> Cell {
    id.and_then(|id| id.start_ns).into()
}

fn exit<T: Into<Cell>>(
    process: &ProcessReport,
    part: impl FnOnce(&ExitReport) -> Option<T>,
) -> Cell {
    process.exit.as_ref().and_then(part).into()
}

fn sender<T: Into<Cell>>(
    process: &ProcessReport,
    part: impl FnOnce(&SenderReport) -> Option<T>,
) -> Cell {
    let sender = process.exit.as_ref().and_then(|exit| exit.sender.as_ref());
    sender.and_then(part).map_or(Cell::Unknown, Into::into)
}

fn oom<T: Into<Cell>>(process: &ProcessReport, part: impl FnOnce(&OomReport) -> Option<T>) -> Cell {
    process.oom.as_ref().and_then(part).into()
}

/// A row for each process, by start and pid.
pub(super) const COLUMNS: &[Column<ProcessReport>] = &columns! { ProcessReport:
    "pid", "its pid", |p| p.pid.into();
    "start_ns", "when the kernel created it", |p| p.start_ns.into();
    "end_ns", "when its last thread ended; empty also if it was alive at the end", |p| p.end_ns.into();
    "alive_at_end", "whether it was alive when the recording ended", |p| p.alive_at_end.into();
    "program", "what a person would call its last program; empty if it executed none, or that was lost; of an \
        inherited one `comm` tells", |p| p.images.last().and_then(ImageReport::program)
        .as_ref().into();
    "peak_rss_bytes", "highest RSS of its last program; empty also if it used another process's memory",
        |p| p.program_peak_rss_bytes().into();
    "peak_vms_bytes", "largest address space of its last program", |p| p.images.last()
        .and_then(|image| image.peak_vms_bytes).into();
    "images", "how many programs it was; the table of images has them", |p| (p.images.len() as u64).into();
    "comm", "last name of its leader", |p| p.comm.as_ref().into();
    "role", "part that it has in a pool: `worker`, `resource_tracker`, `forkserver` or `manager`", |p| p.role.into();
    "creator_pid", "process that made it", |p| pid(p.creator);
    "creator_start_ns", "when that was created; empty also if it isn't in the table", |p| start(p.creator);
    "creator_from", "`parent_at_end` or `parent_at_start` if the creator isn't from the event of the creation",
        |p| p.creator_from.into();
    "creator_tid", "thread that made it", |p| p.creator_tid.into();
    "creator_threads", "live threads of the creator then", |p| p.creator_threads.into();
    "creator_rss_bytes", "its RSS then", |p| p.creator_rss_bytes.into();
    "creator_vms_bytes", "its address space then", |p| p.creator_vms_bytes.into();
    "creator_page_tables_bytes", "its page tables then", |p| p.creator_page_tables_bytes.into();
    "fork_ns", "how long the call took in the kernel until it had made the process", |p| p.fork_ns.into();
    "final_parent_pid", "parent at its end, or at the end of the recording", |p| pid(p.final_parent);
    "final_parent_start_ns", "when that was created; empty also if it isn't in the table", |p| start(p.final_parent);
    "parents", "all parents, the creator first, each with the time since when; JSON", |p| Cell::json(&p.parents);
    "created_by", "`root`, `fork`, `vfork` or `clone_vm`", |p| p.created_by.into();
    "clone_flags", "names of clone's flags; JSON", |p| p.clone_flags.as_ref().map_or(Cell::Unknown, Cell::json);
    "found_ns", "when it was found, if it was there before the recording began", |p| p.found_ns.into();
    "first_run_ns", "when it first had a CPU", |p| p.first_run_ns.into();
    "threads_created", "threads it made besides its first", |p| p.threads_created.into();
    "threads_max", "most threads alive at once", |p| p.threads_max.into();
    "cpu_ns", "user plus system time of all threads", |p| p.cpu_ns.into();
    "user_ns", "time in user mode", |p| p.user_ns.into();
    "system_ns", "time in the kernel", |p| p.system_ns.into();
    "faults_minor", "page faults that needed nothing from storage", |p| p.faults_minor.into();
    "faults_major", "page faults that had to wait for storage", |p| p.faults_major.into();
    "switches_voluntary", "times that a thread gave up the CPU to wait", |p| p.switches_voluntary.into();
    "switches_involuntary", "times that the CPU was taken from a thread", |p| p.switches_involuntary.into();
    "read_chars", "bytes that system calls read", |p| p.read_chars.into();
    "written_chars", "bytes that system calls wrote", |p| p.written_chars.into();
    "read_bytes", "bytes read from storage", |p| p.read_bytes.into();
    "written_bytes", "bytes to be written to storage", |p| p.written_bytes.into();
    "exit_code", "exit code; empty for a death by signal", |p| exit(p, |e| e.code);
    "exit_signal", "signal that ended it", |p| exit(p, |e| e.signal);
    "exit_core", "whether a core was written", |p| exit(p, |e| Some(e.core));
    "exit_oom", "whether the OOM killer did it", |p| exit(p, |e| e.oom);
    "exit_sender_kind", "who sent that signal: `user`, a process, or `kernel`", |p| sender(p, |s| Some(s.kind));
    "exit_sender_pid", "that process; 0 for the kernel", |p| sender(p, |s| Some(s.pid));
    "exit_sender_start_ns", "when that was created", |p| sender(p, |s| s.start_ns);
    "exit_sender_comm", "name of the thread that sent it", |p| sender(p, |s| Some(Cell::from(&s.comm)));
    "oom_ns", "when the OOM killer chose it, if it did", |p| oom(p, |o| Some(o.ns));
    "oom_scope", "`cgroup` or `host`: what had no memory left", |p| oom(p, |o| o.scope);
    "oom_cgroup", "name of the control group", |p| oom(p, |o| o.cgroup.as_ref().map(Cell::from));
    "oom_limit_bytes", "its limit", |p| oom(p, |o| o.limit_bytes);
    "oom_rss_bytes", "RSS when it was chosen", |p| oom(p, |o| o.rss_bytes);
    "oom_rss_anon_bytes", "of it, anonymous pages", |p| oom(p, |o| o.rss_anon_bytes);
    "oom_rss_file_bytes", "of it, pages of files", |p| oom(p, |o| o.rss_file_bytes);
    "oom_rss_shmem_bytes", "of it, pages of shared memory", |p| oom(p, |o| o.rss_shmem_bytes);
    "oom_swap_bytes", "swapped out then", |p| oom(p, |o| o.swap_bytes);
    "oom_vms_bytes", "address space then", |p| oom(p, |o| o.vms_bytes);
    "survived_root", "made before the root ended and alive more than 250 ms after", |p| p.survived_root.into();
    "zombie_ns", "from its end to the reaping", |p| p.zombie_ns.into();
    "zombie_at_end", "ended and not reaped when the recording ended", |p| p.zombie_at_end.into();
    "stopped_ns", "how long signals had stopped it", |p| p.stopped_ns.into();
    "blocked_at_end_kind", "what it did nothing but wait in until it was killed, or until the end: `futex`, `read`, \
        `wait`, `sleep` or `other`", |p| p.blocked_at_end.as_ref().map(|b| b.kind).into();
    "blocked_at_end_syscall", "the system call", |p| p.blocked_at_end.as_ref().map(|b| &b.syscall).into();
    "blocked_at_end_ns", "for how long", |p| p.blocked_at_end.as_ref().map(|b| b.ns).into();
    "failed_execs", "calls of exec that failed", |p| p.failed_execs.into();
    "exec_failures", "those calls, of more than 256 the first 255 and the last; JSON",
        |p| p.exec_failures.as_ref().map_or(Cell::Unknown, Cell::json);
    "fork_failures", "calls of fork, vfork and clone that failed, by error; JSON",
        |p| p.fork_failures.as_ref().map_or(Cell::Unknown, Cell::json);
    "fork_refusals", "the same calls by what refused them; JSON",
        |p| p.fork_refusals.as_ref().map_or(Cell::Unknown, Cell::json);
    "waits", "its longest waits; JSON", |p| Cell::json(&p.waits);
    "title", "what it called itself last by writing over its arguments", |p| p.title.as_ref().into();
    "titles", "all that it was seen to call itself so; JSON", |p| Cell::json(&p.titles);
    "marks", "moments that it marked; JSON", |p| Cell::json(&p.marks);
    "env", "variables that are kept of its last program; JSON", |p| p.env.as_ref().map_or(Cell::Unknown, Cell::json);
    "pid_ns", "its pid in its own pid namespace", |p| p.pid_ns.into();
    "pid_ns_level", "how deep that namespace is below the first one", |p| p.pid_ns_level.into();
    "session_ns", "when it made a session of its own", |p| p.session_ns.into();
    "moves", "moves to other control groups; JSON", |p| Cell::json(&p.moves);
};
