//! All that takes rights, before the recording begins.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    thread,
    time::Duration,
};

use monitor_ebpf::abi::MOST_CPUS;
use nix::unistd::Pid;
use tokio::time::Instant;

use super::{
    Options, RecordError,
    attach::{self, Arguments},
    charge,
    group::Target,
    launch::{Child, Command},
    load::{LoadOptions, Loaded},
    privileges, redact,
    refusal::LoadError,
    ring::ring_size,
    verify::Kept,
};
use crate::{
    event::{Conditions, Recording},
    host::{conditions::conditions, facts},
};

/// Everything that takes rights, done.
pub(super) struct Prepared {
    pub(super) loaded: Loaded,
    /// What will be the command.
    pub(super) child: Option<Child>,
    pub(super) charge: Option<charge::Watch>,
    /// Of processes that are there already.
    pub(super) arguments: Arguments,
    /// The control group that is recorded.
    pub(super) target: Option<Target>,
    pub(super) kept: Option<Kept>,
    /// When the recording ends whatever still runs.
    pub(super) deadline: Option<Instant>,
    pub(super) recording: Recording,
}

/// Puts the kernel side in place, forks what will be the command, finds who is there, and gives up what isn't needed
/// any more.
pub(super) fn prepare(words: &[OsString], options: &Options) -> Result<Prepared, RecordError> {
    let invoker = options.invoker.as_ref();
    let environment = invoker.map_or_else(
        || std::env::vars_os().collect(),
        |invoker| invoker.environment.clone(),
    );
    options.attach.check()?;
    let stays = options.until.duration.is_some();
    let group = options.attach.group.as_ref();
    let mut target = group.map(|named| Target::new(named, stays)).transpose()?;
    let conditions = conditions_of(options, !words.is_empty());
    let command = (!words.is_empty())
        .then(|| Command::find(words, &environment, invoker))
        .transpose()?
        .map(|command| {
            if options.no_new_privileges {
                command.without_new_privileges()
            } else {
                command
            }
        });
    let plan = command
        .is_some()
        .then(|| charge::Plan::new(&options.charge))
        .transpose()?;
    let buffer_bytes = ring_size(options.buffer_bytes);
    let mut loaded = load(options, buffer_bytes)?;
    let child = command.map(Command::fork).transpose()?;
    let root = child
        .as_ref()
        .map(|child| child.pid.as_raw().unsigned_abs());
    let mut charge = None;
    if let (Some(root), Some(plan)) = (root, plan) {
        loaded.track_root(root)?;
        charge = plan.begin(root)?;
    }
    if charge.as_ref().is_some_and(charge::Watch::is_charged) {
        loaded.read_charge()?;
    }
    let (mut arguments, mut start_ns) = (Arguments::default(), facts::boot_ns());
    let mut attached_ns = None;
    let mut deadline = None;
    if let Some(target) = &mut target {
        deadline = options.until.deadline();
        target.wait(deadline.map(Into::into), options.tell)?;
        target.tell(&mut loaded)?;
    }
    if options.attach.is_wanted() {
        (arguments, start_ns) = attach::find(&mut loaded, &options.attach)?;
        attached_ns = Some(facts::boot_ns());
    }
    if let Some(target) = target.as_mut().filter(|_| !loaded.tracked().is_empty()) {
        target.recorded.first_ns = Some(start_ns);
    }
    let kept = options.verify.then(|| loaded.kept()).transpose()?;
    privileges::give_up(invoker, options.verify, || loaded.can_read_maps())?;
    let recording = Recording {
        buffer_bytes: u64::from(buffer_bytes),
        charge: charge.as_ref().map(charge::Watch::charge),
        root_pid: root.unwrap_or(0),
        attached_pids: options.attach.pids.clone(),
        whole_host: options.attach.whole_host,
        group: target.as_ref().map(|target| target.recorded.clone()),
        attached_ns,
        start_ns,
        conditions,
        ..describe(words, options, &environment, &loaded)
    };
    Ok(Prepared {
        loaded,
        child,
        charge,
        arguments,
        target,
        kept,
        deadline: deadline.or_else(|| options.until.deadline()),
        recording,
    })
}

/// Conditions of the command, which inherits them from here, or of the first process that was named. Before anything
/// is loaded: that may raise a limit, which the command won't have.
fn conditions_of(options: &Options, has_command: bool) -> Option<Conditions> {
    let of = |process: &str| conditions(Path::new("/"), process);
    if let Some(pid) = options.attach.pids.first() {
        return Some(of(&pid.to_string()));
    }
    let invoker = options.invoker.as_ref();
    has_command.then(|| {
        let own = of("self");
        Conditions {
            uid: invoker.map(|invoker| invoker.uid.as_raw()).or(own.uid),
            ..own
        }
    })
}

/// Lets the child become the command; returns when it runs.
pub(super) fn start(child: Child, loaded: &Loaded) -> Result<(), RecordError> {
    let pid = child.release()?;
    let sees_execs = !loaded
        .missing
        .iter()
        .any(|hook| hook == "sched_process_exec");
    if sees_execs {
        check_start(loaded, pid)?;
    }
    Ok(())
}

/// Puts the kernel side in place.
fn load(options: &Options, buffer_bytes: u32) -> Result<Loaded, LoadError> {
    Loaded::new(&LoadOptions {
        buffer_bytes,
        resolution: options.resolution,
        without: &options.without,
        passes: options.passes,
        most_cpus: options.most_cpus.unwrap_or(MOST_CPUS),
        full_sum_cpus: options.full_sum_cpus,
        verify: options.verify,
        failed_calls: options.failed_calls,
        attach: &options.attach,
        debug: options.debug,
    })
}

/// What is recorded here and how, as far as it is known before the command runs.
fn describe(
    words: &[OsString],
    options: &Options,
    environment: &[(OsString, OsString)],
    loaded: &Loaded,
) -> Recording {
    let mut recording = facts::recording(&shown(words, options), environment);
    options.resolution.note(&mut recording);
    loaded.note(&mut recording);
    recording
}

/// The command as it is written down.
fn shown(words: &[OsString], options: &Options) -> Vec<OsString> {
    let mut argv: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    if !options.keep_arguments {
        redact::hide(&mut argv);
    }
    argv.into_iter().map(OsString::from_vec).collect()
}

/// Whether the command really runs: its first exec was seen.
///
/// Exec closes the pipe a little before its own event.
fn check_start(loaded: &Loaded, pid: Pid) -> Result<(), RecordError> {
    for _ in 0..200 {
        match loaded.root_has_started(pid.as_raw().unsigned_abs()) {
            Some(true) => return Ok(()),
            Some(false) => thread::sleep(Duration::from_micros(500)),
            None => {
                let reason = std::io::Error::other("it was killed before it ran");
                return Err(RecordError::system("cannot start the command", reason));
            }
        }
    }
    Ok(())
}
