//! `perf record` beside rtrace on the same run: the kernel's classic tracepoints through perf's own buffers.
//!
//! perf sees files of execs, not arguments; `strace` sees those.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

use super::{Seen, SeenExec, Tree};
use crate::lone_surrogates::Text;

const EVENTS: &str = "task:task_newtask,sched:sched_process_exec,sched:sched_process_exit,\
                      syscalls:sys_enter_exit_group,signal:signal_generate,signal:signal_deliver";
/// `CLONE_THREAD` of `include/uapi/linux/sched.h`.
const CLONE_THREAD: u64 = 0x0001_0000;
const SIGKILL: u32 = 9;
/// Signals whose default action doesn't end a process: CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH.
const HARMLESS: [u32; 8] = [17, 18, 19, 20, 21, 22, 23, 28];

/// The start of a command line under which another command, and all that descends from it, is recorded into `data`.
///
/// # Errors
/// perf isn't installed, or tracefs can't be mounted.
pub fn wrapper(data: &Path) -> anyhow::Result<Vec<String>> {
    super::installed("perf", "linux-perf")?;
    mount_tracefs()?;
    let data = data.to_str().context("path isn't UTF-8")?;
    // 4096 pages a CPU: 16 MiB, room for a burst of some 100,000 events.
    let words = [
        "perf",
        "record",
        "-q",
        "-k",
        "CLOCK_MONOTONIC",
        "-m",
        "4096",
        "-e",
        EVENTS,
        "-o",
        data,
        "--",
    ];
    Ok(words.map(str::to_owned).to_vec())
}

/// perf reads the tracepoints' numbers in tracefs.
fn mount_tracefs() -> anyhow::Result<()> {
    const PLACE: &str = "/sys/kernel/tracing";
    if Path::new(PLACE).join("events").exists() {
        return Ok(());
    }
    let status = Command::new("mount")
        .args(["-t", "tracefs", "tracefs", PLACE])
        .status()?;
    ensure!(
        status.success(),
        "tracefs can't be mounted at {PLACE}, which perf needs"
    );
    Ok(())
}

/// Reads what perf recorded.
///
/// # Errors
/// perf can't read it, or lost events itself.
pub fn read(data: &Path) -> anyhow::Result<Tree> {
    let output = Command::new("perf")
        .args([
            "script",
            "--ns",
            "--show-lost-events",
            "-F",
            "tid,time,event,trace",
            "-i",
        ])
        .arg(data)
        .stderr(Stdio::null())
        .output()?;
    ensure!(
        output.status.success(),
        "perf script failed on {}",
        data.display()
    );
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        !text.contains("PERF_RECORD_LOST"),
        "perf lost events itself, so it is no witness"
    );
    let mut record = Record::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        record
            .add(line)
            .with_context(|| format!("line of perf: {line}"))?;
    }
    Ok(record.tree)
}

#[derive(Default)]
struct Record {
    tree: Tree,
    /// Process of each thread.
    process_of: BTreeMap<u32, u32>,
    /// Last deadly signal that was sent to a process.
    sent: BTreeMap<u32, u32>,
}

impl Record {
    /// Takes one line: `TID TIME: SYSTEM:EVENT: NAME=VALUE...`.
    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        let mut parts = line.trim_start().splitn(2, ' ');
        let tid: u32 = parts.next().context("no thread")?.parse()?;
        let (_time, rest) = parts
            .next()
            .and_then(|rest| rest.split_once(": "))
            .context("no time")?;
        let (event, fields) = rest.trim_start().split_once(": ").context("no event")?;
        let pid = self.process(tid);
        match event {
            "task:task_newtask" => self.new_task(pid, fields)?,
            "sched:sched_process_exec" => self.exec(fields)?,
            "syscalls:sys_enter_exit_group" => {
                let code =
                    u32::from_str_radix(fields.trim().trim_start_matches("error_code: 0x"), 16)?;
                self.seen(pid).code = Some(code & 0xff);
            }
            "signal:signal_generate" => self.signal_sent(fields)?,
            "signal:signal_deliver" => self.signal_taken(pid, fields)?,
            "sched:sched_process_exit" => self.exit(pid, fields),
            _ => {}
        }
        Ok(())
    }

    fn process(&self, tid: u32) -> u32 {
        self.process_of.get(&tid).copied().unwrap_or(tid)
    }

    fn seen(&mut self, pid: u32) -> &mut Seen {
        self.tree.entry(pid).or_default()
    }

    fn new_task(&mut self, creator: u32, fields: &str) -> anyhow::Result<()> {
        let tid = number(fields, "pid=")?;
        let flags = u64::from_str_radix(value(fields, "clone_flags=")?, 16)?;
        if flags & CLONE_THREAD != 0 {
            self.process_of.insert(tid, creator);
            self.seen(creator).threads += 1;
            return Ok(());
        }
        self.process_of.remove(&tid);
        self.sent.remove(&tid);
        let again = self.tree.insert(
            tid,
            Seen {
                creator: Some(creator),
                ..Seen::default()
            },
        );
        ensure!(
            again.is_none(),
            "pid {tid} was used twice, which this witness doesn't tell apart"
        );
        Ok(())
    }

    fn exec(&mut self, fields: &str) -> anyhow::Result<()> {
        let pid = number(fields, " pid=")?;
        let (filename, _) = fields
            .trim_start_matches("filename=")
            .split_once(" pid=")
            .context("no file")?;
        self.seen(pid).execs.push(SeenExec {
            filename: Text::from(filename),
            argv: None,
        });
        Ok(())
    }

    fn signal_sent(&mut self, fields: &str) -> anyhow::Result<()> {
        let signal = number(fields, "sig=")?;
        let target = self.process(number(fields, " pid=")?);
        if value(fields, " res=")? == "0" && !HARMLESS.contains(&signal) {
            self.sent.insert(target, signal);
        }
        Ok(())
    }

    /// A signal without a handler that ends processes by default; only the last before the end counts.
    /// The kernel hands most of them over as SIGKILL: then it is the last that was sent.
    fn signal_taken(&mut self, pid: u32, fields: &str) -> anyhow::Result<()> {
        let signal = number(fields, "sig=")?;
        if value(fields, "sa_handler=")? == "0" && !HARMLESS.contains(&signal) {
            let sent = self.sent.get(&pid).copied().filter(|_| signal == SIGKILL);
            self.seen(pid).signal = Some(sent.unwrap_or(signal));
        }
        Ok(())
    }

    fn exit(&mut self, pid: u32, fields: &str) {
        if fields.contains("group_dead=false") {
            return;
        }
        let seen = self.seen(pid);
        seen.ended = true;
        // A process that ends by itself takes its other threads down with SIGKILL.
        if seen.code.is_some() {
            seen.signal = None;
        }
    }
}

fn value<'a>(fields: &'a str, key: &str) -> anyhow::Result<&'a str> {
    let (_, rest) = fields
        .split_once(key)
        .with_context(|| format!("no {key}"))?;
    Ok(rest.split(' ').next().unwrap_or(rest))
}

fn number(fields: &str, key: &str) -> anyhow::Result<u32> {
    value(fields, key)?
        .parse()
        .with_context(|| format!("{key} isn't a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_processes() {
        let mut record = Record::default();
        for line in [
            "   10  1.000000001:             task:task_newtask: pid=11 comm=sh clone_flags=4100 oom_score_adj=0",
            "   11  1.000000002:      sched:sched_process_exec: filename=/bin/a b pid=11 old_pid=11",
            "   11  1.000000003: syscalls:sys_enter_exit_group: error_code: 0x00000107",
            "   11  1.000000004:      sched:sched_process_exit: comm=a b pid=11 prio=120 group_dead=true",
            "   10  1.000000005:             task:task_newtask: pid=12 comm=sh clone_flags=3d0f00 oom_score_adj=0",
            "   11  1.000000006:        signal:signal_generate: sig=15 errno=0 code=0 comm=sh pid=10 grp=1 res=0",
            "   12  1.000000006:         signal:signal_deliver: sig=9 errno=0 code=0 sa_handler=0 sa_flags=0",
            "   12  1.000000007:      sched:sched_process_exit: comm=sh pid=12 prio=120 group_dead=true",
        ] {
            record.add(line).expect("a line of perf");
        }
        let child = &record.tree[&11];
        assert_eq!(
            (child.creator, child.code, child.ended),
            (Some(10), Some(7), true)
        );
        assert_eq!(child.execs[0].filename, Text::from("/bin/a b"));
        let root = &record.tree[&10];
        assert_eq!((root.threads, root.signal, root.ended), (1, Some(15), true));
    }
}
