//! What the kernel itself wrote of the victims of its OOM killer.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
};

use anyhow::Context;

/// `Killed process` in the kernel's log, bytes. The kernel takes RSS from counters that CPUs haven't added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The process.
    pub pid: u32,
    /// Size of the address space.
    pub vms: u64,
    /// Anonymous pages.
    pub anon: u64,
    /// Pages of files.
    pub file: u64,
    /// Shared memory.
    pub shmem: u64,
}

/// All victims that the log still has, in order.
///
/// # Errors
/// If the log can't be read, or a line isn't as `__oom_kill_process` (`mm/oom_kill.c`) writes it.
pub fn victims() -> anyhow::Result<Vec<Victim>> {
    let mut log = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open("/dev/kmsg")
        .context("the kernel's log")?;
    let mut record = vec![0; 8192];
    let mut victims = Vec::new();
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(n) => victims.extend(victim(&String::from_utf8_lossy(&record[..n]))?),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // This record was overwritten meanwhile; the next read begins at the oldest that is left.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => return Err(error).context("the kernel's log"),
        }
    }
    Ok(victims)
}

fn victim(record: &str) -> anyhow::Result<Option<Victim>> {
    let Some((_, told)) = record.split_once("Killed process ") else {
        return Ok(None);
    };
    let kibibytes = |name: &str| {
        let (_, rest) = told.split_once(name)?;
        let (number, _) = rest.split_once("kB")?;
        Some(number.parse::<u64>().ok()? << 10)
    };
    let parsed = || {
        Some(Victim {
            pid: told.split_once(' ')?.0.parse().ok()?,
            vms: kibibytes("total-vm:")?,
            anon: kibibytes("anon-rss:")?,
            file: kibibytes("file-rss:")?,
            shmem: kibibytes("shmem-rss:")?,
        })
    };
    parsed()
        .map(Some)
        .with_context(|| format!("not as expected: {record}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_is_read_and_other_lines_are_left_out() {
        let line = "3,812,459,-;Memory cgroup out of memory: Killed process 17882 (oom kB) total-vm:125420kB, \
                    anon-rss:40960kB, file-rss:992kB, shmem-rss:0kB, UID:0 pgtables:120kB oom_score_adj:0";
        let expected = Victim {
            pid: 17882,
            vms: 125_420 << 10,
            anon: 40_960 << 10,
            file: 992 << 10,
            shmem: 0,
        };
        assert_eq!(victim(line).unwrap(), Some(expected));
        assert_eq!(victim("6,1,2,-;usb: reset").unwrap(), None);
        assert!(victim("3,1,2,-;Killed process x").is_err());
    }
}
