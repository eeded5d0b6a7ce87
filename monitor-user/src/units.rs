//! Numbers with units and their text forms.

use std::fmt;

use nix::errno::Errno;

/// A process: pids repeat, so its start belongs to its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// Thread group id, as the recorder sees it.
    pub pid: u32,
    /// When the kernel created its first task, ns since boot.
    pub start_ns: u64,
}

/// Bytes; displayed with a binary unit and three digits at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // Tenths of the unit in integers, rounded: 1023.95 KiB must become 1.0 MiB, never 1024.0 KiB.
        let (mut tenths, mut unit) = (scaled(self.0, 1024), 0);
        while tenths >= 10_240 && unit + 1 < UNITS.len() {
            unit += 1;
            tenths = scaled(self.0, 1024_u128.pow(u32::try_from(unit).unwrap_or(0) + 1));
        }
        write_tenths(f, tenths, UNITS[unit])
    }
}

/// A length of time in ns; displayed with the unit that suits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        let ns = self.0;
        // The limits are where rounding would reach the next unit's 1.
        if ns < 1_000 {
            write!(f, "{ns} ns")
        } else if ns < 999_950 {
            write_tenths(f, scaled(ns, 1_000), "us")
        } else if ns < 999_950_000 {
            write_tenths(f, scaled(ns, 1_000_000), "ms")
        } else if ns < 59_950_000_000 {
            write_tenths(f, scaled(ns, u128::from(SECOND)), "s")
        } else {
            let seconds = (ns + SECOND / 2) / SECOND;
            let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            if h > 0 {
                write!(f, "{h} h {m:02} min")
            } else {
                write!(f, "{m} min {s:02} s")
            }
        }
    }
}

fn scaled(value: u64, unit: u128) -> u128 {
    (u128::from(value) * 10 + unit / 2) / unit
}

fn write_tenths(f: &mut fmt::Formatter<'_>, tenths: u128, unit: &str) -> fmt::Result {
    if tenths >= 1000 {
        write!(f, "{} {unit}", (tenths + 5) / 10)
    } else {
        write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// Names of signals 1 to 31 (`include/uapi/asm-generic/signal.h`, the same on x86-64 and arm64).
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Name of a signal, or its number where it has none.
pub fn signal_name(signal: u32) -> String {
    let at = usize::try_from(signal).unwrap_or(0).wrapping_sub(1);
    SIGNALS
        .get(at)
        .map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

/// Name of an error of a system call (`errno`), or its number where it has none.
pub fn errno_name(errno: u32) -> String {
    match i32::try_from(errno).map(Errno::from_raw) {
        Ok(known) if known != Errno::UnknownErrno => format!("{known:?}"),
        _ => format!("errno {errno}"),
    }
}

/// A number with its thousands set apart: 12,345.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_names_and_others_their_numbers() {
        assert_eq!(errno_name(2), "ENOENT");
        assert_eq!(errno_name(11), "EAGAIN");
        assert_eq!(errno_name(4000), "errno 4000");
        assert_eq!(errno_name(u32::MAX), "errno 4294967295");
    }

    #[test]
    fn bytes_round_into_the_next_unit() {
        let text = |n| Bytes(n).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1023), "1023 B");
        assert_eq!(text(1024), "1.0 KiB");
        assert_eq!(text(1536 << 10), "1.5 MiB");
        assert_eq!(text((1 << 20) - 1), "1.0 MiB");
        assert_eq!(text(700 << 20), "700 MiB");
        assert_eq!(text(u64::MAX), "16384 PiB");
    }

    #[test]
    fn durations_round_into_the_next_unit() {
        let text = |n| Nanos(n).to_string();
        assert_eq!(text(999), "999 ns");
        assert_eq!(text(999_949), "1000 us");
        assert_eq!(text(999_950), "1.0 ms");
        assert_eq!(text(1_500_000_000), "1.5 s");
        assert_eq!(text(59_999_000_000), "1 min 00 s");
        assert_eq!(text(3_661_000_000_000), "1 h 01 min");
    }
}
