//! From events to columns.
//!
//! Most columns of a row are null, so a builder is only touched when its column has a value; the
//! nulls before it are then added in one step.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Int8Builder, Int32Builder, Int64Builder,
    ListBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::ArrowError;

use super::schema::{COLUMNS, Col, Kind, Type, arrow_schema};
use crate::event::{self, Event, What};
use crate::units::ProcessKey;

/// The kind of row that an event becomes.
pub(super) fn kind_of(what: &What) -> Kind {
    match what {
        What::Fork(_) => Kind::Fork,
        What::Thread(_) => Kind::Thread,
        What::Exec(_) => Kind::Exec,
        What::Rename(_) => Kind::Rename,
        What::ThreadExit(_) => Kind::ThreadExit,
        What::Exit(_) => Kind::Exit,
        What::Reaped(_) => Kind::Reaped,
        What::Memory { .. } => Kind::Memory,
        What::MmEnd(_) => Kind::MmEnd,
        What::Snapshot(_) => Kind::Snapshot,
        What::Environment(_) => Kind::Environment,
        What::Loss(_) => Kind::Loss,
        What::Oom(_) => Kind::Oom,
        What::Signal(_) => Kind::Signal,
        What::ExecFailed(_) => Kind::ExecFailed,
        What::ForkFailed(_) => Kind::ForkFailed,
        What::Sleep(_) => Kind::Sleep,
        What::Session(_) => Kind::Session,
        What::Moved(_) => Kind::Moved,
        What::Title(_) => Kind::Title,
    }
}

/// Rows that are being collected, column by column.
pub(super) struct Rows {
    builders: Vec<Builder>,
    count: usize,
    text_bytes: usize,
    bound: u64,
}

impl Rows {
    /// No rows yet. `bound` is how far memory values may be off, in bytes.
    pub(super) fn new(bound: u64) -> Self {
        Self {
            builders: COLUMNS
                .iter()
                .map(|column| Builder::new(column.of))
                .collect(),
            count: 0,
            text_bytes: 0,
            bound,
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of all names, paths and arguments in the rows.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// From the next row on, memory values may be off by this many bytes.
    pub(super) fn set_bound(&mut self, bound: u64) {
        self.bound = bound;
    }

    /// Adds one event as a row.
    pub(super) fn push(&mut self, event: &Event) {
        self.u64(Col::TimeNs, event.time_ns);
        self.kind(kind_of(&event.what));
        self.u32(Col::Cpu, event.cpu.into());
        if let Some(subject) = event.subject {
            self.process(Col::Pid, Col::StartNs, Some(subject.process));
            self.u32(Col::Tid, subject.tid);
        }
        match &event.what {
            What::Fork(fork) => self.fork(fork),
            What::Thread(thread) => self.thread(thread),
            What::Exec(exec) => self.exec(exec),
            What::Rename(name) => self.text(Col::Comm, Col::CommRaw, name),
            What::ThreadExit(exit) => {
                self.u64(Col::CpuNs, exit.cpu_ns);
                self.u32(Col::Threads, exit.threads);
            }
            What::Exit(exit) => {
                self.u32(Col::Status, exit.status);
                self.process(Col::ParentPid, Col::ParentStartNs, exit.parent);
                self.u64(Col::CpuNs, exit.cpu_ns);
                self.some_u64(Col::FirstRunNs, exit.first_run_ns);
                self.some_u64(Col::StoppedNs, exit.stopped_ns);
                self.process(Col::ReaperPid, Col::ReaperStartNs, exit.reaper);
            }
            What::Reaped(reaped) => self.reaped(*reaped),
            What::Memory {
                mm,
                now,
                parts,
                churn,
                cpu_ns,
                charge,
            } => {
                self.u64(Col::Mm, *mm);
                self.memory(now);
                self.parts(parts.as_ref());
                self.churn(churn.as_ref());
                self.some_u64(Col::CpuNs, *cpu_ns);
                self.some_u64(Col::Charge, *charge);
            }
            What::MmEnd(end) => self.mm_end(end),
            What::Snapshot(snapshot) => {
                self.process(Col::ParentPid, Col::ParentStartNs, snapshot.parent);
                self.flag(Col::Zombie, snapshot.zombie);
                self.some_u64(Col::FirstRunNs, snapshot.first_run_ns);
                self.some_u64(Col::StoppedNs, snapshot.stopped_ns);
                if let Some(found) = &snapshot.found {
                    self.found(found);
                }
            }
            What::Environment(environment) => {
                self.list(Col::Env, Col::EnvRaw, &environment.values);
                self.flag(Col::EnvWhole, environment.is_whole);
            }
            What::Title(title) => {
                self.argv(&title.words);
                self.flag(Col::ArgvTruncated, title.is_cut);
            }
            What::Loss(loss) => self.loss(loss),
            What::Oom(oom) => self.oom(oom),
            What::Signal(signal) => self.signal(signal),
            What::ExecFailed(failed) => {
                self.u32(Col::Errno, failed.errno);
                self.text(Col::Filename, Col::FilenameRaw, &failed.filename);
            }
            What::ForkFailed(failed) => self.fork_failed(failed),
            What::Sleep(sleep) => self.sleep(sleep),
            What::Session(session) => self.u32(Col::Session, *session),
            What::Moved(moved) => {
                self.some_u32(Col::Hierarchy, moved.hierarchy);
                self.text(Col::Cgroup, Col::CgroupRaw, &moved.path);
            }
        }
        self.count += 1;
    }

    /// Takes the rows out as a batch; none are left.
    ///
    /// # Errors
    ///
    /// When the columns don't fit the schema.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.count;
        let columns = self
            .builders
            .iter_mut()
            .map(|builder| builder.finish(rows))
            .collect::<Result<Vec<_>, _>>()?;
        self.count = 0;
        self.text_bytes = 0;
        RecordBatch::try_new(arrow_schema(), columns)
    }

    fn fork(&mut self, fork: &event::Fork) {
        self.process(Col::CreatorPid, Col::CreatorStartNs, fork.creator);
        self.some_u32(Col::CreatorTid, fork.creator_tid);
        self.some_u32(Col::CreatorThreads, fork.creator_threads);
        self.some_u64(Col::CloneFlags, fork.clone_flags);
        self.some_u64(Col::Mm, fork.mm);
        self.some_u64(Col::OldMm, fork.creator_mm);
        self.memory(&fork.memory);
        self.text(Col::Comm, Col::CommRaw, &fork.comm);
        self.some_u32(Col::NsPid, fork.ns_pid);
        self.some_u32(Col::NsLevel, fork.ns_level);
        self.some_u64(Col::ForkNs, fork.fork_ns);
        self.some_u64(Col::CreatorRss, fork.creator_rss);
        self.some_u64(Col::CreatorVms, fork.creator_vms);
        self.some_u64(Col::CreatorPageTables, fork.creator_page_tables);
    }

    fn signal(&mut self, signal: &event::Signal) {
        let sender = &signal.sender;
        self.u32(Col::Signal, signal.signal);
        self.some_u32(Col::SignalCode, signal.code.map(i32::cast_unsigned));
        self.flag(Col::ForProcess, signal.for_process);
        self.some_word(Col::Sender, Some(sender.kind.name()));
        self.process(Col::SenderPid, Col::SenderStartNs, sender.process);
        self.some_u32(Col::SenderTid, sender.tid);
        self.text(Col::SenderComm, Col::SenderCommRaw, &sender.comm);
    }

    fn found(&mut self, found: &event::Found) {
        self.some_u64(Col::Mm, found.mm);
        if let Some(memory) = &found.memory {
            self.memory(memory);
        }
        self.u32(Col::Threads, found.threads);
        self.flag(Col::Executed, found.has_executed);
        self.some_u32(Col::NsPid, found.ns_pid);
        self.some_u32(Col::NsLevel, found.ns_level);
        self.text(Col::Comm, Col::CommRaw, &found.comm);
        if let Some(argv) = &found.argv {
            self.argv(argv);
        }
        self.directory(found.cwd.as_ref());
    }

    fn directory(&mut self, cwd: Option<&event::Directory>) {
        let Some(cwd) = cwd else { return };
        self.text(Col::Cwd, Col::CwdRaw, &cwd.path);
        if let Builder::TextList(list) = self.at(Col::CwdState) {
            for (is_so, word) in CWD_STATES.map(|(word, is_so)| (is_so(cwd), word)) {
                if is_so {
                    list.values().append_value(word);
                }
            }
            list.append(true);
        }
    }

    fn thread(&mut self, thread: &event::Thread) {
        self.u32(Col::CreatorTid, thread.creator_tid);
        self.u32(Col::Threads, thread.threads);
        self.u64(Col::CloneFlags, thread.clone_flags);
        self.text(Col::Comm, Col::CommRaw, &thread.comm);
    }

    fn exec(&mut self, exec: &event::Exec) {
        self.text(Col::Filename, Col::FilenameRaw, &exec.filename);
        self.argv(&exec.argv);
        self.u64(Col::ArgvBytes, exec.argv_bytes);
        self.flag(Col::ArgvTruncated, exec.argv_truncated);
        self.text(Col::Comm, Col::CommRaw, &exec.comm);
        self.u32(Col::OldTid, exec.old_tid);
        self.some_u64(Col::Mm, exec.mm);
        self.some_u64(Col::OldMm, exec.old_mm);
        self.memory(&exec.memory);
        self.directory(exec.cwd.as_ref());
    }

    fn mm_end(&mut self, end: &event::MmEnd) {
        self.u64(Col::Mm, end.mm);
        self.memory(&end.last);
        self.u64(Col::PeakNs, end.peak_ns);
        self.u64(Col::PeakRssAnon, end.peak.anon);
        self.u64(Col::PeakRssFile, end.peak.file);
        self.u64(Col::PeakRssShmem, end.peak.shmem);
        self.u64(Col::SwapAtPeak, end.peak.swap);
        self.u64(Col::VmsAtPeak, end.peak.vms);
        self.u64(Col::PeakSwap, end.peak_swap);
        self.u64(Col::PeakVms, end.peak_vms);
        self.churn(end.churn.as_ref());
        self.u64(Col::PeakRssBound, end.peak_bound);
    }

    fn reaped(&mut self, reaped: event::Reaped) {
        let usage = reaped.usage;
        self.some_u64(Col::CpuNs, reaped.cpu_ns);
        self.some_u64(Col::UserNs, usage.user_ns);
        self.some_u64(Col::SystemNs, usage.system_ns);
        self.some_u64(Col::FaultsMinor, usage.faults_minor);
        self.some_u64(Col::FaultsMajor, usage.faults_major);
        self.some_u64(Col::SwitchesVoluntary, usage.switches_voluntary);
        self.some_u64(Col::SwitchesInvoluntary, usage.switches_involuntary);
        self.some_u64(Col::ReadChars, usage.read_chars);
        self.some_u64(Col::WrittenChars, usage.written_chars);
        self.some_u64(Col::ReadBytes, usage.read_bytes);
        self.some_u64(Col::WrittenBytes, usage.written_bytes);
    }

    fn oom(&mut self, oom: &event::Oom) {
        self.some_u64(Col::Mm, oom.mm);
        if let Some(memory) = &oom.memory {
            self.memory(memory);
        }
        self.some_word(Col::OomScope, oom.scope.map(event::OomScope::name));
        self.some_word(Col::OomCgroup, oom.cgroup.as_deref());
        self.some_u64(Col::OomLimit, oom.limit);
    }

    fn fork_failed(&mut self, failed: &event::ForkFailed) {
        self.u32(Col::Errno, failed.errno);
        self.some_word(
            Col::RefusedBy,
            failed.refused_by.map(event::RefusedBy::name),
        );
        self.some_u64(Col::RefusedLimit, failed.limit);
        self.some_word(Col::RefusedCgroup, failed.cgroup.as_deref());
    }

    fn sleep(&mut self, sleep: &event::Sleep) {
        self.u64(Col::SinceNs, sleep.since_ns);
        self.some_word(Col::Waited, Some(sleep.state.name()));
        self.some_word(Col::Syscall, sleep.call.as_deref());
        self.flag(Col::Still, sleep.still);
    }

    fn some_word(&mut self, col: Col, text: Option<&str>) {
        if let (Some(text), Builder::Text(builder)) = (text, self.at(col)) {
            builder.append_value(text);
        }
    }

    fn memory(&mut self, memory: &event::Memory) {
        self.u64(Col::RssAnon, memory.anon);
        self.u64(Col::RssFile, memory.file);
        self.u64(Col::RssShmem, memory.shmem);
        self.u64(Col::Swap, memory.swap);
        self.u64(Col::Vms, memory.vms);
        self.u64(Col::Bound, self.bound);
    }

    fn parts(&mut self, parts: Option<&event::Parts>) {
        if let Some(parts) = parts {
            self.u64(Col::VmsData, parts.data);
            self.u64(Col::VmsExec, parts.exec);
            self.u64(Col::VmsStack, parts.stack);
            self.u64(Col::PageTables, parts.page_tables);
        }
    }

    fn churn(&mut self, churn: Option<&event::Churn>) {
        if let Some(churn) = churn {
            self.u64(Col::AnonGrown, churn.grown);
            self.some_u64(Col::WriteFaults, churn.write_faults);
        }
    }

    fn loss(&mut self, loss: &event::Loss) {
        if let Builder::TextList(list) = self.at(Col::LostKinds) {
            for kind in loss.lost.keys() {
                list.values().append_value(kind);
            }
            list.append(true);
        }
        if let Builder::Int64List(list) = self.at(Col::LostCounts) {
            for count in loss.lost.values() {
                list.values().append_value(count.cast_signed());
            }
            list.append(true);
        }
    }

    fn argv(&mut self, argv: &[Vec<u8>]) {
        self.list(Col::Argv, Col::ArgvRaw, argv);
    }

    fn list(&mut self, text: Col, raw: Col, argv: &[Vec<u8>]) {
        let mut exact = true;
        if let Builder::TextList(list) = self.at(text) {
            for arg in argv {
                let text = String::from_utf8_lossy(arg);
                exact &= matches!(text, std::borrow::Cow::Borrowed(_));
                list.values().append_value(text);
            }
            list.append(true);
        }
        if !exact && let Builder::BytesList(list) = self.at(raw) {
            for arg in argv {
                list.values().append_value(arg);
            }
            list.append(true);
        }
        self.text_bytes += argv.iter().map(Vec::len).sum::<usize>();
    }

    fn text(&mut self, text: Col, raw: Col, bytes: &[u8]) {
        self.text_bytes += bytes.len();
        let lossy = String::from_utf8_lossy(bytes);
        if let Builder::Text(builder) = self.at(text) {
            builder.append_value(&lossy);
        }
        if matches!(lossy, std::borrow::Cow::Owned(_))
            && let Builder::Bytes(builder) = self.at(raw)
        {
            builder.append_value(bytes);
        }
    }

    fn process(&mut self, pid: Col, start: Col, process: Option<ProcessKey>) {
        if let Some(process) = process {
            self.u32(pid, process.pid);
            self.u64(start, process.start_ns);
        }
    }

    fn kind(&mut self, kind: Kind) {
        if let Builder::Word(builder) = self.at(Col::Kind) {
            builder.append_value(kind as i8);
        }
    }

    fn flag(&mut self, col: Col, value: bool) {
        if let Builder::Bool(builder) = self.at(col) {
            builder.append_value(value);
        }
    }

    fn some_u32(&mut self, col: Col, value: Option<u32>) {
        if let Some(value) = value {
            self.u32(col, value);
        }
    }

    fn some_u64(&mut self, col: Col, value: Option<u64>) {
        if let Some(value) = value {
            self.u64(col, value);
        }
    }

    fn u32(&mut self, col: Col, value: u32) {
        match self.at(col) {
            Builder::UInt32(builder) => builder.append_value(value),
            Builder::Int32(builder) => builder.append_value(value.cast_signed()),
            _ => debug_assert!(false, "{col:?} holds no 32-bit number"),
        }
    }

    fn u64(&mut self, col: Col, value: u64) {
        match self.at(col) {
            Builder::Int64(builder) => builder.append_value(value.cast_signed()),
            Builder::UInt64(builder) => builder.append_value(value),
            _ => debug_assert!(false, "{col:?} holds no 64-bit number"),
        }
    }

    /// The builder of a column, filled with nulls up to the row that is being added.
    fn at(&mut self, col: Col) -> &mut Builder {
        let builder = &mut self.builders[col as usize];
        builder.pad(self.count);
        builder
    }
}

/// Whether something is to be said of a working directory.
type IsSo = fn(&event::Directory) -> bool;

/// What may be said of one.
const CWD_STATES: [(&str, IsSo); 3] = [
    (CWD_CUT, |cwd| cwd.is_cut),
    (CWD_DELETED, |cwd| cwd.is_deleted),
    (CWD_UNREACHABLE, |cwd| cwd.is_unreachable),
];
pub(super) const CWD_CUT: &str = "cut";
pub(super) const CWD_DELETED: &str = "deleted";
pub(super) const CWD_UNREACHABLE: &str = "unreachable";

enum Builder {
    Int64(Int64Builder),
    UInt64(UInt64Builder),
    Int32(Int32Builder),
    UInt32(UInt32Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    TextList(ListBuilder<StringBuilder>),
    BytesList(ListBuilder<BinaryBuilder>),
    Int64List(ListBuilder<Int64Builder>),
    Word(Int8Builder),
}

/// Calls the same method of whichever builder it is.
macro_rules! each {
    ($builder:expr, $b:ident => $call:expr) => {
        match $builder {
            Builder::Int64($b) => $call,
            Builder::UInt64($b) => $call,
            Builder::Int32($b) => $call,
            Builder::UInt32($b) => $call,
            Builder::Bool($b) => $call,
            Builder::Text($b) => $call,
            Builder::Bytes($b) => $call,
            Builder::TextList($b) => $call,
            Builder::BytesList($b) => $call,
            Builder::Int64List($b) => $call,
            Builder::Word($b) => $call,
        }
    };
}

impl Builder {
    fn new(of: Type) -> Self {
        match of {
            Type::Int64 => Self::Int64(Int64Builder::new()),
            Type::UInt64 => Self::UInt64(UInt64Builder::new()),
            Type::Int32 => Self::Int32(Int32Builder::new()),
            Type::UInt32 => Self::UInt32(UInt32Builder::new()),
            Type::Bool => Self::Bool(BooleanBuilder::new()),
            Type::Text => Self::Text(StringBuilder::new()),
            Type::Bytes => Self::Bytes(BinaryBuilder::new()),
            Type::TextList => Self::TextList(ListBuilder::new(StringBuilder::new())),
            Type::BytesList => Self::BytesList(ListBuilder::new(BinaryBuilder::new())),
            Type::Int64List => Self::Int64List(ListBuilder::new(Int64Builder::new())),
            Type::Word => Self::Word(Int8Builder::new()),
        }
    }

    fn pad(&mut self, rows: usize) {
        each!(self, b => {
            let missing = rows - b.len();
            if missing > 0 {
                b.append_nulls(missing);
            }
        });
    }

    fn finish(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        self.pad(rows);
        if let Self::Word(keys) = self {
            return Ok(Arc::new(DictionaryArray::try_new(keys.finish(), words())?));
        }
        Ok(each!(self, b => Arc::new(b.finish())))
    }
}

/// The dictionary of the column `kind`, the same in every batch.
fn words() -> ArrayRef {
    static WORDS: LazyLock<ArrayRef> = LazyLock::new(|| {
        let names = Kind::ALL.iter().map(|kind| kind.name());
        Arc::new(StringArray::from_iter_values(names))
    });
    Arc::clone(&WORDS)
}
