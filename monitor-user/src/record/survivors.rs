//! Who is still there when the recording ends, and what of them waits.

use std::fs;

use monitor_ebpf::abi::{TaskState, ThreadState, TrackedProcess};

use super::load::Loaded;
use crate::{
    decode::{call_name, wait_state},
    event::{Event, Sleep, Snapshot, Subject, What},
    host::facts,
    units::ProcessKey,
};

/// One snapshot for each traced process that is alive or waits to be reaped.
///
/// The list is the kernel side's own, so that a process whose end was lost isn't taken for alive.
/// It also has the dead that were reaped and that the kernel hasn't freed: `/proc` tells those apart.
/// The parent is `/proc`'s; its start is known if it is a traced process too.
pub(super) fn snapshots(loaded: &Loaded) -> Vec<Event> {
    let tracked = loaded.tracked();
    let waiting = loaded.waiting();
    let is_shown = |process: &TrackedProcess| process.flags & TrackedProcess::PENDING == 0;
    let shown = tracked.iter().filter(|(_, process)| is_shown(process));
    let mut events: Vec<Event> = shown
        .filter_map(|(pid, process)| {
            let is_dead = process.flags & TrackedProcess::DEAD != 0;
            let look = look(*pid);
            if is_dead && look.is_none_or(|(state, _)| state != 'Z') {
                return None;
            }
            let parent = look.map(|(_, parent)| {
                let known = tracked.iter().find(|(pid, _)| *pid == parent);
                ProcessKey {
                    pid: parent,
                    start_ns: known.map_or(0, |(_, process)| process.start_ns),
                }
            });
            let key = ProcessKey {
                pid: *pid,
                start_ns: process.start_ns,
            };
            let time_ns = facts::boot_ns();
            let stop = waiting
                .iter()
                .find(|(tid, thread)| tid == pid && thread.state & TaskState::STOPPED != 0);
            let stop_ns = stop.map_or(0, |(_, thread)| time_ns.saturating_sub(thread.since_ns));
            Some(Event {
                time_ns,
                cpu: 0,
                subject: Some(Subject {
                    process: key,
                    tid: *pid,
                }),
                what: What::Snapshot(Snapshot {
                    parent,
                    zombie: is_dead,
                    first_run_ns: (process.first_run_ns != 0).then_some(process.first_run_ns),
                    stopped_ns: loaded.sleep_ns.map(|_| process.stopped_ns + stop_ns),
                    found: None,
                }),
            })
        })
        .collect();
    events.extend(sleeps(loaded, &tracked, &waiting));
    events.sort_by_key(|event| (event.time_ns, event.subject.map(|subject| subject.process)));
    events
}

/// The waits that aren't over, of those that have taken long enough to be told of.
fn sleeps<'a>(
    loaded: &Loaded,
    tracked: &'a [(u32, TrackedProcess)],
    waiting: &'a [(u32, ThreadState)],
) -> impl Iterator<Item = Event> + 'a {
    let time_ns = facts::boot_ns();
    let least_ns = loaded.sleep_ns.unwrap_or(u64::MAX);
    waiting.iter().filter_map(move |(tid, thread)| {
        let (_, process) = tracked.iter().find(|(pid, process)| {
            *pid == thread.pid && process.flags & TrackedProcess::PENDING == 0
        })?;
        (time_ns.saturating_sub(thread.since_ns) >= least_ns).then_some(Event {
            time_ns,
            cpu: 0,
            subject: Some(Subject {
                process: ProcessKey {
                    pid: thread.pid,
                    start_ns: process.start_ns,
                },
                tid: *tid,
            }),
            what: What::Sleep(Sleep {
                since_ns: thread.since_ns,
                state: wait_state(thread.state),
                call: call_name(thread.call),
                still: true,
            }),
        })
    })
}

/// Whether any traced process can still do something.
pub(super) fn any_alive(loaded: &Loaded) -> bool {
    loaded.is_any(|process| process.flags & TrackedProcess::DEAD == 0)
}

/// State and parent: fields 3 and 4 of `/proc/PID/stat`; the name before them may contain anything.
fn look(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(&stat)
}

fn parse(stat: &str) -> Option<(char, u32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_fields_behind_it() {
        assert_eq!(parse("7 (sh) S 3 7 7 0"), Some(('S', 3)));
        assert_eq!(parse("7 (a) Z 1 (b)) R 42 7"), Some(('R', 42)));
        for broken in ["", "7 (sh)", "7 (sh) S", "7 (sh) S x"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
        let (_, parent) = look(std::process::id()).unwrap();
        assert_eq!(parent, std::os::unix::process::parent_id());
    }
}
