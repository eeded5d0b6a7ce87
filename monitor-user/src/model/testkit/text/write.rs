//! Events to lines.

use super::{super::story::kind_of, key_text};
use crate::{
    event::{Churn, Directory, Event, Exec, Found, Memory, MmEnd, Oom, Subject, Usage, What},
    units::ProcessKey,
};

/// Writes an event as a line without its end.
pub fn line(event: &Event) -> String {
    let subject = |s: Subject| format!("{}:{}", key_text(s.process), s.tid);
    let subject = event.subject.map_or_else(|| "-".to_owned(), subject);
    let kind = kind_of(&event.what);
    let out = format!("{} {} {subject} {kind}", event.time_ns, event.cpu);
    let mut fields = Writer(out);
    write_fields(&mut fields, &event.what);
    fields.0
}
struct Writer(String);

impl Writer {
    fn field(&mut self, name: &str, value: &str) {
        for part in [" ", name, "=", value] {
            self.0.push_str(part);
        }
    }

    fn number(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.known(name, Some(value));
        }
    }

    fn known(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.field(name, &value.to_string());
        }
    }

    fn key(&mut self, name: &str, key: Option<ProcessKey>) {
        if let Some(key) = key {
            self.field(name, &key_text(key));
        }
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.field(name, "\"");
        for byte in bytes {
            match byte {
                b'"' | b'\\' => self.0.extend(['\\', char::from(*byte)]),
                b' '..=b'~' => self.0.push(char::from(*byte)),
                _ => {
                    let hex = format!("\\x{byte:02x}");
                    self.0.push_str(&hex);
                }
            }
        }
        self.0.push('"');
    }

    fn memory(&mut self, prefix: &str, memory: &Memory) {
        for (name, value) in [
            ("anon", memory.anon),
            ("file", memory.file),
            ("shmem", memory.shmem),
            ("swap", memory.swap),
            ("vms", memory.vms),
        ] {
            self.number(&format!("{prefix}{name}"), value);
        }
    }

    fn churn(&mut self, churn: Option<&Churn>) {
        self.known("grown", churn.map(|churn| churn.grown));
        self.known("write_faults", churn.and_then(|churn| churn.write_faults));
    }
}

fn write_fields(out: &mut Writer, what: &What) {
    match what {
        What::Fork(f) => {
            out.key("creator", f.creator);
            out.known("creator_tid", f.creator_tid.map(u64::from));
            out.known("creator_threads", f.creator_threads.map(u64::from));
            out.known("clone_flags", f.clone_flags);
            out.known("mm", f.mm);
            out.known("creator_mm", f.creator_mm);
            out.memory("", &f.memory);
            out.bytes("comm", &f.comm);
            out.known("ns_pid", f.ns_pid.map(u64::from));
            out.known("ns_level", f.ns_level.map(u64::from));
            out.known("fork_ns", f.fork_ns);
            out.known("creator_rss", f.creator_rss);
            out.known("creator_vms", f.creator_vms);
            out.known("creator_page_tables", f.creator_page_tables);
        }
        What::Thread(t) => {
            out.number("creator_tid", t.creator_tid.into());
            out.number("threads", t.threads.into());
            out.number("clone_flags", t.clone_flags);
            out.bytes("comm", &t.comm);
        }
        What::Exec(exec) => write_exec(out, exec),
        What::Rename(comm) => out.bytes("comm", comm),
        What::ThreadExit(t) => {
            out.number("cpu_ns", t.cpu_ns);
            out.number("threads", t.threads.into());
        }
        What::Exit(e) => {
            out.number("status", e.status.into());
            out.key("parent", e.parent);
            out.number("cpu_ns", e.cpu_ns);
            out.known("first_run_ns", e.first_run_ns);
            out.known("stopped_ns", e.stopped_ns);
            out.key("reaper", e.reaper);
        }
        What::Reaped(r) => {
            out.known("cpu_ns", r.cpu_ns);
            for (name, value) in usage(r.usage) {
                out.known(name, value);
            }
        }
        What::Memory { mm, now, churn, .. } => {
            out.number("mm", *mm);
            out.memory("", now);
            out.churn(churn.as_ref());
        }
        What::MmEnd(end) => write_mm_end(out, end),
        What::Snapshot(s) => {
            out.key("parent", s.parent);
            out.number("zombie", s.zombie.into());
            out.known("first_run_ns", s.first_run_ns);
            out.known("stopped_ns", s.stopped_ns);
            if let Some(found) = &s.found {
                write_found(out, found);
            }
        }
        What::Environment(environment) => {
            for value in &environment.values {
                out.bytes("value", value);
            }
            out.number("whole", environment.is_whole.into());
        }
        What::Loss(loss) => {
            for (kind, n) in &loss.lost {
                out.known(kind, Some(*n));
            }
        }
        What::Oom(oom) => write_oom(out, oom),
        What::Signal(_)
        | What::ExecFailed(_)
        | What::ForkFailed(_)
        | What::Sleep(_)
        | What::Session(_)
        | What::Title(_)
        | What::Moved(_) => write_watched(out, what),
    }
}

fn write_exec(out: &mut Writer, e: &Exec) {
    out.bytes("filename", &e.filename);
    for arg in &e.argv {
        out.bytes("arg", arg);
    }
    out.number("argv_bytes", e.argv_bytes);
    out.number("argv_truncated", e.argv_truncated.into());
    out.bytes("comm", &e.comm);
    out.number("old_tid", e.old_tid.into());
    out.known("mm", e.mm);
    out.known("old_mm", e.old_mm);
    out.memory("", &e.memory);
    write_directory(out, e.cwd.as_ref());
}

fn write_directory(out: &mut Writer, cwd: Option<&Directory>) {
    let Some(cwd) = cwd else { return };
    out.bytes("cwd", &cwd.path);
    out.number("cwd_cut", cwd.is_cut.into());
    out.number("cwd_deleted", cwd.is_deleted.into());
    out.number("cwd_unreachable", cwd.is_unreachable.into());
}

fn write_mm_end(out: &mut Writer, end: &MmEnd) {
    out.number("mm", end.mm);
    out.memory("peak_", &end.peak);
    out.number("peak_ns", end.peak_ns);
    out.memory("last_", &end.last);
    out.number("highest_vms", end.peak_vms);
    out.number("highest_swap", end.peak_swap);
    out.churn(end.churn.as_ref());
    out.known(
        "peak_bound",
        Some(end.peak_bound).filter(|bound| *bound > 0),
    );
}

fn write_watched(out: &mut Writer, what: &What) {
    match what {
        What::Signal(signal) => {
            out.known("signal", Some(signal.signal.into()));
            if let Some(code) = signal.code {
                out.field("code", &code.to_string());
            }
            out.number("for_process", signal.for_process.into());
            out.field("sender", signal.sender.kind.name());
            out.key("by", signal.sender.process);
            out.known("by_tid", signal.sender.tid.map(u64::from));
            out.bytes("comm", &signal.sender.comm);
        }
        What::ExecFailed(failed) => {
            out.known("errno", Some(failed.errno.into()));
            out.bytes("filename", &failed.filename);
        }
        What::ForkFailed(failed) => {
            out.known("errno", Some(failed.errno.into()));
            if let Some(by) = failed.refused_by {
                out.field("refused_by", by.name());
            }
            out.known("limit", failed.limit);
            if let Some(cgroup) = &failed.cgroup {
                out.bytes("cgroup", cgroup.as_bytes());
            }
        }
        What::Sleep(sleep) => {
            out.known("since", Some(sleep.since_ns));
            out.field("state", sleep.state.name());
            if let Some(call) = &sleep.call {
                out.bytes("call", call.as_bytes());
            }
            out.number("still", sleep.still.into());
        }
        What::Title(title) => {
            for word in &title.words {
                out.bytes("word", word);
            }
            out.number("cut", title.is_cut.into());
        }
        What::Session(session) => out.known("session", Some((*session).into())),
        What::Moved(moved) => {
            out.known("hierarchy", moved.hierarchy.map(u64::from));
            out.bytes("path", &moved.path);
        }
        _ => {}
    }
}

fn write_found(out: &mut Writer, found: &Found) {
    out.known("mm", found.mm);
    if let Some(memory) = &found.memory {
        out.memory("", memory);
    }
    out.known("threads", Some(found.threads.into()));
    out.number("executed", found.has_executed.into());
    out.known("ns_pid", found.ns_pid.map(u64::from));
    out.known("ns_level", found.ns_level.map(u64::from));
    out.bytes("comm", &found.comm);
    for arg in found.argv.iter().flatten() {
        out.bytes("arg", arg);
    }
    write_directory(out, found.cwd.as_ref());
}

fn write_oom(out: &mut Writer, oom: &Oom) {
    out.known("mm", oom.mm);
    if let Some(memory) = &oom.memory {
        out.memory("", memory);
    }
    if let Some(scope) = oom.scope {
        out.field("scope", scope.name());
    }
    if let Some(cgroup) = &oom.cgroup {
        out.bytes("cgroup", cgroup.as_bytes());
    }
    out.known("limit", oom.limit);
}

fn usage(usage: Usage) -> [(&'static str, Option<u64>); 10] {
    [
        ("user_ns", usage.user_ns),
        ("system_ns", usage.system_ns),
        ("faults_minor", usage.faults_minor),
        ("faults_major", usage.faults_major),
        ("switches_voluntary", usage.switches_voluntary),
        ("switches_involuntary", usage.switches_involuntary),
        ("read_chars", usage.read_chars),
        ("written_chars", usage.written_chars),
        ("read_bytes", usage.read_bytes),
        ("written_bytes", usage.written_bytes),
    ]
}
