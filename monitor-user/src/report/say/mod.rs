//! What a report says in sentences, whatever the form in which they are shown.

mod charge;
mod facts;
mod pools;
mod trust;
pub(super) mod verification;

pub use facts::title;
pub(super) use facts::{facts, word};
pub(super) use pools::{pool_facts, pool_title, threads_only};
pub(super) use trust::trust;

use crate::report::{ImageReport, ProcessReport, Report, escape::escape};

/// One sentence. What comes from outside is escaped in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) text: String,
    /// Something is wrong.
    pub(super) is_bad: bool,
}

fn good(text: String) -> Sentence {
    Sentence {
        text,
        is_bad: false,
    }
}

fn bad(text: String) -> Sentence {
    Sentence { text, is_bad: true }
}

/// The process that executed the command, if it is in the report.
pub(super) fn root(report: &Report) -> Option<&ProcessReport> {
    let root = report.root?;
    report.processes.iter().find(|p| p.id() == root)
}

/// Time to count from, ns since boot.
pub(super) fn origin(report: &Report) -> u64 {
    root(report).map_or(report.recording.start_ns, |root| root.start_ns)
}

/// Path of an image's directory with what is to be said of it, escaped.
pub(super) fn directory(image: &ImageReport) -> Option<String> {
    let path = escape(&image.cwd.as_ref()?.0);
    let cut = if image.cwd_truncated { "…/" } else { "" };
    let removed = if image.cwd_deleted { " (removed)" } else { "" };
    let unmounted = if image.cwd_unreachable {
        " (not mounted)"
    } else {
        ""
    };
    Some(format!("{cut}{path}{removed}{unmounted}"))
}
