//! Plain words for ends and numbers.

use crate::{
    event::RecordedGroup,
    report::{ExitReport, escape::escape},
    units::{Bytes, Nanos},
};

pub(super) use crate::units::{grouped, signal_name};

/// An end as a part of a sentence: "ended with exit code 3".
pub(super) fn ended(exit: &ExitReport) -> String {
    let with_core = if exit.core { ", core written" } else { "" };
    if exit.oom == Some(true) {
        return format!("was killed by the OOM killer{with_core}");
    }
    let from = exit.sender.as_ref();
    let from = from.map_or_else(String::new, |sender| format!(" from {}", sender.words()));
    match (exit.signal, exit.code) {
        (Some(signal), _) if signal_name(signal).starts_with("SIG") => {
            format!(
                "was killed by signal {signal} ({}){from}{with_core}",
                signal_name(signal)
            )
        }
        (Some(signal), _) => format!("was killed by signal {signal}{from}{with_core}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// What part a process has, by its name in JSON.
pub(super) fn role(name: &'static str) -> &'static str {
    match name {
        "resource_tracker" => "resource tracker",
        "forkserver" => "fork server",
        name => name,
    }
}

/// What was recorded where that was a control group: the container that has it, or the group itself.
pub(super) fn group(group: &RecordedGroup) -> String {
    match &group.container {
        Some(container) => escape(container.words().as_bytes()),
        None => control_group(group),
    }
}

/// A control group with its hierarchy.
pub(super) fn control_group(group: &RecordedGroup) -> String {
    let path = group.path.as_ref().unwrap_or(&group.wanted);
    let path = escape(path.as_bytes());
    match &group.hierarchy {
        Some(hierarchy) => format!("control group {path} ({hierarchy})"),
        None => format!("control group {path}"),
    }
}

/// `one` or `many` after its number, which has its thousands set apart.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// A value with its bound: "510 MiB ± 1.5 MiB"; alone if it has none.
pub(super) fn bounded(bytes: u64, bound: u64) -> String {
    if bound == 0 {
        Bytes(bytes).to_string()
    } else {
        format!("{} ± {}", Bytes(bytes), Bytes(bound))
    }
}

/// "0.9 to 3.0 ms": the unit once if both have the same.
pub(super) fn span(low: u64, high: u64) -> String {
    let (low, high) = (Nanos(low).to_string(), Nanos(high).to_string());
    if low == high {
        return high;
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// A word for a shell, in quotes if it needs them.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if escape(text.as_bytes()) == text.replace('\\', "\\\\") {
        format!("'{}'", text.replace('\'', "'\\''"))
    } else {
        // Bash, zsh and newer POSIX shells read escapes between these quotes.
        format!("$'{}'", escape(text.as_bytes()).replace('\'', "\\'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_words() {
        let words = |status| ended(&ExitReport::from_status(status));
        assert_eq!(words(0), "ended with exit code 0");
        assert_eq!(words(3 << 8), "ended with exit code 3");
        assert_eq!(words(9), "was killed by signal 9 (SIGKILL)");
        assert_eq!(
            words(0x8b),
            "was killed by signal 11 (SIGSEGV), core written"
        );
        assert_eq!(words(34), "was killed by signal 34");
        assert_eq!(signal_name(31), "SIGSYS");
        assert_eq!(signal_name(0), "signal 0");
    }

    #[test]
    fn numbers_in_words() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(count(1, "process", "processes"), "1 process");
        assert_eq!(span(900_000, 3_000_000), "900 us to 3.0 ms");
        assert_eq!(span(1_000_000, 3_000_000), "1.0 to 3.0 ms");
        assert_eq!(span(5, 5), "5 ns");
        assert_eq!(bounded(10 << 20, 3 << 18), "10.0 MiB ± 768 KiB");
    }
}
