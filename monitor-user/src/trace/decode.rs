//! From columns back to events.
//!
//! A column that isn't there counts as null. A row without a value that its event can't do without
//! becomes no event: a made-up zero would look like a fact.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::DataType;

use super::encode::{CWD_CUT, CWD_DELETED, CWD_UNREACHABLE};
use super::error::ReadError;
use super::schema::{COLUMNS, Col, Kind, Type};
use crate::event::{self, Event, Subject, What};
use crate::units::ProcessKey;

/// A batch of rows with its columns found.
pub(super) struct Batch {
    columns: Vec<Option<Values>>,
    kinds: Words,
    rows: usize,
}

enum Values {
    Int64(Int64Array),
    UInt64(UInt64Array),
    Int32(Int32Array),
    UInt32(UInt32Array),
    Bool(BooleanArray),
    Text(StringArray),
    Bytes(BinaryArray),
    List(ListArray),
}

enum Words {
    Plain(StringArray),
    Dictionary(arrow_array::DictionaryArray<Int8Type>, StringArray),
}

impl Batch {
    /// Finds the columns of a batch. Columns that this version doesn't know are left aside.
    ///
    /// # Errors
    ///
    /// [`ReadError::NoColumn`] without a time, a CPU or a kind, [`ReadError::ColumnType`] for a
    /// column whose type doesn't fit.
    pub(super) fn new(batch: &RecordBatch) -> Result<Self, ReadError> {
        let mut columns = Vec::with_capacity(COLUMNS.len());
        let mut kinds = None;
        for column in COLUMNS {
            let array = batch.column_by_name(column.name);
            if array.is_none() && column.required() {
                return Err(ReadError::NoColumn(column.name));
            }
            let mismatch = |array: &dyn Array| ReadError::ColumnType {
                column: column.name,
                found: array.data_type().to_string(),
                expected: column.of.name(),
            };
            if let (Type::Word, Some(array)) = (column.of, array) {
                kinds = Some(words(array).ok_or_else(|| mismatch(array))?);
            }
            columns.push(match array {
                Some(array) if column.of != Type::Word => {
                    Some(values(column.of, array).ok_or_else(|| mismatch(array))?)
                }
                _ => None,
            });
        }
        Ok(Self {
            columns,
            kinds: kinds.ok_or(ReadError::NoColumn("kind"))?,
            rows: batch.num_rows(),
        })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// The event of a row, or the name of its kind if it can't be made into one.
    pub(super) fn event(&self, row: usize) -> Result<Event, &str> {
        let name = self.kinds.at(row).unwrap_or("");
        let row = Row { batch: self, row };
        Kind::from_name(name)
            .and_then(|kind| row.event(kind))
            .ok_or(name)
    }
}

impl Words {
    fn at(&self, row: usize) -> Option<&str> {
        match self {
            Self::Plain(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Dictionary(array, words) => {
                let word = array.key(row)?;
                words.is_valid(word).then(|| words.value(word))
            }
        }
    }
}

fn words(array: &dyn Array) -> Option<Words> {
    if let Some(plain) = array.as_string_opt::<i32>() {
        return Some(Words::Plain(plain.clone()));
    }
    let dictionary = array.as_dictionary_opt::<Int8Type>()?;
    let words = dictionary.values().as_string_opt::<i32>()?;
    Some(Words::Dictionary(dictionary.clone(), words.clone()))
}

/// The values of a column; any whole number will do where a whole number is wanted.
fn values(of: Type, array: &dyn Array) -> Option<Values> {
    match of {
        Type::Int64 | Type::UInt64 | Type::Int32 | Type::UInt32 => match array.data_type() {
            DataType::Int64 => Some(Values::Int64(array.as_primitive::<Int64Type>().clone())),
            DataType::UInt64 => Some(Values::UInt64(array.as_primitive::<UInt64Type>().clone())),
            DataType::Int32 => Some(Values::Int32(array.as_primitive::<Int32Type>().clone())),
            DataType::UInt32 => Some(Values::UInt32(array.as_primitive::<UInt32Type>().clone())),
            _ => None,
        },
        Type::Bool => array.as_boolean_opt().cloned().map(Values::Bool),
        Type::Text => array.as_string_opt::<i32>().cloned().map(Values::Text),
        Type::Bytes => array.as_binary_opt::<i32>().cloned().map(Values::Bytes),
        Type::TextList | Type::BytesList | Type::Int64List => {
            let list = array.as_list_opt::<i32>()?;
            let fits = match of {
                Type::TextList => list.values().as_string_opt::<i32>().is_some(),
                Type::BytesList => list.values().as_binary_opt::<i32>().is_some(),
                _ => list.values().as_primitive_opt::<Int64Type>().is_some(),
            };
            fits.then(|| Values::List(list.clone()))
        }
        Type::Word => None,
    }
}

/// One row. `None` everywhere means null, missing, or not a value of that type.
#[derive(Clone, Copy)]
struct Row<'a> {
    batch: &'a Batch,
    row: usize,
}

impl<'a> Row<'a> {
    fn event(self, kind: Kind) -> Option<Event> {
        Some(Event {
            time_ns: self.u64(Col::TimeNs)?,
            cpu: u16::try_from(self.u32(Col::Cpu)?).ok()?,
            subject: self.subject(),
            what: self.what(kind)?,
        })
    }

    fn subject(self) -> Option<Subject> {
        Some(Subject {
            process: self.process(Col::Pid, Col::StartNs)?,
            tid: self.u32(Col::Tid)?,
        })
    }

    fn what(self, kind: Kind) -> Option<What> {
        Some(match kind {
            Kind::Fork => What::Fork(self.fork()?),
            Kind::Thread => What::Thread(event::Thread {
                creator_tid: self.u32(Col::CreatorTid)?,
                threads: self.u32(Col::Threads)?,
                clone_flags: self.u64(Col::CloneFlags)?,
                comm: self.text(Col::Comm, Col::CommRaw)?,
            }),
            Kind::Exec => What::Exec(self.exec()?),
            Kind::Rename => What::Rename(self.text(Col::Comm, Col::CommRaw)?),
            Kind::ThreadExit => What::ThreadExit(event::ThreadExit {
                cpu_ns: self.u64(Col::CpuNs)?,
                threads: self.u32(Col::Threads)?,
            }),
            Kind::Exit => What::Exit(event::Exit {
                status: self.u32(Col::Status)?,
                parent: self.process(Col::ParentPid, Col::ParentStartNs),
                cpu_ns: self.u64(Col::CpuNs)?,
                first_run_ns: self.u64(Col::FirstRunNs),
                stopped_ns: self.u64(Col::StoppedNs),
                reaper: self.process(Col::ReaperPid, Col::ReaperStartNs),
            }),
            Kind::Reaped => What::Reaped(event::Reaped {
                cpu_ns: self.u64(Col::CpuNs),
                usage: self.usage(),
            }),
            Kind::Memory => What::Memory {
                mm: self.u64(Col::Mm)?,
                now: self.memory()?,
                parts: self.parts(),
                churn: self.churn(),
                cpu_ns: self.u64(Col::CpuNs),
                charge: self.u64(Col::Charge),
            },
            Kind::MmEnd => What::MmEnd(self.mm_end()?),
            Kind::Snapshot => What::Snapshot(event::Snapshot {
                parent: self.process(Col::ParentPid, Col::ParentStartNs),
                zombie: self.flag(Col::Zombie)?,
                first_run_ns: self.u64(Col::FirstRunNs),
                stopped_ns: self.u64(Col::StoppedNs),
                found: self.found(),
            }),
            Kind::Environment => What::Environment(event::Environment {
                values: self.bytes_list(Col::Env, Col::EnvRaw)?,
                is_whole: self.flag(Col::EnvWhole)?,
            }),
            Kind::Title => What::Title(event::Title {
                words: self.argv()?,
                is_cut: self.flag(Col::ArgvTruncated)?,
            }),
            Kind::Loss => What::Loss(self.loss()?),
            Kind::Oom => What::Oom(event::Oom {
                mm: self.u64(Col::Mm),
                memory: self.memory(),
                scope: self
                    .word(Col::OomScope)
                    .and_then(event::OomScope::from_name),
                cgroup: self.word(Col::OomCgroup).map(str::to_owned),
                limit: self.u64(Col::OomLimit),
            }),
            Kind::Signal => What::Signal(self.signal()?),
            Kind::ExecFailed => What::ExecFailed(event::ExecFailed {
                errno: self.u32(Col::Errno)?,
                filename: self.text(Col::Filename, Col::FilenameRaw)?,
            }),
            Kind::ForkFailed => What::ForkFailed(self.fork_failed()?),
            Kind::Sleep => What::Sleep(event::Sleep {
                since_ns: self.u64(Col::SinceNs)?,
                state: event::WaitState::from_name(self.word(Col::Waited)?)?,
                call: self.word(Col::Syscall).map(str::to_owned),
                still: self.flag(Col::Still)?,
            }),
            Kind::Session => What::Session(self.u32(Col::Session)?),
            Kind::Moved => What::Moved(event::Moved {
                hierarchy: self.u32(Col::Hierarchy),
                path: self.text(Col::Cgroup, Col::CgroupRaw)?,
            }),
        })
    }

    /// Only of a process that was there when the recording began its name is told.
    fn found(self) -> Option<event::Found> {
        let comm = self.text(Col::Comm, Col::CommRaw)?;
        Some(event::Found {
            mm: self.u64(Col::Mm),
            memory: self.memory(),
            threads: self.u32(Col::Threads)?,
            has_executed: self.flag(Col::Executed)?,
            ns_pid: self.u32(Col::NsPid),
            ns_level: self.u32(Col::NsLevel),
            comm,
            argv: self.argv(),
            cwd: self.directory(),
        })
    }

    fn directory(self) -> Option<event::Directory> {
        let states = self.list(Col::CwdState)?;
        let states = states.as_string_opt::<i32>()?;
        let is = |word| states.iter().any(|state| state == Some(word));
        Some(event::Directory {
            path: self.text(Col::Cwd, Col::CwdRaw)?,
            is_cut: is(CWD_CUT),
            is_deleted: is(CWD_DELETED),
            is_unreachable: is(CWD_UNREACHABLE),
        })
    }

    fn fork(self) -> Option<event::Fork> {
        Some(event::Fork {
            creator: self.process(Col::CreatorPid, Col::CreatorStartNs),
            creator_tid: self.u32(Col::CreatorTid),
            creator_threads: self.u32(Col::CreatorThreads),
            clone_flags: self.u64(Col::CloneFlags),
            mm: self.u64(Col::Mm),
            creator_mm: self.u64(Col::OldMm),
            memory: self.memory()?,
            comm: self.text(Col::Comm, Col::CommRaw)?,
            ns_pid: self.u32(Col::NsPid),
            ns_level: self.u32(Col::NsLevel),
            fork_ns: self.u64(Col::ForkNs),
            creator_rss: self.u64(Col::CreatorRss),
            creator_vms: self.u64(Col::CreatorVms),
            creator_page_tables: self.u64(Col::CreatorPageTables),
        })
    }

    fn fork_failed(self) -> Option<event::ForkFailed> {
        let by = self.word(Col::RefusedBy);
        Some(event::ForkFailed {
            errno: self.u32(Col::Errno)?,
            refused_by: by.and_then(event::RefusedBy::from_name),
            limit: self.u64(Col::RefusedLimit),
            cgroup: self.word(Col::RefusedCgroup).map(str::to_owned),
        })
    }

    fn signal(self) -> Option<event::Signal> {
        Some(event::Signal {
            signal: self.u32(Col::Signal)?,
            code: self.i32(Col::SignalCode),
            for_process: self.flag(Col::ForProcess)?,
            sender: event::Sender {
                kind: event::SenderKind::from_name(self.word(Col::Sender)?)?,
                process: self.process(Col::SenderPid, Col::SenderStartNs),
                tid: self.u32(Col::SenderTid),
                comm: self.text(Col::SenderComm, Col::SenderCommRaw)?,
            },
        })
    }

    fn exec(self) -> Option<event::Exec> {
        Some(event::Exec {
            filename: self.text(Col::Filename, Col::FilenameRaw)?,
            argv: self.argv()?,
            argv_bytes: self.u64(Col::ArgvBytes)?,
            argv_truncated: self.flag(Col::ArgvTruncated)?,
            comm: self.text(Col::Comm, Col::CommRaw)?,
            old_tid: self.u32(Col::OldTid)?,
            mm: self.u64(Col::Mm),
            old_mm: self.u64(Col::OldMm),
            memory: self.memory()?,
            cwd: self.directory(),
        })
    }

    fn usage(self) -> event::Usage {
        event::Usage {
            user_ns: self.u64(Col::UserNs),
            system_ns: self.u64(Col::SystemNs),
            faults_minor: self.u64(Col::FaultsMinor),
            faults_major: self.u64(Col::FaultsMajor),
            switches_voluntary: self.u64(Col::SwitchesVoluntary),
            switches_involuntary: self.u64(Col::SwitchesInvoluntary),
            read_chars: self.u64(Col::ReadChars),
            written_chars: self.u64(Col::WrittenChars),
            read_bytes: self.u64(Col::ReadBytes),
            written_bytes: self.u64(Col::WrittenBytes),
        }
    }

    fn word(self, col: Col) -> Option<&'a str> {
        match self.at(col)? {
            Values::Text(array) => Some(array.value(self.row)),
            _ => None,
        }
    }

    fn memory(self) -> Option<event::Memory> {
        Some(event::Memory {
            anon: self.u64(Col::RssAnon)?,
            file: self.u64(Col::RssFile)?,
            shmem: self.u64(Col::RssShmem)?,
            swap: self.u64(Col::Swap)?,
            vms: self.u64(Col::Vms)?,
        })
    }

    fn parts(self) -> Option<event::Parts> {
        Some(event::Parts {
            data: self.u64(Col::VmsData)?,
            exec: self.u64(Col::VmsExec)?,
            stack: self.u64(Col::VmsStack)?,
            page_tables: self.u64(Col::PageTables)?,
        })
    }

    fn churn(self) -> Option<event::Churn> {
        Some(event::Churn {
            grown: self.u64(Col::AnonGrown)?,
            write_faults: self.u64(Col::WriteFaults),
        })
    }

    fn mm_end(self) -> Option<event::MmEnd> {
        Some(event::MmEnd {
            mm: self.u64(Col::Mm)?,
            peak: event::Memory {
                anon: self.u64(Col::PeakRssAnon)?,
                file: self.u64(Col::PeakRssFile)?,
                shmem: self.u64(Col::PeakRssShmem)?,
                swap: self.u64(Col::SwapAtPeak)?,
                vms: self.u64(Col::VmsAtPeak)?,
            },
            peak_ns: self.u64(Col::PeakNs)?,
            last: self.memory()?,
            peak_vms: self.u64(Col::PeakVms)?,
            peak_swap: self.u64(Col::PeakSwap)?,
            churn: self.churn(),
            peak_bound: self.u64(Col::PeakRssBound).unwrap_or(0),
        })
    }

    fn loss(self) -> Option<event::Loss> {
        let kinds = self.list(Col::LostKinds)?;
        let counts = self.list(Col::LostCounts)?;
        let (kinds, counts) = (
            kinds.as_string_opt::<i32>()?,
            counts.as_primitive_opt::<Int64Type>()?,
        );
        let lost: BTreeMap<String, u64> = kinds
            .iter()
            .zip(counts)
            .map(|(kind, count)| Some((kind?.to_owned(), count?.cast_unsigned())))
            .collect::<Option<_>>()?;
        (kinds.len() == counts.len()).then_some(event::Loss { lost })
    }

    fn argv(self) -> Option<Vec<Vec<u8>>> {
        self.bytes_list(Col::Argv, Col::ArgvRaw)
    }

    fn bytes_list(self, text: Col, raw: Col) -> Option<Vec<Vec<u8>>> {
        if let Some(raw) = self.list(raw) {
            let raw = raw.as_binary_opt::<i32>()?;
            return raw.iter().map(|arg| arg.map(<[u8]>::to_vec)).collect();
        }
        let text = self.list(text)?;
        let text = text.as_string_opt::<i32>()?;
        text.iter()
            .map(|arg| arg.map(|arg| arg.as_bytes().to_vec()))
            .collect()
    }

    fn text(self, text: Col, raw: Col) -> Option<Vec<u8>> {
        if let Some(Values::Bytes(array)) = self.at(raw) {
            return Some(array.value(self.row).to_vec());
        }
        match self.at(text)? {
            Values::Text(array) => Some(array.value(self.row).as_bytes().to_vec()),
            _ => None,
        }
    }

    fn process(self, pid: Col, start: Col) -> Option<ProcessKey> {
        Some(ProcessKey {
            pid: self.u32(pid)?,
            start_ns: self.u64(start)?,
        })
    }

    fn list(self, col: Col) -> Option<arrow_array::ArrayRef> {
        match self.at(col)? {
            Values::List(array) => Some(array.value(self.row)),
            _ => None,
        }
    }

    fn flag(self, col: Col) -> Option<bool> {
        match self.at(col)? {
            Values::Bool(array) => Some(array.value(self.row)),
            _ => None,
        }
    }

    fn u32(self, col: Col) -> Option<u32> {
        match self.at(col)? {
            Values::UInt32(array) => Some(array.value(self.row)),
            Values::Int32(array) => u32::try_from(array.value(self.row)).ok(),
            Values::UInt64(array) => u32::try_from(array.value(self.row)).ok(),
            Values::Int64(array) => u32::try_from(array.value(self.row)).ok(),
            _ => None,
        }
    }

    fn i32(self, col: Col) -> Option<i32> {
        match self.at(col)? {
            Values::Int32(array) => Some(array.value(self.row)),
            Values::Int64(array) => i32::try_from(array.value(self.row)).ok(),
            _ => None,
        }
    }

    fn u64(self, col: Col) -> Option<u64> {
        match self.at(col)? {
            Values::Int64(array) => Some(array.value(self.row).cast_unsigned()),
            Values::UInt64(array) => Some(array.value(self.row)),
            Values::UInt32(array) => Some(array.value(self.row).into()),
            Values::Int32(array) => u64::try_from(array.value(self.row)).ok(),
            _ => None,
        }
    }

    /// The column, if it is there and has a value in this row.
    fn at(self, col: Col) -> Option<&'a Values> {
        let values = self.batch.columns[col as usize].as_ref()?;
        let array: &dyn Array = match values {
            Values::Int64(array) => array,
            Values::UInt64(array) => array,
            Values::Int32(array) => array,
            Values::UInt32(array) => array,
            Values::Bool(array) => array,
            Values::Text(array) => array,
            Values::Bytes(array) => array,
            Values::List(array) => array,
        };
        array.is_valid(self.row).then_some(values)
    }
}
