//! Processes that are there before the recording begins: named, found, and what `/proc` tells of them.
//!
//! Why that is without a gap is in the kernel side's `snapshot.rs`.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{ErrorKind, Read},
};

use aya::{
    Btf as LoaderBtf, Pod,
    maps::{Array, HashMap as KernelMap},
    programs::{Iter, ProgramError},
};
use monitor_ebpf::abi::TrackedProcess;
use nix::unistd::getuid;

use super::{
    RecordError,
    directory::working_directory,
    load::{Loaded, NO_MAP},
    refusal::{LoadError, chain},
};
use crate::{
    event::{Directory, Event, Found, Mm, What},
    host::facts,
    units::ProcessKey,
};

/// Which processes are recorded besides the command and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    /// These, which are there already, and their descendants.
    pub pids: Vec<u32>,
    /// All of the host.
    pub whole_host: bool,
    /// Those in this control group and in those below it, also who comes later.
    pub group: Option<Named>,
}

/// A control group as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By its folder, or as `/proc/PID/cgroup` has it.
    Path(String),
    /// By the container that has it: its name, or the beginning of its id.
    Container(String),
}

impl Named {
    /// As it was typed.
    pub fn text(&self) -> &str {
        match self {
            Self::Path(text) | Self::Container(text) => text,
        }
    }

    /// It can't be recorded.
    pub(super) fn unusable(&self, why: impl Into<String>) -> RecordError {
        match self {
            Self::Path(path) => RecordError::Group {
                path: path.into(),
                why: why.into(),
            },
            Self::Container(name) => RecordError::Container {
                name: name.clone(),
                why: why.into(),
            },
        }
    }
}

impl Attach {
    /// Whether processes that are there already are recorded.
    pub fn is_wanted(&self) -> bool {
        self.whole_host || self.group.is_some() || !self.pids.is_empty()
    }

    /// Whether the caller may record them all.
    ///
    /// # Errors
    /// One isn't there, is a thread, or belongs to another user and the caller isn't root.
    pub fn check(&self) -> Result<(), RecordError> {
        let caller = getuid();
        for pid in &self.pids {
            let refuse = |why: String| Err(RecordError::Process { pid: *pid, why });
            let Some(status) = Status::read(*pid) else {
                return refuse("there is none".to_owned());
            };
            if status.process != *pid {
                return refuse(format!("it is a thread of process {}", status.process));
            }
            let is_own = status.uids.iter().all(|uid| *uid == caller.as_raw());
            if !caller.is_root() && !is_own {
                return refuse("only root may record the processes of others".to_owned());
            }
        }
        if self.whole_host && !caller.is_root() {
            return Err(RecordError::WholeHost);
        }
        if let Some(named) = self.group.as_ref().filter(|_| !caller.is_root()) {
            return Err(named.unusable("only root may record whoever is in it"));
        }
        Ok(())
    }
}

/// What `/proc/PID/status` says.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    process: u32,
    /// Real, effective, saved and of files.
    uids: Vec<u32>,
}

impl Status {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::split_whitespace)
        };
        let uids = field("Uid:")?.map(str::parse).collect::<Result<_, _>>();
        Some(Self {
            process: field("Tgid:")?.next()?.parse().ok()?,
            uids: uids.ok()?,
        })
    }
}

/// Most walks over all tasks. Each finds only who was made, before its creator was found, behind the walk; that
/// there is always somebody means that something is wrong.
const MOST_WALKS: u32 = 1000;

/// Finds all that are there, while the hooks are attached, and reads their arguments. With the time from which on
/// nobody who belongs to them gets lost, ns since boot.
///
/// # Errors
/// The kernel refuses the program, or a process has ended meanwhile.
pub(super) fn find(loaded: &mut Loaded, attach: &Attach) -> Result<(Arguments, u64), RecordError> {
    for pid in &attach.pids {
        set(loaded, "TARGETS", *pid, 1_u8)?;
    }
    let start_ns = walk_all(loaded)?;
    let tracked: HashMap<u32, TrackedProcess> = loaded.tracked().into_iter().collect();
    for pid in &attach.pids {
        if !tracked.contains_key(pid) {
            let why = "it has ended".to_owned();
            return Err(RecordError::Process { pid: *pid, why });
        }
    }
    Ok((Arguments::read(loaded, &tracked), start_ns))
}

/// Walks until nobody new is found; when it began, ns since boot.
fn walk_all(loaded: &mut Loaded) -> Result<u64, LoadError> {
    let types = LoaderBtf::from_sys_fs().map_err(|error| LoadError::Object(error.to_string()))?;
    let name = loaded.walk_program();
    let refused = |error: ProgramError| LoadError::Program {
        hook: "iter/task",
        reason: chain(&error),
    };
    let program: &mut Iter = loaded
        .ebpf
        .program_mut(name)
        .ok_or_else(|| LoadError::Object(format!("the object has no program {name}")))?
        .try_into()
        .map_err(refused)?;
    program.load("task", &types).map_err(refused)?;
    set_walking(loaded, facts::boot_ns())?;
    let start_ns = facts::boot_ns();
    for _ in 0..MOST_WALKS {
        let before = found(loaded)?;
        set_walking(loaded, facts::boot_ns())?;
        walk(loaded, name)?;
        if found(loaded)? == before {
            set_walking(loaded, 0)?;
            return Ok(start_ns);
        }
    }
    Err(LoadError::Object(format!(
        "new processes were found in each of {MOST_WALKS} walks"
    )))
}

/// Has the kernel show each task to the program.
fn walk(loaded: &mut Loaded, name: &str) -> Result<(), LoadError> {
    let failed = |error: &dyn std::error::Error| LoadError::Program {
        hook: "iter/task",
        reason: error.to_string(),
    };
    let program: &mut Iter = loaded
        .ebpf
        .program_mut(name)
        .ok_or_else(|| LoadError::Object(format!("the object has no program {name}")))?
        .try_into()
        .map_err(|error: ProgramError| failed(&error))?;
    let link = program.attach().map_err(|error| failed(&error))?;
    let link = program.take_link(link).map_err(|error| failed(&error))?;
    let mut file = link.into_file().map_err(|error| failed(&error))?;
    let mut text = [0_u8; 4096];
    loop {
        match file.read(&mut text) {
            Ok(0) => return Ok(()),
            // It writes nothing; after many tasks the kernel wants to be called again.
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Processes found so far that were there when the walk began which found them.
fn found(loaded: &Loaded) -> Result<u64, LoadError> {
    let map = loaded.ebpf.map("FOUND").ok_or_else(no_map)?;
    let map = Array::<_, u64>::try_from(map).map_err(|error| wrong(&error))?;
    map.get(&0, 0).map_err(|error| wrong(&error))
}

/// From then on it is being looked who is there; 0: not any more.
fn set_walking(loaded: &mut Loaded, since_ns: u64) -> Result<(), LoadError> {
    let map = loaded.ebpf.map_mut("FOUND").ok_or_else(no_map)?;
    let mut map = Array::<_, u64>::try_from(map).map_err(|error| wrong(&error))?;
    map.set(1, since_ns, 0).map_err(|error| wrong(&error))
}

/// Puts something into a map of the kernel side.
pub(super) fn set<K: Pod, V: Pod>(
    loaded: &mut Loaded,
    map: &str,
    key: K,
    value: V,
) -> Result<(), LoadError> {
    let map = loaded.ebpf.map_mut(map).ok_or_else(no_map)?;
    let mut map = KernelMap::<_, K, V>::try_from(map).map_err(|error| wrong(&error))?;
    map.insert(key, value, 0).map_err(|error| wrong(&error))
}

pub(super) fn no_map() -> LoadError {
    LoadError::Object(NO_MAP.into())
}

pub(super) fn wrong(error: &aya::maps::MapError) -> LoadError {
    LoadError::Object(chain(error))
}

/// Most bytes of an argument list that are read, as of an exec.
const MOST_ARGUMENTS: u64 = 2 << 20;

/// What `/proc` tells of processes that were there: of each which address space it had meanwhile, its arguments and its
/// working directory.
#[derive(Debug, Default)]
pub(super) struct Arguments(HashMap<ProcessKey, Told>);

#[derive(Debug)]
struct Told {
    mm: Mm,
    arguments: Option<Vec<u8>>,
    cwd: Option<Directory>,
}

impl Told {
    fn read(pid: u32, mm: Mm) -> Self {
        Self {
            mm,
            arguments: command_line(pid),
            cwd: working_directory(pid),
        }
    }
}

impl Arguments {
    /// Reads those of all that are traced. Who has executed something meanwhile has another address space
    /// afterwards, and what was read may be of either program.
    fn read(loaded: &Loaded, tracked: &HashMap<u32, TrackedProcess>) -> Self {
        let is_there = |process: &TrackedProcess| {
            process.flags & (TrackedProcess::DEAD | TrackedProcess::PENDING) == 0 && process.mm != 0
        };
        let mut read: Vec<(ProcessKey, Told)> = Vec::new();
        for (pid, process) in tracked.iter().map(|(pid, process)| (*pid, process)) {
            if is_there(process) {
                let start_ns = process.start_ns;
                read.push((ProcessKey { pid, start_ns }, Told::read(pid, process.mm)));
            }
        }
        let after: HashMap<u32, TrackedProcess> = loaded.tracked().into_iter().collect();
        let is_same = |key: &ProcessKey, mm: Mm| {
            let now = after.get(&key.pid);
            now.is_some_and(|now| now.start_ns == key.start_ns && now.mm == mm && is_there(now))
        };
        let sure = read.into_iter().filter(|(key, told)| is_same(key, told.mm));
        Self(sure.collect())
    }

    /// Reads those of a process that comes into a control group, as its event is taken from the kernel.
    pub(super) fn look_at(&mut self, loaded: &Loaded, event: &Event) {
        let (What::Snapshot(snapshot), Some(subject)) = (&event.what, event.subject) else {
            return;
        };
        let key = subject.process;
        let mm = snapshot.found.as_ref().and_then(|found| found.mm);
        let has_it = || {
            let now = loaded.tracked_process(key.pid)?;
            (now.start_ns == key.start_ns && Some(now.mm) == mm).then_some(now.mm)
        };
        // Who executes something meanwhile has another address space afterwards.
        if !self.0.contains_key(&key)
            && let Some(mm) = has_it()
        {
            let told = Told::read(key.pid, mm);
            if has_it().is_some() {
                self.0.insert(key, told);
            }
        }
    }

    /// Adds to what an event tells of a process that was there.
    pub(super) fn complete(&mut self, event: &mut Event) {
        let subject = event.subject;
        let What::Snapshot(snapshot) = &mut event.what else {
            return;
        };
        let (Some(found), Some(subject)) = (&mut snapshot.found, subject) else {
            return;
        };
        let told = self.0.remove(&subject.process);
        if let Some(told) = told.filter(|told| found.mm == Some(told.mm)) {
            if let Some(bytes) = told.arguments {
                take(found, &bytes);
            }
            found.cwd = told.cwd;
        }
    }
}

/// Splits an argument list at its NULs.
fn take(found: &mut Found, bytes: &[u8]) {
    let list = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    found.argv = Some(list.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect());
}

/// The argument list as it is now; a program may have written something else there. `None` if there is none, or it
/// can't be read, or is longer than what is kept.
fn command_line(pid: u32) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_ARGUMENTS + 1).read_to_end(&mut bytes).ok()?;
    (read > 0 && read as u64 <= MOST_ARGUMENTS).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Snapshot, Subject};

    #[test]
    fn a_thread_and_an_owner_are_told_by_status() {
        let text = "Name:\ta\nTgid:\t7\nPid:\t8\nUid:\t1000\t0\t1000\t1000\n";
        let status = Status::parse(text).unwrap();
        assert_eq!(
            (status.process, status.uids),
            (7, vec![1000, 0, 1000, 1000])
        );
        for broken in [
            "",
            "Tgid:\t7\n",
            "Tgid:\tx\nUid:\t1\n",
            "Tgid:\t7\nUid:\tx\n",
        ] {
            assert_eq!(Status::parse(broken), None, "{broken:?}");
        }
        let own = Status::read(std::process::id()).unwrap();
        assert_eq!(own.process, std::process::id());
    }

    #[test]
    fn who_is_not_there_is_refused() {
        let attach = Attach {
            // Above the highest that a kernel gives.
            pids: vec![std::process::id(), 5_000_000],
            ..Attach::default()
        };
        let error = attach.check().unwrap_err().to_string();
        assert_eq!(error, "cannot record process 5000000: there is none");
        assert!(attach.is_wanted() && !Attach::default().is_wanted());
    }

    #[test]
    fn arguments_belong_to_the_address_space_that_they_were_read_from() {
        let process = ProcessKey {
            pid: 7,
            start_ns: 70,
        };
        let told = |mm| {
            let cwd = Directory {
                path: b"/w".to_vec(),
                ..Directory::default()
            };
            let told = Told {
                mm: 3,
                arguments: Some(b"sh\0-c\0\0".to_vec()),
                cwd: Some(cwd),
            };
            let mut arguments = Arguments(HashMap::from([(process, told)]));
            let found = Found {
                mm,
                ..Found::default()
            };
            let mut event = Event {
                time_ns: 0,
                cpu: 0,
                subject: Some(Subject { process, tid: 7 }),
                what: What::Snapshot(Snapshot {
                    found: Some(found),
                    ..Snapshot::default()
                }),
            };
            arguments.complete(&mut event);
            match event.what {
                What::Snapshot(snapshot) => {
                    let found = snapshot.found.unwrap();
                    (found.argv, found.cwd.map(|cwd| cwd.path))
                }
                other => panic!("{other:?}"),
            }
        };
        let words = [b"sh".to_vec(), b"-c".to_vec(), Vec::new()];
        assert_eq!(told(Some(3)), (Some(words.to_vec()), Some(b"/w".to_vec())));
        assert_eq!(told(Some(4)), (None, None));
        assert_eq!(told(None), (None, None));
    }
}
