//! The line that tells how a recording goes.

use std::io::{IsTerminal, Write};

use crate::{
    event::Recording,
    model::Summary,
    report,
    units::{Bytes, Nanos},
};

/// A line on stderr that is written over itself. Off, it does nothing.
pub(super) struct StatusLine {
    shows: Shows,
    is_waiting: bool,
    is_shown: bool,
}

/// When it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Never,
    /// While descendants are waited for: the command is gone then, so that the line disturbs less.
    Waiting,
    Always,
}

/// Back to the first column, and clear the line (ECMA-48: CR, EL).
const CLEAR: &str = "\r\x1b[K";

impl StatusLine {
    /// `is_on`: it is shown while the command runs. Unless rtrace is to be quiet, it also says on a terminal whom it
    /// waits for.
    pub(super) fn new(is_on: bool, is_quiet: bool) -> Self {
        Self {
            shows: if is_on {
                Shows::Always
            } else if !is_quiet && std::io::stderr().is_terminal() {
                Shows::Waiting
            } else {
                Shows::Never
            },
            is_waiting: false,
            is_shown: false,
        }
    }

    pub(super) fn show(&mut self, summary: &Summary, recording: &Recording, now_ns: u64) {
        if self.shows == Shows::Always && !self.is_waiting {
            self.is_shown = true;
            write(&format!("{CLEAR}{}", line(summary, recording, now_ns)));
        }
    }

    pub(super) fn show_waiting(&mut self, summary: &Summary, since_ns: u64, now_ns: u64) {
        if self.shows != Shows::Never {
            self.is_waiting = true;
            self.is_shown = true;
            // A terminal wraps what fills its last column.
            let width = super::terminal_width(std::io::stderr()).saturating_sub(1);
            let line = report::waiting_line(summary, now_ns.saturating_sub(since_ns), width);
            write(&format!("{CLEAR}{line}"));
        }
    }

    pub(super) fn clear(&mut self) {
        if self.is_shown {
            self.is_shown = false;
            write(CLEAR);
        }
    }
}

fn line(summary: &Summary, recording: &Recording, now_ns: u64) -> String {
    let lost: u64 = recording.lost.values().sum();
    let peak = summary
        .peak()
        .map_or_else(String::new, |peak| format!(" (peak {})", Bytes(peak.rss)));
    format!(
        "rtrace: {}, {} of {} processes alive, RSS {}{peak}, lost {lost}",
        Nanos(now_ns.saturating_sub(recording.start_ns)),
        summary.live(),
        summary.processes(),
        Bytes(summary.rss()),
    )
}

fn write(text: &str) {
    let mut stderr = std::io::stderr();
    // The line is a courtesy; a terminal that has gone away is no reason to stop.
    let _unwritable = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}
