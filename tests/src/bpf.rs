//! What is loaded in the kernel, as its own interfaces tell.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::Context;

/// Numbers of the BPF programs that a process holds.
///
/// # Errors
/// The process is gone.
pub fn programs_of(pid: u32) -> anyhow::Result<BTreeSet<u64>> {
    let mut programs = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        // A descriptor may be closed while we look.
        let Ok(text) = fs::read_to_string(entry?.path()) else {
            continue;
        };
        let number = text.lines().find_map(|line| line.strip_prefix("prog_id:"));
        programs.extend(number.and_then(|number| number.trim().parse::<u64>().ok()));
    }
    Ok(programs)
}

/// Numbers of all BPF programs that are loaded.
///
/// # Errors
/// There is no bpftool.
pub fn loaded_programs() -> anyhow::Result<BTreeSet<u64>> {
    let output = Command::new("bpftool")
        .args(["-j", "prog", "list"])
        .output();
    let output = output.context("bpftool is needed: apt-get install bpftool")?;
    let programs: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout)?;
    Ok(programs
        .iter()
        .filter_map(|program| program["id"].as_u64())
        .collect())
}
