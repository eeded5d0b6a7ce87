//! What the memory controller charged, in a sentence or two.

use crate::{
    report::{ChargeReport, ChargeSplitReport, Report, escape::escape},
    units::Bytes,
};

/// Less than that of cached files is left behind by almost every command, bytes.
const MENTIONED: u64 = 1 << 20;

/// Nothing if it wasn't asked.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let Some(charge) = &report.tree.charge else {
        return Vec::new();
    };
    let why = charge
        .why_shared
        .as_deref()
        .map(|why| escape(why.as_bytes()));
    let Some(peak) = charge.highest_bytes() else {
        let why = why.unwrap_or_else(|| "the kernel doesn't tell".to_owned());
        return vec![format!("charge of the memory controller: not known, {why}")];
    };
    let whose = whose(charge);
    let mut lines = vec![format!(
        "charged by the memory controller, each page once: at most {}{whose}{}",
        Bytes(peak),
        charge
            .at_peak
            .map_or_else(String::new, |split| at_peak(split, peak)),
    )];
    if let Some(why) = why {
        lines.push(format!("no control group of the command's own: {why}"));
    }
    lines.extend(left(charge));
    lines
}

fn whose(charge: &ChargeReport) -> String {
    let group = escape(charge.group.as_deref().unwrap_or_default().as_bytes());
    let start = charge.start_bytes.map_or_else(String::new, |start| {
        format!(", {} of it before the command began", Bytes(start))
    });
    match charge.scope {
        Some("own") => String::new(),
        Some("given") => format!(" to the control group {group}{start}"),
        _ => format!(" to the control group {group}, which others share{start}"),
    }
}

/// The look at what it consists of was at another moment than the peak, so what it found is said with it.
fn at_peak(split: ChargeSplitReport, peak: u64) -> String {
    let parts = parts(split);
    match split.total_bytes {
        Some(total) if total != peak && !parts.is_empty() => {
            format!("; when it was {}: {parts}", Bytes(total))
        }
        _ if parts.is_empty() => String::new(),
        _ => format!(": {parts}"),
    }
}

/// The kinds that there is something of.
fn parts(split: ChargeSplitReport) -> String {
    let kinds = [
        (split.anon_bytes, "private memory"),
        (split.shmem_bytes, "shared memory and files in memory"),
        (split.file_bytes, "cached files"),
        (split.kernel_bytes, "the kernel's own"),
    ];
    let parts = kinds.into_iter().filter_map(|(bytes, kind)| {
        let bytes = bytes.filter(|bytes| *bytes > 0)?;
        Some(format!("{} {kind}", Bytes(bytes)))
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    match split.page_tables_bytes {
        Some(bytes) if split.kernel_bytes > Some(0) => {
            format!("{parts} (page tables {})", Bytes(bytes))
        }
        _ => parts,
    }
}

/// What outlasts all processes. Of a group with others nobody can tell whose it is.
fn left(charge: &ChargeReport) -> Option<String> {
    if charge.scope != Some("own") || charge.processes_at_end != Some(0) {
        return None;
    }
    let split = charge.at_end?;
    let mut parts = Vec::new();
    if let Some(bytes) = split.shmem_bytes.filter(|bytes| *bytes > 0) {
        let files = "in files in memory (tmpfs, /dev/shm) or shared memory that nobody has removed";
        parts.push(format!("{} {files}", Bytes(bytes)));
    }
    if let Some(bytes) = split.file_bytes.filter(|bytes| *bytes >= MENTIONED) {
        parts.push(format!(
            "{} of cached files, which the kernel takes back when it needs room",
            Bytes(bytes)
        ));
    }
    (!parts.is_empty())
        .then(|| format!("still charged after the last process: {}", parts.join(", ")))
}
