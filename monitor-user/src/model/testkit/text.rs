//! Streams as text.
//!
//! ```text
//! # A comment.
//! recording {"root_pid": 10, "root_start_ns": 1000}
//! 1000 0 10@1000:10 fork mm=1 anon=4096 comm="sh"
//! 2000 1 - memory mm=2 anon=8192 vms=65536
//! 3000 0 10@1000:10 exec mm=2 old_mm=1 filename="/bin/ls" arg="ls" arg="-l" comm="ls"
//! ```
//!
//! A line is time in ns, CPU, subject (`PID@START:TID`, `-` for none), kind, and fields. Sizes are
//! bytes. Text is in double quotes with `\"`, `\\` and `\xNN`. A field that is left out is not
//! known where the event allows that, else 0, false or empty.

use std::{collections::BTreeMap, str::FromStr};

use super::story::kind_of;
use crate::{
    event::{
        Churn, Environment, Event, Exec, ExecFailed, Exit, Fork, Found, Loss, Memory, MmEnd, Moved,
        Oom, OomScope, Reaped, Recording, Sender, SenderKind, Signal, Sleep, Snapshot, Subject,
        Thread, ThreadExit, Usage, WaitState, What,
    },
    units::ProcessKey,
};

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads a stream and what it says about the recording.
///
/// # Errors
/// The first line that isn't understood.
pub fn parse(text: &str) -> Result<(Vec<Event>, Recording), ParseError> {
    let mut events = Vec::new();
    let mut recording = Recording::default();
    for (n, line) in text.lines().enumerate() {
        let fail = |what: String| ParseError { line: n + 1, what };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
        } else if let Some(json) = line.strip_prefix("recording ") {
            recording = serde_json::from_str(json).map_err(|e| fail(e.to_string()))?;
        } else if line == "cut_short" {
            recording.cut_short = true;
        } else {
            events.push(event(line).map_err(fail)?);
        }
    }
    Ok((events, recording))
}

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
}

fn write_mm_end(out: &mut Writer, end: &MmEnd) {
    out.number("mm", end.mm);
    out.memory("peak_", &end.peak);
    out.number("peak_ns", end.peak_ns);
    out.memory("last_", &end.last);
    out.number("highest_vms", end.peak_vms);
    out.number("highest_swap", end.peak_swap);
    out.churn(end.churn.as_ref());
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
        What::ForkFailed(errno) => out.known("errno", Some((*errno).into())),
        What::Sleep(sleep) => {
            out.known("since", Some(sleep.since_ns));
            out.field("state", sleep.state.name());
            if let Some(call) = &sleep.call {
                out.bytes("call", call.as_bytes());
            }
            out.number("still", sleep.still.into());
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
    out.bytes("comm", &found.comm);
    for arg in found.argv.iter().flatten() {
        out.bytes("arg", arg);
    }
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

fn key_text(key: ProcessKey) -> String {
    format!("{}@{}", key.pid, key.start_ns)
}

fn event(line: &str) -> Result<Event, String> {
    let mut words = words(line)?.into_iter();
    let mut next = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let time_ns = number(&next("time")?)?;
    let cpu = number(&next("CPU")?)?;
    let subject = match next("subject")?.as_str() {
        "-" => None,
        text => Some(subject(text)?),
    };
    let kind = next("kind")?;
    let mut fields = Fields(Vec::new());
    for word in words {
        let (name, value) = word.split_once('=').ok_or(format!("no '=' in {word}"))?;
        fields.0.push((name.to_owned(), value.to_owned()));
    }
    let what = what(&kind, &mut fields)?;
    match fields.0.first() {
        Some((name, _)) => Err(format!("{kind} has no field {name}")),
        None => Ok(Event {
            time_ns,
            cpu,
            subject,
            what,
        }),
    }
}

struct Fields(Vec<(String, String)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(at).1)
    }

    fn known<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        self.take(name).map(|value| number(&value)).transpose()
    }

    fn number<T: FromStr + Default>(&mut self, name: &str) -> Result<T, String> {
        Ok(self.known(name)?.unwrap_or_default())
    }

    fn churn(&mut self) -> Result<Option<Churn>, String> {
        let (grown, write_faults) = (self.known("grown")?, self.known("write_faults")?);
        Ok(grown.map(|grown| Churn {
            grown,
            write_faults,
        }))
    }

    fn flag(&mut self, name: &str) -> Result<bool, String> {
        Ok(self.number::<u8>(name)? != 0)
    }

    fn key(&mut self, name: &str) -> Result<Option<ProcessKey>, String> {
        self.take(name).map(|value| key(&value)).transpose()
    }

    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.take(name).map_or(Ok(Vec::new()), |v| unquote(&v))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let text = |value: String| Ok(String::from_utf8_lossy(&unquote(&value)?).into_owned());
        self.take(name).map(text).transpose()
    }

    /// One of few words.
    fn word<T>(&mut self, name: &str, of: fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let word = |value: String| of(&value).ok_or(format!("unknown {name} {value}"));
        self.take(name).map(word).transpose()
    }

    fn memory(&mut self, prefix: &str) -> Result<Memory, String> {
        let mut value = |name: &str| self.number(&format!("{prefix}{name}"));
        Ok(Memory {
            anon: value("anon")?,
            file: value("file")?,
            shmem: value("shmem")?,
            swap: value("swap")?,
            vms: value("vms")?,
        })
    }
}

fn what(kind: &str, f: &mut Fields) -> Result<What, String> {
    Ok(match kind {
        "fork" => What::Fork(Fork {
            creator: f.key("creator")?,
            creator_tid: f.known("creator_tid")?,
            creator_threads: f.known("creator_threads")?,
            clone_flags: f.known("clone_flags")?,
            mm: f.known("mm")?,
            creator_mm: f.known("creator_mm")?,
            memory: f.memory("")?,
            comm: f.bytes("comm")?,
            ns_pid: f.known("ns_pid")?,
            ns_level: f.known("ns_level")?,
        }),
        "thread" => What::Thread(Thread {
            creator_tid: f.number("creator_tid")?,
            threads: f.number("threads")?,
            clone_flags: f.number("clone_flags")?,
            comm: f.bytes("comm")?,
        }),
        "exec" => What::Exec(exec(f)?),
        "rename" => What::Rename(f.bytes("comm")?),
        "thread_exit" => What::ThreadExit(ThreadExit {
            cpu_ns: f.number("cpu_ns")?,
            threads: f.number("threads")?,
        }),
        "exit" => What::Exit(Exit {
            status: f.number("status")?,
            parent: f.key("parent")?,
            cpu_ns: f.number("cpu_ns")?,
            first_run_ns: f.known("first_run_ns")?,
            stopped_ns: f.known("stopped_ns")?,
        }),
        "reaped" => What::Reaped(Reaped {
            cpu_ns: f.known("cpu_ns")?,
            usage: read_usage(f)?,
        }),
        "memory" => What::Memory {
            mm: f.number("mm")?,
            now: f.memory("")?,
            parts: None,
            churn: f.churn()?,
            cpu_ns: None,
            charge: None,
        },
        "mm_end" => What::MmEnd(read_mm_end(f)?),
        "snapshot" => What::Snapshot(Snapshot {
            parent: f.key("parent")?,
            zombie: f.flag("zombie")?,
            first_run_ns: f.known("first_run_ns")?,
            stopped_ns: f.known("stopped_ns")?,
            found: found(f)?,
        }),
        "env" => What::Environment(environment(f)?),
        "loss" => What::Loss(loss(f)?),
        "oom" => What::Oom(read_oom(f)?),
        other => watched(other, f)?,
    })
}

fn watched(kind: &str, f: &mut Fields) -> Result<What, String> {
    Ok(match kind {
        "signal" => What::Signal(read_signal(f)?),
        "exec_failed" => What::ExecFailed(ExecFailed {
            errno: f.number("errno")?,
            filename: f.bytes("filename")?,
        }),
        "fork_failed" => What::ForkFailed(f.number("errno")?),
        "sleep" => What::Sleep(Sleep {
            since_ns: f.number("since")?,
            state: f
                .word("state", WaitState::from_name)?
                .ok_or("a wait without a state")?,
            call: f.text("call")?,
            still: f.flag("still")?,
        }),
        "session" => What::Session(f.number("session")?),
        "moved" => What::Moved(Moved {
            hierarchy: f.known("hierarchy")?,
            path: f.bytes("path")?,
        }),
        other => return Err(format!("unknown kind {other}")),
    })
}

fn read_signal(f: &mut Fields) -> Result<Signal, String> {
    Ok(Signal {
        signal: f.number("signal")?,
        code: f.known("code")?,
        for_process: f.flag("for_process")?,
        sender: Sender {
            kind: f
                .word("sender", SenderKind::from_name)?
                .ok_or("a signal without a sender")?,
            process: f.key("by")?,
            tid: f.known("by_tid")?,
            comm: f.bytes("comm")?,
        },
    })
}

fn read_usage(f: &mut Fields) -> Result<Usage, String> {
    Ok(Usage {
        user_ns: f.known("user_ns")?,
        system_ns: f.known("system_ns")?,
        faults_minor: f.known("faults_minor")?,
        faults_major: f.known("faults_major")?,
        switches_voluntary: f.known("switches_voluntary")?,
        switches_involuntary: f.known("switches_involuntary")?,
        read_chars: f.known("read_chars")?,
        written_chars: f.known("written_chars")?,
        read_bytes: f.known("read_bytes")?,
        written_bytes: f.known("written_bytes")?,
    })
}

fn read_mm_end(f: &mut Fields) -> Result<MmEnd, String> {
    Ok(MmEnd {
        mm: f.number("mm")?,
        peak_ns: f.number("peak_ns")?,
        peak: f.memory("peak_")?,
        last: f.memory("last_")?,
        peak_vms: f.number("highest_vms")?,
        peak_swap: f.number("highest_swap")?,
        churn: f.churn()?,
    })
}

fn loss(f: &mut Fields) -> Result<Loss, String> {
    let mut lost = BTreeMap::new();
    for (kind, n) in f.0.drain(..) {
        lost.insert(kind, number(&n)?);
    }
    Ok(Loss { lost })
}

fn environment(f: &mut Fields) -> Result<Environment, String> {
    Ok(Environment {
        values: all(f, "value")?,
        is_whole: f.flag("whole")?,
    })
}

fn read_oom(f: &mut Fields) -> Result<Oom, String> {
    Ok(Oom {
        mm: f.known("mm")?,
        // A victim has mappings.
        memory: Some(f.memory("")?).filter(|memory| memory.vms > 0),
        scope: f.word("scope", OomScope::from_name)?,
        cgroup: f.text("cgroup")?,
        limit: f.known("limit")?,
    })
}

/// Only of a process that was there when the recording began threads are told.
fn found(f: &mut Fields) -> Result<Option<Found>, String> {
    let Some(threads) = f.known("threads")? else {
        return Ok(None);
    };
    let mm = f.known("mm")?;
    let memory = f.memory("")?;
    Ok(Some(Found {
        mm,
        memory: mm.map(|_| memory),
        threads,
        has_executed: f.flag("executed")?,
        comm: f.bytes("comm")?,
        argv: Some(all(f, "arg")?).filter(|argv| !argv.is_empty()),
    }))
}

/// The values of all fields of a name.
fn all(f: &mut Fields, name: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut values = Vec::new();
    while let Some(value) = f.take(name) {
        values.push(unquote(&value)?);
    }
    Ok(values)
}

fn exec(f: &mut Fields) -> Result<Exec, String> {
    let argv = all(f, "arg")?;
    Ok(Exec {
        filename: f.bytes("filename")?,
        argv_bytes: f.number("argv_bytes")?,
        argv_truncated: f.flag("argv_truncated")?,
        comm: f.bytes("comm")?,
        old_tid: f.number("old_tid")?,
        mm: f.known("mm")?,
        old_mm: f.known("old_mm")?,
        memory: f.memory("")?,
        argv,
    })
}

fn subject(text: &str) -> Result<Subject, String> {
    let (process, tid) = text.split_once(':').ok_or(format!("no ':' in {text}"))?;
    Ok(Subject {
        process: key(process)?,
        tid: number(tid)?,
    })
}

fn key(text: &str) -> Result<ProcessKey, String> {
    let (pid, start) = text.split_once('@').ok_or(format!("no '@' in {text}"))?;
    Ok(ProcessKey {
        pid: number(pid)?,
        start_ns: number(start)?,
    })
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_parse_error| format!("{text} is not a number that fits"))
}

/// Splits at spaces that aren't within quotes.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in line.chars() {
        match (c, quoted) {
            (' ', false) => {
                words.push(String::new());
                continue;
            }
            ('"', _) if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    if quoted {
        return Err("a quote is not closed".into());
    }
    Ok(words)
}

fn unquote(text: &str) -> Result<Vec<u8>, String> {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    let mut rest = inner.ok_or(format!("{text} is not in quotes"))?.bytes();
    let mut out = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match rest.next() {
            Some(c @ (b'"' | b'\\')) => out.push(c),
            Some(b'x') => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                let byte = u8::from_str_radix(&digits, 16);
                out.push(byte.map_err(|_parse_error| format!("\\x{digits} is not a byte"))?);
            }
            _ => return Err(format!("unknown escape in {text}")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testkit::Story;

    #[test]
    fn what_is_written_is_read_again() {
        let mut story = Story::new();
        story.root(10, &["/bin/sh", "-c", "a \"b\" \\ c"]).after(1);
        story
            .thread(10, 11)
            .rename(10, 11, "näme")
            .thread_exit(10, 11);
        story.fork(10, 12).memory(12, 3).vfork(12, 13);
        story.exec_bytes(13, 13, vec![b"x\xff\n=".to_vec(), vec![]]);
        let usage = Usage {
            faults_minor: Some(12),
            written_bytes: Some(0),
            ..Usage::default()
        };
        story.exit(13, 3).reaped_with(13, 7, usage);
        let oom = Oom {
            mm: Some(4),
            scope: Some(OomScope::Cgroup),
            cgroup: Some("a b".into()),
            limit: Some(5),
            memory: None,
        };
        story.oom(12, oom).signal(10, 12, 9).killed(12, 9);
        story.kernel_signal(10, 11).exec_failed(10, 2, "/no\tne");
        story.fork_failed(10, 11).slept(10, 10, 300, "futex");
        story.stopped(10, 5).waits_on(10, 10, 400, "read");
        story.setsid(10).moved(10, "/a b");
        story.still_there(10, true).loss_row("memory", 5);
        story.environment(10, &["A=1 2", "B=\n"], true);
        story.found(1, 14, &["a b", "c"]).found(14, 15, &[]);
        let lines: Vec<String> = story.events().iter().map(line).collect();
        let (events, _) = parse(&lines.join("\n")).unwrap();
        assert_eq!(events, story.events());
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("# x\n1 0 - nothing"), "line 2: unknown kind nothing");
        assert_eq!(
            error("1 0 - memory what=3"),
            "line 1: memory has no field what"
        );
        assert_eq!(error("1 0 10 exit"), "line 1: no ':' in 10");
        assert_eq!(
            error("1 0 - rename comm=\"x"),
            "line 1: a quote is not closed"
        );
    }
}
