//! Who is still there when the recording ends.

use std::fs;

use monitor_ebpf::abi::TrackedProcess;

use super::load::Loaded;
use crate::{
    event::{Event, Snapshot, Subject, What},
    host::facts,
    units::ProcessKey,
};

/// One snapshot for each traced process that the kernel hasn't freed.
///
/// The list is the kernel side's own, so that a process whose end was lost isn't taken for alive.
/// The parent is `/proc`'s; its start is known if it is a traced process too.
pub(super) fn snapshots(loaded: &Loaded) -> Vec<Event> {
    let tracked = loaded.tracked();
    let mut events: Vec<Event> = tracked
        .iter()
        .filter(|(_, process)| process.flags & TrackedProcess::PENDING == 0)
        .map(|(pid, process)| {
            let parent = parent_of(*pid).map(|parent| {
                let known = tracked.iter().find(|(pid, _)| *pid == parent);
                ProcessKey {
                    pid: parent,
                    start_ns: known.map_or(0, |(_, process)| process.start_ns),
                }
            });
            let zombie = process.flags & TrackedProcess::DEAD != 0;
            let key = ProcessKey {
                pid: *pid,
                start_ns: process.start_ns,
            };
            Event {
                time_ns: facts::boot_ns(),
                cpu: 0,
                subject: Some(Subject {
                    process: key,
                    tid: *pid,
                }),
                what: What::Snapshot(Snapshot { parent, zombie }),
            }
        })
        .collect();
    events.sort_by_key(|event| (event.time_ns, event.subject.map(|subject| subject.process)));
    events
}

/// Whether any traced process can still do something.
pub(super) fn any_alive(loaded: &Loaded) -> bool {
    loaded
        .tracked()
        .iter()
        .any(|(_, process)| process.flags & TrackedProcess::DEAD == 0)
}

/// Field 4 of `/proc/PID/stat`; the name before it may contain anything, `)` too.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}
