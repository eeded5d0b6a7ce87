//! Lines to events.

use std::{collections::BTreeMap, str::FromStr};

use crate::{
    event::{
        Churn, Directory, Environment, Event, Exec, ExecFailed, Exit, Fork, ForkFailed, Found,
        Loss, Memory, MmEnd, Moved, Oom, OomScope, Reaped, RefusedBy, Sender, SenderKind, Signal,
        Sleep, Snapshot, Subject, Thread, ThreadExit, Title, Usage, WaitState, What,
    },
    units::ProcessKey,
};

pub(super) fn event(line: &str) -> Result<Event, String> {
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
            fork_ns: f.known("fork_ns")?,
            creator_rss: f.known("creator_rss")?,
            creator_vms: f.known("creator_vms")?,
            creator_page_tables: f.known("creator_page_tables")?,
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
            reaper: f.key("reaper")?,
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
        "title" => What::Title(Title {
            words: all(f, "word")?,
            is_cut: f.flag("cut")?,
        }),
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
        "fork_failed" => What::ForkFailed(ForkFailed {
            errno: f.number("errno")?,
            refused_by: f.word("refused_by", RefusedBy::from_name)?,
            limit: f.known("limit")?,
            cgroup: f.text("cgroup")?,
        }),
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
        peak_bound: f.known("peak_bound")?.unwrap_or(0),
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
        ns_pid: f.known("ns_pid")?,
        ns_level: f.known("ns_level")?,
        comm: f.bytes("comm")?,
        argv: Some(all(f, "arg")?).filter(|argv| !argv.is_empty()),
        cwd: directory(f)?,
    }))
}

fn directory(f: &mut Fields) -> Result<Option<Directory>, String> {
    let path = f.take("cwd").map(|path| unquote(&path)).transpose()?;
    let (is_cut, is_deleted) = (f.flag("cwd_cut")?, f.flag("cwd_deleted")?);
    let is_unreachable = f.flag("cwd_unreachable")?;
    Ok(path.map(|path| Directory {
        path,
        is_cut,
        is_deleted,
        is_unreachable,
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
        cwd: directory(f)?,
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
