//! What `/proc` says of a process's memory.

use std::{
    fs,
    io::{Error, ErrorKind},
};

use nix::{
    libc,
    unistd::{SysconfVar, sysconf},
};

/// Why `/proc` didn't tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The process has ended, or has no memory any more.
    Gone,
    /// The kernel doesn't let this caller read it.
    Refused,
}

impl From<Error> for Silence {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::PermissionDenied || error.raw_os_error() == Some(libc::EPERM)
        {
            Self::Refused
        } else {
            Self::Gone
        }
    }
}

/// Memory of a process by `/proc/PID/status`, bytes.
///
/// RSS by kind is the exact sum of the kernel's counters on newer kernels (6.12.117, 6.18 and 7.2 were looked at);
/// before, it lacks what CPUs or, until 6.1, threads keep to themselves. It may be read of every process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `RssAnon`.
    pub anon: u64,
    /// `RssFile`.
    pub file: u64,
    /// `RssShmem`.
    pub shmem: u64,
    /// `VmSwap`; 0 on kernels without swap.
    pub swap: u64,
    /// `VmSize`.
    pub vms: u64,
    /// `Threads`.
    pub threads: u64,
}

impl Status {
    /// Reads it. That takes no lock which the process may wait for.
    ///
    /// # Errors
    /// [`Silence::Gone`] also for a process that waits to be reaped.
    pub fn read(pid: u32) -> Result<Self, Silence> {
        Self::parse(&text(pid, "status")?).ok_or(Silence::Gone)
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            anon: kib(text, "RssAnon:")?,
            file: kib(text, "RssFile:")?,
            shmem: kib(text, "RssShmem:")?,
            swap: kib(text, "VmSwap:").unwrap_or(0),
            vms: kib(text, "VmSize:")?,
            threads: field(text, "Threads:")?.trim().parse().ok()?,
        })
    }
}

/// Resident memory by `/proc/PID/smaps_rollup`, bytes: counted page by page from the page tables, so it is exact
/// on every kernel.
///
/// The kernel walks the page tables under a reader's lock, which it lets go of between two mappings when somebody waits
/// to change them. Needs the rights of a debugger (`PTRACE_MODE_READ`).
///
/// # Errors
/// See [`Silence`].
pub fn rollup_rss(pid: u32) -> Result<u64, Silence> {
    kib(&text(pid, "smaps_rollup")?, "Rss:").ok_or(Silence::Gone)
}

/// When a process was created, in ticks since boot ([`start_ticks`]): field 22 of `/proc/PID/stat`.
///
/// # Errors
/// See [`Silence`].
pub fn started(pid: u32) -> Result<u64, Silence> {
    parse_start(&text(pid, "stat")?).ok_or(Silence::Gone)
}

/// A time in ns since boot in the ticks of `/proc`, as the kernel rounds it (`nsec_to_clock_t`).
pub fn start_ticks(start_ns: u64) -> u64 {
    let hz = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let hz = hz.and_then(|hz| u64::try_from(hz).ok()).unwrap_or(100);
    start_ns / (1_000_000_000 / hz.max(1))
}

/// Whether every thread of a process sleeps and can be woken by a signal: none is in the midst of changing its
/// memory then, nor waits for its turn on a CPU to go on with that.
pub fn is_asleep(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let mut states = tasks.map(|task| {
        let stat = fs::read(task.ok()?.path().join("stat")).ok()?;
        parse_state(&String::from_utf8_lossy(&stat))
    });
    states.all(|state| state.is_some_and(|state| "STtZ".contains(state)))
}

fn text(pid: u32, name: &str) -> Result<String, Silence> {
    // A name may be no text.
    let bytes = fs::read(format!("/proc/{pid}/{name}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

fn kib(text: &str, name: &str) -> Option<u64> {
    let number = field(text, name)?.trim().strip_suffix(" kB")?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// The fields behind the name, which may contain anything.
fn behind_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn parse_start(stat: &str) -> Option<u64> {
    // The first behind the name is field 3.
    behind_name(stat)?.nth(22 - 3)?.parse().ok()
}

fn parse_state(stat: &str) -> Option<char> {
    behind_name(stat)?.next()?.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tRssAnon: 7 kB\nState:\tS (sleeping)\nVmSize:\t    9000 kB\nRssAnon:\t     \
                          400 kB\nRssFile:\t    1200 kB\nRssShmem:\t      4 kB\nVmSwap:\t       8 kB\nThreads:\t3\n";

    #[test]
    fn a_status_is_read_by_names_at_the_beginning_of_lines() {
        let expected = Status {
            anon: 400 << 10,
            file: 1200 << 10,
            shmem: 4 << 10,
            swap: 8 << 10,
            vms: 9000 << 10,
            threads: 3,
        };
        assert_eq!(Status::parse(STATUS), Some(expected));
        // Of a process that waits to be reaped there are no such lines.
        assert_eq!(Status::parse("Name:\tsh\nThreads:\t1\n"), None);
    }

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = "7 (a) R 1 (b)) S 42 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9";
        assert_eq!(parse_start(stat), Some(12345));
        assert_eq!(parse_state(stat), Some('S'));
        assert_eq!(parse_start("7 (a) R 1"), None);
    }

    #[test]
    fn one_s_own_process_can_be_read() {
        let pid = std::process::id();
        let status = Status::read(pid).unwrap();
        assert!(status.anon > 0 && status.vms > status.anon && status.threads > 0);
        assert!(rollup_rss(pid).unwrap() > 0);
        assert!(started(pid).unwrap() > 0);
        assert!(!is_asleep(pid), "it runs this test");
        assert_eq!(Status::read(u32::MAX), Err(Silence::Gone));
    }

    #[test]
    fn what_is_not_permitted_is_told_from_what_is_not_there() {
        let silence = |code| Silence::from(Error::from_raw_os_error(code));
        assert_eq!(silence(libc::EACCES), Silence::Refused);
        assert_eq!(silence(libc::EPERM), Silence::Refused);
        assert_eq!(silence(libc::ESRCH), Silence::Gone);
        assert_eq!(silence(libc::ENOENT), Silence::Gone);
    }
}
