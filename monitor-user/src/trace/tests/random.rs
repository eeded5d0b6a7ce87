//! Random events with a bias towards the values where encodings break.

use crate::event::{
    Churn, Directory, Environment, Event, Exec, ExecFailed, Exit, Fork, ForkFailed, Found, Loss,
    Memory, MmEnd, Moved, Oom, OomScope, Parts, Reaped, RefusedBy, Sender, SenderKind, Signal,
    Sleep, Snapshot, Subject, Thread, ThreadExit, Title, Usage, WaitState, What,
};
use crate::trace::schema::Kind;
use crate::units::ProcessKey;

/// A seeded source of numbers (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub(super) fn u64(&mut self) -> u64 {
        const EDGES: [u64; 7] = [
            0,
            1,
            i64::MAX as u64 - 1,
            i64::MAX as u64,
            i64::MAX as u64 + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        match self.below(4) {
            0 => EDGES[self.below(EDGES.len())],
            1 => self.next() % 1000,
            _ => self.next() >> self.below(64),
        }
    }

    fn u32(&mut self) -> u32 {
        const EDGES: [u32; 5] = [0, 1, i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX];
        match self.below(3) {
            0 => EDGES[self.below(EDGES.len())],
            _ => u32::try_from(self.next() >> 32).unwrap() >> self.below(32),
        }
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn some<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| value(self))
    }

    /// Text, text that isn't ASCII, any bytes, nothing.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(40);
        match self.below(4) {
            0 => Vec::new(),
            1 => "häß€🦀\u{0}\u{fffd}".as_bytes().to_vec(),
            2 => (0..length).map(|_| self.next().to_le_bytes()[0]).collect(),
            _ => (0..length)
                .map(|_| b'a' + self.next().to_le_bytes()[0] % 26)
                .collect(),
        }
    }

    fn process(&mut self) -> ProcessKey {
        ProcessKey {
            pid: self.u32(),
            start_ns: self.u64(),
        }
    }

    fn memory(&mut self) -> Memory {
        Memory {
            anon: self.u64(),
            file: self.u64(),
            shmem: self.u64(),
            swap: self.u64(),
            vms: self.u64(),
        }
    }

    fn usage(&mut self) -> Usage {
        Usage {
            user_ns: self.some(Self::u64),
            system_ns: self.some(Self::u64),
            faults_minor: self.some(Self::u64),
            faults_major: self.some(Self::u64),
            switches_voluntary: self.some(Self::u64),
            switches_involuntary: self.some(Self::u64),
            read_chars: self.some(Self::u64),
            written_chars: self.some(Self::u64),
            read_bytes: self.some(Self::u64),
            written_bytes: self.some(Self::u64),
        }
    }

    pub(super) fn what(&mut self, kind: Kind) -> What {
        match kind {
            Kind::Fork => What::Fork(Fork {
                creator: self.some(Self::process),
                creator_tid: self.some(Self::u32),
                creator_threads: self.some(Self::u32),
                clone_flags: self.some(Self::u64),
                mm: self.some(Self::u64),
                creator_mm: self.some(Self::u64),
                memory: self.memory(),
                comm: self.bytes(),
                ns_pid: self.some(Self::u32),
                ns_level: self.some(Self::u32),
                fork_ns: self.some(Self::u64),
                creator_rss: self.some(Self::u64),
                creator_vms: self.some(Self::u64),
                creator_page_tables: self.some(Self::u64),
            }),
            Kind::Thread => What::Thread(Thread {
                creator_tid: self.u32(),
                threads: self.u32(),
                clone_flags: self.u64(),
                comm: self.bytes(),
            }),
            Kind::Exec => What::Exec(self.exec()),
            Kind::Rename => What::Rename(self.bytes()),
            Kind::ThreadExit => What::ThreadExit(ThreadExit {
                cpu_ns: self.u64(),
                threads: self.u32(),
            }),
            Kind::Exit => What::Exit(self.exit()),
            Kind::Reaped => What::Reaped(Reaped {
                cpu_ns: self.some(Self::u64),
                usage: self.usage(),
            }),
            Kind::Oom => What::Oom(Oom {
                mm: self.some(Self::u64),
                memory: self.some(Self::memory),
                scope: self.some(|random| [OomScope::Cgroup, OomScope::Host][random.below(2)]),
                cgroup: self.some(|random| String::from_utf8_lossy(&random.bytes()).into_owned()),
                limit: self.some(Self::u64),
            }),
            Kind::Memory => What::Memory {
                mm: self.u64(),
                now: self.memory(),
                parts: self.some(Self::parts),
                churn: self.some(Self::churn),
                cpu_ns: self.some(Self::u64),
                charge: self.some(Self::u64),
            },
            Kind::MmEnd => What::MmEnd(self.mm_end()),
            Kind::Snapshot => What::Snapshot(Snapshot {
                parent: self.some(Self::process),
                zombie: self.flag(),
                first_run_ns: self.some(Self::u64),
                stopped_ns: self.some(Self::u64),
                found: self.some(Self::found),
            }),
            Kind::Environment => What::Environment(self.environment()),
            Kind::Title => What::Title(Title {
                words: (0..self.below(4)).map(|_| self.bytes()).collect(),
                is_cut: self.flag(),
            }),
            Kind::Loss => What::Loss(Loss {
                lost: (0..self.below(4))
                    .map(|_| (format!("k{}é", self.below(9)), self.u64()))
                    .collect(),
            }),
            Kind::Signal
            | Kind::ExecFailed
            | Kind::ForkFailed
            | Kind::Sleep
            | Kind::Session
            | Kind::Moved => self.watched(kind),
        }
    }

    fn watched(&mut self, kind: Kind) -> What {
        match kind {
            Kind::Signal => What::Signal(Signal {
                signal: self.u32(),
                code: self.some(|random| random.u32().cast_signed()),
                for_process: self.flag(),
                sender: Sender {
                    kind: [SenderKind::User, SenderKind::Kernel][self.below(2)],
                    process: self.some(Self::process),
                    tid: self.some(Self::u32),
                    comm: self.bytes(),
                },
            }),
            Kind::ExecFailed => What::ExecFailed(ExecFailed {
                errno: self.u32(),
                filename: self.bytes(),
            }),
            Kind::ForkFailed => What::ForkFailed(ForkFailed {
                errno: self.u32(),
                refused_by: self.some(|random| {
                    [RefusedBy::UserLimit, RefusedBy::EndedNamespace][random.below(2)]
                }),
                limit: self.some(Self::u64),
                cgroup: self.some(|random| format!("g{}é", random.below(9))),
            }),
            Kind::Sleep => What::Sleep(Sleep {
                since_ns: self.u64(),
                state: [
                    WaitState::Sleeping,
                    WaitState::Uninterruptible,
                    WaitState::Stopped,
                    WaitState::Traced,
                ][self.below(4)],
                call: self.some(|random| String::from_utf8_lossy(&random.bytes()).into_owned()),
                still: self.flag(),
            }),
            Kind::Session => What::Session(self.u32()),
            _ => What::Moved(Moved {
                hierarchy: self.some(Self::u32),
                path: self.bytes(),
            }),
        }
    }

    fn exit(&mut self) -> Exit {
        Exit {
            status: self.u32(),
            parent: self.some(Self::process),
            cpu_ns: self.u64(),
            first_run_ns: self.some(Self::u64),
            stopped_ns: self.some(Self::u64),
            reaper: self.some(Self::process),
        }
    }

    fn exec(&mut self) -> Exec {
        Exec {
            filename: self.bytes(),
            argv: (0..self.below(6)).map(|_| self.bytes()).collect(),
            argv_bytes: self.u64(),
            argv_truncated: self.flag(),
            comm: self.bytes(),
            old_tid: self.u32(),
            mm: self.some(Self::u64),
            old_mm: self.some(Self::u64),
            memory: self.memory(),
            cwd: self.some(Self::directory),
        }
    }

    fn mm_end(&mut self) -> MmEnd {
        MmEnd {
            mm: self.u64(),
            peak: self.memory(),
            peak_ns: self.u64(),
            last: self.memory(),
            peak_vms: self.u64(),
            peak_swap: self.u64(),
            churn: self.some(Self::churn),
            peak_bound: self.u64(),
        }
    }

    fn environment(&mut self) -> Environment {
        Environment {
            values: (0..self.below(5)).map(|_| self.bytes()).collect(),
            is_whole: self.flag(),
        }
    }

    fn found(&mut self) -> Found {
        Found {
            mm: self.some(Self::u64),
            memory: self.some(Self::memory),
            threads: self.u32(),
            has_executed: self.flag(),
            ns_pid: self.some(Self::u32),
            ns_level: self.some(Self::u32),
            comm: self.bytes(),
            argv: self.some(|random| (0..random.below(5)).map(|_| random.bytes()).collect()),
            cwd: self.some(Self::directory),
        }
    }

    fn directory(&mut self) -> Directory {
        Directory {
            path: self.bytes(),
            is_cut: self.flag(),
            is_deleted: self.flag(),
            is_unreachable: self.flag(),
        }
    }

    fn parts(&mut self) -> Parts {
        Parts {
            data: self.u64(),
            exec: self.u64(),
            stack: self.u64(),
            page_tables: self.u64(),
        }
    }

    fn churn(&mut self) -> Churn {
        Churn {
            grown: self.u64(),
            write_faults: self.some(Self::u64),
        }
    }

    pub(super) fn event(&mut self, kind: Kind) -> Event {
        Event {
            time_ns: self.u64(),
            cpu: u16::try_from(self.u32() & 0xffff).unwrap(),
            subject: self.some(|random| Subject {
                process: random.process(),
                tid: random.u32(),
            }),
            what: self.what(kind),
        }
    }

    pub(super) fn events(&mut self, count: usize) -> Vec<Event> {
        (0..count)
            .map(|_| {
                let kind = Kind::ALL[self.below(Kind::ALL.len())];
                self.event(kind)
            })
            .collect()
    }
}
