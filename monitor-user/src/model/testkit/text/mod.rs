//! Streams as text.
//!
//! ```text
//! # A comment.
//! recording {"root_pid": 10, "root_start_ns": 1000}
//! 1000 0 10@1000:10 fork mm=1 anon=4096 comm="sh"
//! 2000 1 - memory mm=2 anon=8192 vms=65536
//! 3000 0 10@1000:10 exec mm=2 old_mm=1 filename="/bin/ls" arg="ls" arg="-l" comm="ls"
//! ```
//!
//! A line is time in ns, CPU, subject (`PID@START:TID`, `-` for none), kind, and fields. Sizes are
//! bytes. Text is in double quotes with `\"`, `\\` and `\xNN`. A field that is left out is not
//! known where the event allows that, else 0, false or empty.
mod read;
mod write;

use crate::{
    event::{Event, Recording},
    units::ProcessKey,
};

pub use write::line;

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads a stream and what it says about the recording.
///
/// # Errors
/// The first line that isn't understood.
pub fn parse(text: &str) -> Result<(Vec<Event>, Recording), ParseError> {
    let mut events = Vec::new();
    let mut recording = Recording::default();
    for (n, line) in text.lines().enumerate() {
        let fail = |what: String| ParseError { line: n + 1, what };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
        } else if let Some(json) = line.strip_prefix("recording ") {
            recording = serde_json::from_str(json).map_err(|e| fail(e.to_string()))?;
        } else if line == "cut_short" {
            recording.cut_short = true;
        } else {
            events.push(read::event(line).map_err(fail)?);
        }
    }
    Ok((events, recording))
}
fn key_text(key: ProcessKey) -> String {
    format!("{}@{}", key.pid, key.start_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Directory, Oom, OomScope, RefusedBy, Usage},
        model::testkit::Story,
    };

    #[test]
    fn what_is_written_is_read_again() {
        let mut story = Story::new();
        story.root(10, &["/bin/sh", "-c", "a \"b\" \\ c"]).after(1);
        story
            .thread(10, 11)
            .rename(10, 11, "näme")
            .thread_exit(10, 11);
        story
            .fork(10, 12)
            .call_took(70_000, 8192)
            .memory(12, 3)
            .vfork(12, 13);
        story.exec_bytes(13, 13, vec![b"x\xff\n=".to_vec(), vec![]]);
        let usage = Usage {
            faults_minor: Some(12),
            written_bytes: Some(0),
            ..Usage::default()
        };
        story.exit(13, 3).reaped_with(13, 7, usage);
        let oom = Oom {
            mm: Some(4),
            scope: Some(OomScope::Cgroup),
            cgroup: Some("a b".into()),
            limit: Some(5),
            memory: None,
        };
        story.oom(12, oom).signal(10, 12, 9).killed(12, 9);
        story.kernel_signal(10, 11).exec_failed(10, 2, "/no\tne");
        story.fork_refused(10, RefusedBy::Cgroup, 5, Some("a b"));
        story.fork_failed(10, 11).slept(10, 10, 300, "futex");
        story.stopped(10, 5).waits_on(10, 10, 400, "read");
        story.setsid(10).moved(10, "/a b");
        story.still_there(10, true).loss_row("memory", 5);
        story.environment(10, &["A=1 2", "B=\n"], true);
        story.title(10, &["a: b", ""], true);
        story.found(1, 14, &["a b", "c"]).found(14, 15, &[]);
        story.in_directory("/a \"b\"").exec(10, &["x"]);
        story.in_directory_that_is(Directory {
            path: b"a\xff".to_vec(),
            is_cut: true,
            is_deleted: true,
            is_unreachable: true,
        });
        let lines: Vec<String> = story.events().iter().map(line).collect();
        let (events, _) = parse(&lines.join("\n")).unwrap();
        assert_eq!(events, story.events());
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("# x\n1 0 - nothing"), "line 2: unknown kind nothing");
        assert_eq!(
            error("1 0 - memory what=3"),
            "line 1: memory has no field what"
        );
        assert_eq!(error("1 0 10 exit"), "line 1: no ':' in 10");
        assert_eq!(
            error("1 0 - rename comm=\"x"),
            "line 1: a quote is not closed"
        );
    }
}
