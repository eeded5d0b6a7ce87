//! Facts about a recording as a whole: what the trace's metadata holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Charge, Conditions, RecordedGroup, Verification};

/// What was recorded, where, how, and what was lost.
///
/// A recorder that was killed leaves the fields marked "end" at what was known when it last wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Recording {
    /// Version of rtrace that recorded.
    pub rtrace_version: String,
    /// Version of the kernel-to-user record layout.
    pub abi_version: u32,
    /// The command; bytes that aren't UTF-8 are replaced.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Machine (`uname -m`).
    pub machine: String,
    /// CPUs that the kernel may use.
    pub cpus: u32,
    /// Memory of the host, bytes.
    pub memory_bytes: u64,
    /// Size of a page, bytes.
    pub page_size: u64,
    /// Environment that names the job (`SLURM_*`, `PBS_*`, `LSB_*`, `OSG*`, `SGE_*` with `JOB_ID` and the like).
    pub env: BTreeMap<String, String>,
    /// What bounds and shapes the command from outside; `None`: a whole host was recorded, or the trace is of before
    /// version 1.3.
    pub conditions: Option<Conditions>,
    /// Add this to a time since boot to get ns since 1970.
    pub wall_offset_ns: i64,
    /// Start of the recording, ns since boot; of a control group in which there was nobody yet, its first process's coming.
    pub start_ns: u64,
    /// End: end of the recording, ns since boot.
    pub end_ns: Option<u64>,
    /// Pid of the process that executed the command.
    pub root_pid: u32,
    /// Start of that process, ns since boot.
    pub root_start_ns: u64,
    /// Processes that were there already and were named to be recorded, with their descendants.
    pub attached_pids: Vec<u32>,
    /// Whether all processes of the host are recorded.
    pub whole_host: bool,
    /// The control group whose processes are recorded; `None`: something else is.
    pub group: Option<RecordedGroup>,
    /// When all that were there already had been found, ns since boot: from here on nothing is missing. `None`: none
    /// were looked for.
    pub attached_ns: Option<u64>,
    /// End: status of the command as `wait` gives it.
    pub exit_status: Option<u32>,
    /// A memory row is due when a kind, or VMS, has moved by this many bytes; 0: at every change.
    pub resolution_bytes: u64,
    /// And by the whole (RSS, or VMS) divided by this; 0: whatever the whole is.
    pub resolution_share: u64,
    /// RSS of each kind may be off by this many bytes (counters batched per CPU or per thread).
    pub rss_bound_bytes: u64,
    /// Whether that is for each thread of a process (before 6.2).
    pub rss_bound_per_thread: bool,
    /// End: events at which a counter of RSS was read while CPUs handed over their parts of it, at every try. Until the
    /// next event its value may be off by twice what CPUs keep to themselves (the larger of 32 pages and two for each
    /// CPU, times the CPUs); peaks aren't taken from it. 0 also in traces of before version 1.5.
    pub unsettled_looks: u64,
    /// Counters weren't added up at every event: peaks of RSS may have been higher than told by less than what makes a row
    /// due. Not so in traces of before version 1.5.
    pub skips_looks: bool,
    /// End: highest sum of RSS over all address spaces, each once, at any event, bytes; `None` where the
    /// kernel side doesn't keep it, since counters can't be read exactly.
    pub peak_rss_sum_bytes: Option<u64>,
    /// End: that moment, ns since boot.
    pub peak_rss_sum_ns: Option<u64>,
    /// End: the same of VMS, bytes.
    pub peak_vms_sum_bytes: Option<u64>,
    /// Size of the ring buffer, bytes.
    pub buffer_bytes: u64,
    /// End: rows written, by kind.
    pub events: BTreeMap<String, u64>,
    /// End: records lost in the kernel, by kind of record.
    pub lost: BTreeMap<String, u64>,
    /// End: the same records, by the CPU that lost them.
    pub lost_by_cpu: BTreeMap<u32, u64>,
    /// End: runs of BPF programs that the kernel skipped, by program.
    pub recursion_misses: BTreeMap<String, u64>,
    /// End: entries that found no room in a kernel-side map, by map.
    pub full_maps: BTreeMap<String, u64>,
    /// End: events that came too late to be put in order.
    pub late_events: u64,
    /// Instructions that the kernel's verifier looked at, by BPF program; empty before 5.16.
    pub verified_instructions: BTreeMap<String, u64>,
    /// A thread that waited for this long is told of, ns; `None`: waits aren't seen.
    pub sleep_ns: Option<u64>,
    /// Hooks that this kernel doesn't have or that weren't wanted, and what is told instead.
    pub stand_ins: BTreeMap<String, String>,
    /// Hooks that were switched off.
    pub missing_hooks: Vec<String>,
    /// What the memory controller charged; `None`: it wasn't asked, there is none, or the trace is of before version 1.2.
    pub charge: Option<Charge>,
    /// What comparing with `/proc` while recording has found so far; `None`: it wasn't asked for.
    pub verification: Option<Verification>,
    /// Set by readers: the recorder didn't end the file itself.
    #[serde(skip)]
    pub cut_short: bool,
}

impl Recording {
    /// Whether all events of a hook were seen, as far as the recorder knows; losses of records are counted apart.
    /// `since_abi` is the version of the kernel side's records that brought the hook.
    pub fn has_hook(&self, hook: &str, since_abi: u32) -> bool {
        let is_skipped = |n: &u64| *n > 0;
        self.abi_version >= since_abi
            && !self.missing_hooks.iter().any(|missing| missing == hook)
            && !self.stand_ins.contains_key(hook)
            && !self.recursion_misses.get(hook).is_some_and(is_skipped)
    }
}
