//! What was recorded, where, how.

use std::collections::BTreeMap;

use serde::Serialize;

use super::process::ExitReport;
use crate::event::{Conditions, RecordedGroup, Recording};

/// What was recorded, where, how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingReport {
    /// Version of rtrace that recorded.
    pub rtrace_version: String,
    /// The command.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine.
    pub machine: String,
    /// CPUs.
    pub cpus: u32,
    /// Memory of the host.
    pub memory_bytes: u64,
    /// Size of a page.
    pub page_size: u64,
    /// Environment that names the job.
    pub env: BTreeMap<String, String>,
    /// What bounds and shapes the command from outside; `None` if that isn't known.
    pub conditions: Option<Conditions>,
    /// Add this to a time to get ns since 1970.
    pub wall_offset_ns: i64,
    /// Start.
    pub start_ns: u64,
    /// End; `None` if the recorder didn't say.
    pub end_ns: Option<u64>,
    /// Processes that were there already and were named to be recorded, with their descendants.
    pub attached_pids: Vec<u32>,
    /// Whether all processes of the host were recorded.
    pub whole_host: bool,
    /// The control group that was recorded; `None`: something else was.
    pub group: Option<RecordedGroup>,
    /// When all that were there already had been found; `None`: none were looked for.
    pub attached_ns: Option<u64>,
    /// How the command ended; `None` if that isn't known.
    pub exit: Option<ExitReport>,
    /// A row of memory is due when a kind, or VMS, has moved by this much; 0: at every change.
    pub resolution_bytes: u64,
    /// And by the whole divided by this; 0: whatever the whole is.
    pub resolution_share: u64,
    /// RSS of each kind may be off by this much.
    pub rss_bound_bytes: u64,
    /// Whether that is for each thread of a process.
    pub rss_bound_per_thread: bool,
    /// A thread that waited for this long is told of; `None`: waits weren't seen.
    pub sleep_ns: Option<u64>,
    /// Hooks that were off.
    pub missing_hooks: Vec<String>,
    /// Hooks that this kernel doesn't have, and what is told from other events instead.
    pub stand_ins: BTreeMap<String, String>,
    /// Records lost in the kernel, by kind.
    pub lost: BTreeMap<String, u64>,
    /// The same, by CPU.
    pub lost_by_cpu: BTreeMap<u32, u64>,
    /// Runs of BPF programs that the kernel skipped, by program.
    pub recursion_misses: BTreeMap<String, u64>,
    /// Entries that found no room in a kernel-side map, by map.
    pub full_maps: BTreeMap<String, u64>,
    /// Events that came too late to be put in order.
    pub late_events: u64,
    /// Instructions that the kernel's verifier looked at, by BPF program.
    pub verified_instructions: BTreeMap<String, u64>,
    /// The recorder didn't end the file itself.
    pub cut_short: bool,
}

pub(super) fn facts(recording: &Recording, exit: Option<ExitReport>) -> RecordingReport {
    RecordingReport {
        rtrace_version: recording.rtrace_version.clone(),
        command: recording.command.clone(),
        host: recording.host.clone(),
        kernel: recording.kernel.clone(),
        machine: recording.machine.clone(),
        cpus: recording.cpus,
        memory_bytes: recording.memory_bytes,
        page_size: recording.page_size,
        env: recording.env.clone(),
        conditions: recording.conditions.clone(),
        wall_offset_ns: recording.wall_offset_ns,
        start_ns: recording.start_ns,
        end_ns: recording.end_ns,
        attached_pids: recording.attached_pids.clone(),
        whole_host: recording.whole_host,
        group: recording.group.clone(),
        attached_ns: recording.attached_ns,
        exit,
        resolution_bytes: recording.resolution_bytes,
        resolution_share: recording.resolution_share,
        rss_bound_bytes: recording.rss_bound_bytes,
        rss_bound_per_thread: recording.rss_bound_per_thread,
        sleep_ns: recording.sleep_ns,
        missing_hooks: recording.missing_hooks.clone(),
        stand_ins: recording.stand_ins.clone(),
        lost: recording.lost.clone(),
        lost_by_cpu: recording.lost_by_cpu.clone(),
        recursion_misses: recording.recursion_misses.clone(),
        full_maps: recording.full_maps.clone(),
        late_events: recording.late_events,
        verified_instructions: recording.verified_instructions.clone(),
        cut_short: recording.cut_short,
    }
}
