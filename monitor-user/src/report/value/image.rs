//! Programs that processes were.

use serde::Serialize;

use super::Id;
use crate::{
    event::Recording,
    model::{
        How, Image, ImageMemory,
        bounds::{KINDS, counter_bound, sum_bound},
        program,
    },
    report::ByteText,
    units::ProcessKey,
};

/// A program that a process was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageReport {
    /// From then.
    pub start_ns: Option<u64>,
    /// Until then.
    pub end_ns: Option<u64>,
    /// `inherited` or `exec`.
    pub how: &'static str,
    /// Path given to exec.
    pub filename: Option<ByteText>,
    /// Name at its start.
    pub comm: Option<ByteText>,
    /// Arguments.
    pub argv: Option<Vec<ByteText>>,
    /// Bytes of all arguments with their NULs.
    pub argv_bytes: Option<u64>,
    /// Whether `argv` is cut.
    pub argv_truncated: Option<bool>,
    /// Working directory at its start, or when it was found.
    pub cwd: Option<ByteText>,
    /// Only there if true: the outermost folders are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cwd_truncated: bool,
    /// Only there if true: it had been removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cwd_deleted: bool,
    /// Only there if true: it wasn't mounted any more; the path begins at the top of what was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cwd_unreachable: bool,
    /// Highest RSS.
    pub peak_rss_bytes: Option<u64>,
    /// The true peak differs from that by this at most.
    pub peak_rss_bound_bytes: Option<u64>,
    /// Anonymous pages at that moment.
    pub peak_rss_anon_bytes: Option<u64>,
    /// Pages of files at that moment.
    pub peak_rss_file_bytes: Option<u64>,
    /// Pages of shared memory at that moment.
    pub peak_rss_shmem_bytes: Option<u64>,
    /// That moment.
    pub peak_rss_ns: Option<u64>,
    /// Highest swap use.
    pub peak_swap_bytes: Option<u64>,
    /// RSS that it began with: of `inherited` ones what was copied from the creator.
    pub start_rss_bytes: Option<u64>,
    /// Anonymous pages that it has from its creator's fork; only of `inherited` ones.
    pub inherited_anon_bytes: Option<u64>,
    /// Anonymous pages that came since, those included that have gone again.
    pub anon_grown_bytes: Option<u64>,
    /// Write faults on pages that were there; each copied a page at most.
    pub write_faults: Option<u64>,
    /// RSS before exec or end.
    pub end_rss_bytes: Option<u64>,
    /// Highest size of the address space.
    pub peak_vms_bytes: Option<u64>,
    /// Process whose address space it uses.
    pub shared_mm_with: Option<Id>,
}

pub(super) fn image(
    image: &Image,
    recording: &Recording,
    threads: u32,
    id: &impl Fn(ProcessKey) -> Id,
) -> ImageReport {
    let memory = image.memory;
    let counters = counter_bound(recording, threads).saturating_mul(KINDS);
    let bound = |memory: ImageMemory| {
        if memory.kept_at_every_event {
            counters.saturating_add(memory.peak_bound)
        } else {
            sum_bound(recording, memory.peak.rss(), 1, threads)
        }
    };
    let (argv, cwd) = (image.argv.as_ref(), image.cwd.as_ref());
    let start = memory.and_then(|m| m.start);
    let churn = memory.and_then(|m| m.churn);
    ImageReport {
        start_ns: image.start_ns,
        end_ns: image.end_ns,
        how: match image.how {
            How::Inherited => "inherited",
            How::Exec => "exec",
        },
        filename: image.filename.clone().map(ByteText),
        comm: image.comm.clone().map(ByteText),
        argv: argv.map(|argv| argv.iter().cloned().map(ByteText).collect()),
        argv_bytes: image.argv_bytes,
        argv_truncated: image.argv_truncated,
        cwd: cwd.map(|cwd| ByteText(cwd.path.clone())),
        cwd_truncated: cwd.is_some_and(|cwd| cwd.is_cut),
        cwd_deleted: cwd.is_some_and(|cwd| cwd.is_deleted),
        cwd_unreachable: cwd.is_some_and(|cwd| cwd.is_unreachable),
        peak_rss_bytes: memory.map(|m| m.peak.rss()),
        peak_rss_bound_bytes: memory.map(bound),
        peak_rss_anon_bytes: memory.map(|m| m.peak.anon),
        peak_rss_file_bytes: memory.map(|m| m.peak.file),
        peak_rss_shmem_bytes: memory.map(|m| m.peak.shmem),
        peak_rss_ns: memory.map(|m| m.peak_ns),
        peak_swap_bytes: memory.map(|m| m.peak_swap),
        start_rss_bytes: start.map(|start| start.rss()),
        inherited_anon_bytes: start
            .filter(|_| image.how == How::Inherited)
            .map(|start| start.anon),
        anon_grown_bytes: churn.map(|churn| churn.grown),
        write_faults: churn.and_then(|churn| churn.write_faults),
        end_rss_bytes: memory.and_then(|m| m.end_rss),
        peak_vms_bytes: memory.map(|m| m.peak_vms),
        shared_mm_with: image.shared_mm_with.map(id),
    }
}

impl ImageReport {
    /// What a person would call this program; `None` if it is inherited or its exec was lost.
    pub fn program(&self) -> Option<ByteText> {
        let argv: Vec<Vec<u8>> = self.argv.as_ref()?.iter().map(|a| a.0.clone()).collect();
        let filename = self.filename.as_ref().map_or(&[][..], |f| &f.0);
        let comm = self.comm.as_ref().map_or(&[][..], |c| &c.0);
        Some(ByteText(program::label(filename, &argv, comm)))
    }
}
