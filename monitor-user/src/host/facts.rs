//! What a recording says about its machine.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
};

use nix::{
    sys::utsname::{UtsName, uname},
    time::{ClockId, clock_gettime},
    unistd::{SysconfVar, sysconf},
};

use crate::event::Recording;

/// Names that schedulers give their jobs' variables.
const JOB_VARIABLES: [&str; 5] = ["SLURM_", "PBS_", "LSB_", "OSG", "SGE_"];
/// Names of Grid Engine without its prefix: they mean something else where there is none with it.
const GRID_ENGINE: [&str; 6] = [
    "JOB_ID",
    "JOB_NAME",
    "QUEUE",
    "NSLOTS",
    "NHOSTS",
    "PE_HOSTFILE",
];

/// Now, ns since boot (`CLOCK_BOOTTIME`, the clock of all events). 0 if the kernel has no such clock.
pub fn boot_ns() -> u64 {
    clock_ns(ClockId::CLOCK_BOOTTIME)
}

/// Size of a page in bytes.
pub fn page_size() -> u64 {
    positive(SysconfVar::PAGE_SIZE).unwrap_or(4096)
}

/// CPUs that can run something now.
pub fn online_cpus() -> u32 {
    positive(SysconfVar::_NPROCESSORS_ONLN)
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(1)
}

/// Fills in the machine, the command and the clock; the caller adds how it records.
///
/// `environment` is the command's: under sudo, the recorder's own has lost the job's variables.
pub fn recording(command: &[impl AsRef<OsStr>], environment: &[(OsString, OsString)]) -> Recording {
    let name = uname().ok();
    let text = |value: Option<&OsStr>| {
        value
            .map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let boot = boot_ns();
    let wall = clock_ns(ClockId::CLOCK_REALTIME);
    Recording {
        rtrace_version: env!("CARGO_PKG_VERSION").to_owned(),
        abi_version: monitor_ebpf::abi::ABI_VERSION,
        command: command
            .iter()
            .map(|word| word.as_ref().to_string_lossy().into_owned())
            .collect(),
        host: text(name.as_ref().map(UtsName::nodename)),
        kernel: text(name.as_ref().map(UtsName::release)),
        machine: text(name.as_ref().map(UtsName::machine)),
        cpus: online_cpus(),
        memory_bytes: memory_bytes(),
        page_size: page_size(),
        env: job_environment(environment),
        wall_offset_ns: i64::try_from(i128::from(wall) - i128::from(boot)).unwrap_or(0),
        start_ns: boot,
        ..Recording::default()
    }
}

fn job_environment(environment: &[(OsString, OsString)]) -> BTreeMap<String, String> {
    let named = || {
        let named = environment.iter();
        named.filter_map(|(name, value)| Some((name.to_str()?, value)))
    };
    let is_grid_engine = named().any(|(name, _)| name.starts_with("SGE_"));
    let is_job = |name: &str| {
        JOB_VARIABLES.iter().any(|prefix| name.starts_with(prefix))
            || (is_grid_engine && GRID_ENGINE.contains(&name))
    };
    named()
        .filter(|(name, _)| is_job(name))
        .map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned()))
        .collect()
}

/// `MemTotal` of `/proc/meminfo`; 0 if it can't be read.
fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

fn positive(variable: SysconfVar) -> Option<u64> {
    sysconf(variable)
        .ok()
        .flatten()
        .and_then(|value| u64::try_from(value).ok())
        .filter(|value| *value > 0)
}

fn clock_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(environment: &[&str]) -> Vec<String> {
        let pairs: Vec<_> = environment
            .iter()
            .map(|name| (OsString::from(name), OsString::from("1")))
            .collect();
        job_environment(&pairs).into_keys().collect()
    }

    #[test]
    fn of_the_environment_only_what_names_the_job_is_kept() {
        assert_eq!(
            names(&[
                "HOME",
                "SLURM_JOB_ID",
                "LSB_JOBID",
                "PBS_JOBID",
                "MY_SLURM_"
            ]),
            ["LSB_JOBID", "PBS_JOBID", "SLURM_JOB_ID"]
        );
        let grid = ["JOB_ID", "NSLOTS", "SGE_TASK_ID", "QUEUES"];
        assert_eq!(names(&grid), ["JOB_ID", "NSLOTS", "SGE_TASK_ID"]);
        // Where there is no Grid Engine, these may be anybody's.
        assert_eq!(names(&["JOB_ID", "QUEUE"]), [""; 0]);
    }
}
