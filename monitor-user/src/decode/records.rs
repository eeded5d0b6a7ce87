//! The records of fixed size.

use monitor_ebpf::abi::{
    CallRecord, Churn as KernelChurn, ExitRecord, ForkFailedRecord, ForkRecord, Header, Kind,
    Memory as KernelMemory, MemoryRecord, MmEndRecord, OomRecord, OomScope as AbiScope,
    Parts as KernelParts, ReapedRecord, RenameRecord, SignalRecord, SleepRecord, SnapshotRecord,
    ThreadRecord,
};
use zerocopy::FromBytes;

use super::{refusal, title, usage, watch};
use crate::{
    event::{
        Churn, Event, Exit, Fork, Found, Memory, Mm, MmEnd, Oom, OomScope, Parts, Reaped, Snapshot,
        Subject, Thread, ThreadExit, What,
    },
    units::ProcessKey,
};

/// Reads a record of any kind but exec; `None` if it is too short or of a kind that isn't known.
pub(super) fn decode(header: &Header, bytes: &[u8], page_size: u64) -> Option<Event> {
    let what = match header.kind {
        Kind::FORK => fork(&read::<ForkRecord>(bytes)?, page_size),
        Kind::THREAD => thread(&read::<ThreadRecord>(bytes)?),
        Kind::THREAD_EXIT => {
            let record = read::<ExitRecord>(bytes)?;
            What::ThreadExit(ThreadExit {
                cpu_ns: record.cpu_ns,
                threads: record.threads,
            })
        }
        Kind::EXIT => {
            let record = read::<ExitRecord>(bytes)?;
            What::Exit(Exit {
                status: record.status,
                parent: process(record.parent_pid, record.parent_start_ns),
                cpu_ns: record.cpu_ns,
                first_run_ns: (record.first_run_ns != 0).then_some(record.first_run_ns),
                stopped_ns: usage::known(record.stopped_ns),
                reaper: process(record.reaper_pid, record.reaper_start_ns),
            })
        }
        Kind::REAPED => {
            let record = read::<ReapedRecord>(bytes)?;
            let cpu_ns = usage::known(record.cpu_ns);
            What::Reaped(Reaped {
                cpu_ns,
                usage: usage::usage(&record.usage, cpu_ns),
            })
        }
        Kind::RENAME => What::Rename(text(&read::<RenameRecord>(bytes)?.comm)),
        Kind::MEMORY => {
            let record = read::<MemoryRecord>(bytes)?;
            What::Memory {
                mm: record.mm,
                now: memory(&record.now, page_size),
                parts: Some(parts(&record.parts, page_size)),
                churn: Some(churn(record.churn, page_size)),
                cpu_ns: process(header.pid, header.start_ns).map(|_| record.cpu_ns),
                charge: usage::known(record.charge).map(|pages| pages.saturating_mul(page_size)),
            }
        }
        Kind::MM_END => What::MmEnd(mm_end(&read::<MmEndRecord>(bytes)?, page_size)),
        Kind::SNAPSHOT => What::Snapshot(snapshot(&read::<SnapshotRecord>(bytes)?, page_size)),
        Kind::OOM => What::Oom(oom(&read::<OomRecord>(bytes)?, page_size)),
        Kind::SIGNAL => What::Signal(watch::signal(&read::<SignalRecord>(bytes)?)),
        Kind::SLEEP => What::Sleep(watch::sleep(&read::<SleepRecord>(bytes)?)),
        Kind::FORK_FAILED => {
            What::ForkFailed(refusal::fork_failed(&read::<ForkFailedRecord>(bytes)?))
        }
        Kind::SESSION => What::Session(read::<CallRecord>(bytes)?.number),
        Kind::EXEC_FAILED => What::ExecFailed(watch::exec_failed(bytes)?),
        Kind::TITLE => What::Title(title::title(bytes)?),
        Kind::CGROUP => What::Moved(watch::moved(bytes)?),
        _ => return None,
    };
    Some(event(header, what))
}

fn fork(record: &ForkRecord, page_size: u64) -> What {
    let creator = process(record.creator_pid, record.creator_start_ns);
    let page_tables = usage::known(record.creator_page_tables);
    let of_creator = page_tables.map(|_| memory(&record.creator_memory, page_size));
    What::Fork(Fork {
        creator,
        creator_tid: creator.map(|_| record.creator_tid),
        creator_threads: creator.map(|_| record.creator_threads),
        clone_flags: (record.clone_flags != u64::MAX).then_some(record.clone_flags),
        mm: address_space(record.mm),
        creator_mm: address_space(record.old_mm),
        memory: memory(&record.memory, page_size),
        comm: text(&record.comm),
        ns_pid: Some(record.ns_pid),
        ns_level: Some(record.ns_level),
        fork_ns: (record.called_ns != 0).then(|| record.made_ns.saturating_sub(record.called_ns)),
        creator_rss: of_creator.map(|memory| memory.rss()),
        creator_vms: of_creator.map(|memory| memory.vms),
        creator_page_tables: page_tables,
    })
}

fn snapshot(record: &SnapshotRecord, page_size: u64) -> Snapshot {
    let mm = address_space(record.mm);
    Snapshot {
        parent: process(record.parent_pid, record.parent_start_ns),
        first_run_ns: None,
        stopped_ns: None,
        zombie: record.threads == 0,
        found: Some(Found {
            mm,
            memory: mm.map(|_| memory(&record.memory, page_size)),
            threads: record.threads,
            has_executed: record.is_forked == 0,
            ns_pid: Some(record.ns_pid),
            ns_level: Some(record.ns_level),
            comm: text(&record.comm),
            argv: None,
            cwd: None,
        }),
    }
}

fn thread(record: &ThreadRecord) -> What {
    What::Thread(Thread {
        creator_tid: record.creator_tid,
        threads: record.threads,
        clone_flags: record.clone_flags,
        comm: text(&record.comm),
    })
}

fn mm_end(record: &MmEndRecord, page_size: u64) -> MmEnd {
    MmEnd {
        mm: record.mm,
        peak: memory(&record.peak, page_size),
        peak_ns: record.peak_ns,
        last: memory(&record.last, page_size),
        peak_vms: record.peak_vm.saturating_mul(page_size),
        peak_swap: record.peak_swap.saturating_mul(page_size),
        churn: Some(churn(record.churn, page_size)),
        peak_bound: record.peak_bound.saturating_mul(page_size),
    }
}

fn oom(record: &OomRecord, page_size: u64) -> Oom {
    let scope = match record.scope {
        AbiScope::CGROUP => Some(OomScope::Cgroup),
        AbiScope::HOST => Some(OomScope::Host),
        _ => None,
    };
    // The nearest limit isn't to blame for anything else.
    let limit = usage::known(record.limit).filter(|_| scope == Some(OomScope::Cgroup));
    let name = text(&record.cgroup);
    Oom {
        mm: address_space(record.mm),
        memory: (record.has_memory == 1).then(|| memory(&record.memory, page_size)),
        scope,
        cgroup: limit
            .filter(|_| !name.is_empty())
            .map(|_| String::from_utf8_lossy(&name).into_owned()),
        limit: limit.map(|pages| pages.saturating_mul(page_size)),
    }
}

/// An event with the header's time, CPU and subject.
pub(super) fn event(header: &Header, what: What) -> Event {
    let subject = process(header.pid, header.start_ns).map(|process| Subject {
        process,
        tid: header.tid,
    });
    Event {
        time_ns: header.time_ns,
        cpu: header.cpu,
        subject,
        what,
    }
}

/// Pages to bytes. A counter below zero has parts that other CPUs keep: the truth is near zero.
pub(super) fn memory(kernel: &KernelMemory, page_size: u64) -> Memory {
    let bytes = |pages: i64| u64::try_from(pages).unwrap_or(0).saturating_mul(page_size);
    let [file, anon, swap, shmem] = kernel.rss;
    Memory {
        anon: bytes(anon),
        file: bytes(file),
        shmem: bytes(shmem),
        swap: bytes(swap),
        vms: kernel.total_vm.saturating_mul(page_size),
    }
}

fn parts(kernel: &KernelParts, page_size: u64) -> Parts {
    let bytes = |pages: u64| pages.saturating_mul(page_size);
    Parts {
        data: bytes(kernel.data_vm),
        exec: bytes(kernel.exec_vm),
        stack: bytes(kernel.stack_vm),
        page_tables: kernel.page_tables,
    }
}

fn churn(kernel: KernelChurn, page_size: u64) -> Churn {
    Churn {
        grown: kernel.grown.saturating_mul(page_size),
        write_faults: usage::known(kernel.write_faults),
    }
}

/// Bytes up to the first NUL.
pub(super) fn text(bytes: &[u8]) -> Vec<u8> {
    bytes
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default()
        .to_vec()
}

/// A number of an address space; 0 stands for "not known".
pub(super) fn address_space(id: u64) -> Option<Mm> {
    (id != 0).then_some(id)
}

pub(super) fn process(pid: u32, start_ns: u64) -> Option<ProcessKey> {
    (pid != 0).then_some(ProcessKey { pid, start_ns })
}

fn read<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(record, _)| record)
}
