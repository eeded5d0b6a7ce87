//! Writes a small trace with a row of every kind: `sample_trace FILE`.
//!
//! Tests of other programs read it, so it needs neither root nor a kernel.

use std::path::Path;

use rtrace::event::{
    Directory, Event, Exec, ExecFailed, Exit, Fork, ForkFailed, Loss, Memory, MmEnd, Moved, Oom,
    OomScope, Reaped, Recording, RefusedBy, Sender, SenderKind, Signal, Sleep, Snapshot, Subject,
    Thread, ThreadExit, Usage, WaitState, What,
};
use rtrace::trace::{TraceWriter, WriterOptions};
use rtrace::units::ProcessKey;

const ROOT: ProcessKey = ProcessKey {
    pid: 1000,
    start_ns: 5_000_000_000,
};
const CHILD: ProcessKey = ProcessKey {
    pid: 1001,
    start_ns: 5_001_000_000,
};

fn memory(mib: u64) -> Memory {
    Memory {
        anon: mib << 20,
        file: 4 << 20,
        shmem: 0,
        swap: 0,
        vms: (mib + 100) << 20,
    }
}

/// One of each of what signals, failed calls and waits tell.
fn watched() -> [What; 6] {
    [
        What::ExecFailed(ExecFailed {
            errno: 2,
            filename: b"/usr/local/bin/cc".into(),
        }),
        What::ForkFailed(ForkFailed {
            errno: 11,
            refused_by: Some(RefusedBy::Cgroup),
            limit: Some(512),
            cgroup: Some("job_77".into()),
        }),
        What::Sleep(Sleep {
            since_ns: 5_000_200_000,
            state: WaitState::Sleeping,
            call: Some("futex".into()),
            still: false,
        }),
        What::Session(CHILD.pid),
        What::Moved(Moved {
            hierarchy: Some(0),
            path: b"/jobs/1".into(),
        }),
        What::Signal(Signal {
            signal: 15,
            code: Some(0),
            for_process: true,
            sender: Sender {
                kind: SenderKind::User,
                process: Some(ROOT),
                tid: Some(ROOT.pid),
                comm: b"make".into(),
            },
        }),
    ]
}

/// The child has so many MiB now.
fn grown(mib: u64) -> What {
    What::Memory {
        mm: 3,
        now: memory(mib),
        parts: None,
        churn: None,
        cpu_ns: None,
        charge: Some(48 << 20),
    }
}

fn events() -> Vec<(ProcessKey, What)> {
    let exec = |name: &str, argv: Vec<Vec<u8>>, mm, old_mm| Exec {
        filename: format!("/usr/bin/{name}").into_bytes(),
        argv_bytes: argv.iter().map(|arg| arg.len() as u64 + 1).sum(),
        argv,
        argv_truncated: false,
        comm: name.into(),
        old_tid: ROOT.pid,
        mm: Some(mm),
        old_mm,
        memory: memory(1),
        cwd: Some(Directory {
            path: b"/data/project".to_vec(),
            ..Directory::default()
        }),
    };
    let root = exec("make", vec![b"make".into(), b"-j2".into()], 1, None);
    let mut events = vec![(ROOT, What::Exec(root))];
    let fork = Fork {
        creator: Some(ROOT),
        creator_tid: Some(ROOT.pid),
        creator_threads: Some(1),
        clone_flags: Some(0x0120_0000),
        mm: Some(2),
        creator_mm: Some(1),
        memory: memory(1),
        comm: b"make".into(),
        ns_pid: Some(CHILD.pid),
        ns_level: Some(0),
        fork_ns: Some(92_000),
        creator_rss: Some(memory(1).rss()),
        creator_vms: Some(memory(1).vms),
        creator_page_tables: Some(64 << 10),
    };
    events.push((CHILD, What::Fork(fork)));
    // The last argument isn't UTF-8.
    let child = exec("cc", vec![b"cc".into(), b"caf\xe9.c".into()], 3, Some(2));
    events.push((CHILD, What::Exec(child)));
    let thread = Thread {
        creator_tid: CHILD.pid,
        threads: 2,
        clone_flags: 0x003d_0f00,
        comm: b"cc".into(),
    };
    events.push((CHILD, What::Thread(thread)));
    events.push((CHILD, What::Rename(b"w\xff1".into())));
    events.extend((1..=50).map(|mib| (CHILD, grown(mib))));
    let cpu_ns = 1_000_000;
    events.push((CHILD, What::ThreadExit(ThreadExit { cpu_ns, threads: 1 })));
    let end = MmEnd {
        peak_bound: 0,
        mm: 3,
        peak: memory(50),
        peak_ns: 5_200_000_000,
        last: memory(40),
        peak_vms: 150 << 20,
        peak_swap: 0,
        churn: None,
    };
    let exit = Exit {
        status: 139,
        parent: Some(ROOT),
        cpu_ns,
        first_run_ns: Some(5_000_100_000),
        stopped_ns: Some(0),
        reaper: None,
    };
    events.extend(watched().map(|what| (CHILD, what)));
    events.push((CHILD, What::Oom(killed())));
    let reaped = used(cpu_ns);
    events.extend([What::MmEnd(end), What::Exit(exit), What::Reaped(reaped)].map(|w| (CHILD, w)));
    let snapshot = Snapshot {
        parent: None,
        zombie: true,
        first_run_ns: None,
        stopped_ns: Some(0),
        found: None,
    };
    let lost = [("memory".to_owned(), 3), ("exec".to_owned(), 1)].into();
    events.extend([What::Snapshot(snapshot), What::Loss(Loss { lost })].map(|w| (ROOT, w)));
    events
}

fn used(cpu_ns: u64) -> Reaped {
    Reaped {
        cpu_ns: Some(2 * cpu_ns),
        usage: Usage {
            user_ns: Some(cpu_ns),
            system_ns: Some(cpu_ns),
            faults_minor: Some(1234),
            faults_major: Some(5),
            switches_voluntary: Some(6),
            switches_involuntary: Some(0),
            read_chars: Some(1 << 33),
            written_chars: Some(7),
            read_bytes: Some(4096),
            written_bytes: None,
        },
    }
}

fn killed() -> Oom {
    Oom {
        mm: Some(3),
        memory: Some(memory(40)),
        scope: Some(OomScope::Cgroup),
        cgroup: Some("job_42".to_owned()),
        limit: Some(40 << 20),
    }
}

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or_else(|| anyhow::anyhow!("usage: sample_trace FILE"))?;
    let mut recording = Recording {
        rtrace_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: vec!["make".to_owned(), "-j2".to_owned()],
        host: "sample".to_owned(),
        page_size: 4096,
        start_ns: ROOT.start_ns,
        root_pid: ROOT.pid,
        root_start_ns: ROOT.start_ns,
        rss_bound_bytes: 256 << 10,
        ..Recording::default()
    };
    // Two row groups, so that readers have to join them.
    let options = WriterOptions {
        group_rows: 40,
        ..WriterOptions::default()
    };
    let mut writer = TraceWriter::create_with(Path::new(&path), &recording, options)?;
    let mut time_ns = ROOT.start_ns;
    for (process, what) in events() {
        time_ns += 1_000_000;
        let known = !matches!(what, What::Loss(_));
        let subject = known.then_some(Subject {
            process,
            tid: process.pid,
        });
        let cpu = 1;
        writer.push(&Event {
            time_ns,
            cpu,
            subject,
            what,
        })?;
    }
    recording.end_ns = Some(time_ns);
    recording.exit_status = Some(0);
    writer.finish(&recording)?;
    Ok(())
}
