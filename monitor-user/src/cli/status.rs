//! The line that tells how a recording goes.

use std::io::Write;

use crate::{
    event::Recording,
    model::Summary,
    units::{Bytes, Nanos},
};

/// A line on stderr that is written over itself. Off, it does nothing.
pub(super) struct StatusLine {
    is_on: bool,
    is_shown: bool,
}

/// Back to the first column, and clear the line (ECMA-48: CR, EL).
const CLEAR: &str = "\r\x1b[K";

impl StatusLine {
    pub(super) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            is_shown: false,
        }
    }

    pub(super) fn show(&mut self, summary: &Summary, recording: &Recording, now_ns: u64) {
        if self.is_on {
            self.is_shown = true;
            write(&format!("{CLEAR}{}", line(summary, recording, now_ns)));
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
