//! What happened, in the first lines.

use super::{Sentence, bad, charge, good, origin, root};
use crate::{
    report::{
        PolledReport, Report,
        escape::{escape, shorten},
        words,
    },
    units::{Bytes, Nanos},
};

/// A command that takes less is not polled, ns.
const SHORT_NS: u64 = 500_000_000;

/// What became of the command, how many processes there were, how much memory, and whether that is all.
pub(in crate::report) fn facts(report: &Report) -> Vec<Sentence> {
    let failed = report
        .recording
        .exit
        .as_ref()
        .is_some_and(|exit| exit.code != Some(0));
    let ending = ending(report);
    let group = report.recording.group.as_ref();
    // The title names the container, where there is one.
    let group = group.filter(|group| group.container.is_some() && group.path.is_some());
    let group = group.map(|group| good(words::control_group(group)));
    let mut facts: Vec<_> = group.into_iter().collect();
    facts.extend([
        if failed { bad(ending) } else { good(ending) },
        good(processes(report)),
        good(memory(report)),
    ]);
    facts.extend(polled(report).map(good));
    facts.extend(request(report).map(good));
    facts.extend(charge::lines(report).into_iter().map(good));
    let trust = trust(report);
    let is_complete = report.trust.complete;
    facts.push(if is_complete { good(trust) } else { bad(trust) });
    facts
}

/// The command, or what else was recorded, escaped.
pub fn title(report: &Report) -> String {
    let recording = &report.recording;
    let words = &recording.command;
    if words.is_empty() && is_attached(report) {
        return attached(report);
    }
    if words.is_empty() {
        return "(the command is not known)".to_owned();
    }
    let words: Vec<String> = words.iter().map(|w| word(w.as_bytes())).collect();
    words.join(" ")
}

/// Whether processes were recorded that were there already, and no command.
fn is_attached(report: &Report) -> bool {
    let recording = &report.recording;
    recording.command.is_empty() && recording.attached_ns.is_some()
}

/// What was recorded where there is no command.
fn attached(report: &Report) -> String {
    if report.recording.whole_host {
        return "the whole host".to_owned();
    }
    if let Some(group) = &report.recording.group {
        return words::group(group);
    }
    let pids: Vec<String> = report
        .recording
        .attached_pids
        .iter()
        .map(ToString::to_string)
        .collect();
    let word = if pids.len() == 1 {
        "process"
    } else {
        "processes"
    };
    format!("{word} {} with all descendants", pids.join(", "))
}

/// A word of a command, in quotes if it would be taken for several.
pub(in crate::report) fn word(text: &[u8]) -> String {
    let shown = escape(text);
    if shown.is_empty() || shown.contains([' ', '\'', '"', ';', '&', '|', '$', '*', '(', '<', '>'])
    {
        format!("'{shown}'")
    } else {
        shown
    }
}

fn ending(report: &Report) -> String {
    if is_attached(report) {
        let recording = &report.recording;
        let alive = report
            .processes
            .iter()
            .filter(|p| p.alive_at_end == Some(true));
        let left = match alive.count() as u64 {
            0 => "none of them is left".to_owned(),
            n => words::count(n, "is still alive", "are still alive"),
        };
        if report.processes.is_empty() && recording.group.is_some() {
            return "nobody was in it while it was recorded".to_owned();
        }
        return match recording.end_ns {
            Some(end_ns) => {
                let took = Nanos(end_ns.saturating_sub(recording.start_ns));
                format!("recorded for {took}, {left}")
            }
            None => "how long was recorded is not known".to_owned(),
        };
    }
    let root = root(report);
    let took = root.and_then(|r| Some(r.end_ns?.saturating_sub(r.start_ns)));
    let exit = report.recording.exit.as_ref();
    match (took, exit) {
        (Some(ns), Some(exit)) => format!("ran {} and {}", Nanos(ns), words::ended(exit)),
        (None, Some(exit)) => format!("{}; how long it ran is not known", words::ended(exit)),
        _ => match root.and_then(|r| r.alive_at_end) {
            Some(true) => "was still running when the recording ended".to_owned(),
            _ => "how it ended is not known".to_owned(),
        },
    }
}

fn processes(report: &Report) -> String {
    let tree = &report.tree;
    let mut parts = vec![words::count(tree.processes, "process", "processes")];
    if tree.processes > 1 {
        let live = words::grouped(tree.max_live_processes);
        parts.push(format!(" ({live} at once)"));
    }
    parts.push(match tree.threads_created {
        Some(0) => String::new(),
        Some(n) => format!(" and {}", words::count(n, "more thread", "more threads")),
        None if is_attached(report) => String::new(),
        None => ", number of threads not known".to_owned(),
    });
    parts.push(match tree.survivors {
        Some(0) => String::new(),
        None if is_attached(report) => String::new(),
        Some(n) => format!("; {} lived on after the command", words::grouped(n)),
        None => "; whether any lived on after the command is not known".to_owned(),
    });
    parts.concat()
}

fn memory(report: &Report) -> String {
    let tree = &report.tree;
    let Some(peak) = tree.peak_rss_sum_bytes else {
        return "memory: not known".to_owned();
    };
    let bound = tree.peak_rss_sum_bound_bytes.unwrap_or(0);
    let sum = words::bounded(peak, bound);
    let when = tree.peak_rss_sum_ns.map_or_else(String::new, |at| {
        let since = at.saturating_sub(origin(report));
        format!(", {} after the start", Nanos(since))
    });
    let who = tree
        .peak_rss_sum_top
        .as_ref()
        .map_or_else(String::new, |top| {
            let name = match escape(&top.program.0) {
                name if name.is_empty() => "a program of unknown name".to_owned(),
                name => shorten(&name, 40),
            };
            let pid = top.process.map(|p| format!(" (pid {})", p.pid));
            let pid = pid.unwrap_or_default();
            if top.rss_bytes < peak {
                format!(", of it {} in {name}{pid}", Bytes(top.rss_bytes))
            } else {
                format!(", all in {name}{pid}")
            }
        });
    format!("highest sum of RSS: {sum}{when}{who}")
}

/// What tools that look from time to time would have missed; nothing if they see nearly all.
fn polled(report: &Report) -> Option<String> {
    let tree = &report.tree;
    let (peak, all) = (tree.peak_rss_sum_bytes?, tree.processes);
    let misses = |polled: &PolledReport| {
        let few = polled
            .processes
            .is_some_and(|n| n.saturating_mul(10) < all.saturating_mul(9));
        few || polled.peak_rss_sum_bytes.saturating_mul(10) < peak.saturating_mul(9)
    };
    // Of a command that is over at once nobody expects it.
    let took = root(report).and_then(|root| Some(root.end_ns?.saturating_sub(root.start_ns)));
    let took = took.filter(|ns| *ns >= SHORT_NS)?;
    // One that looks less often than once in that time sees it by chance, if at all.
    let looking: Vec<_> = tree
        .polled
        .iter()
        .filter(|polled| polled.period_ns <= took)
        .collect();
    if !looking.iter().any(|polled| misses(polled)) {
        return None;
    }
    let seen = |polled: &PolledReport| {
        let processes = polled.processes.map_or_else(
            || "an unknown number of processes".to_owned(),
            |n| words::count(n, "process", "processes"),
        );
        let (bytes, tenths) = (
            Bytes(polled.peak_rss_sum_bytes),
            polled.period_ns / 100_000_000,
        );
        let period = match (tenths / 10, tenths % 10) {
            (seconds, 0) => format!("{seconds} s"),
            (seconds, rest) => format!("{seconds}.{rest} s"),
        };
        format!("{processes} and {bytes} every {period}")
    };
    let seen: Vec<String> = looking.into_iter().map(seen).collect();
    Some(format!(
        "polling would have seen, on average: {}",
        seen.join("; ")
    ))
}

/// How much to ask a scheduler for.
fn request(report: &Report) -> Option<String> {
    let request = report.tree.request?;
    Some(format!(
        "ask a scheduler for {}: {}, and {} % on top",
        Bytes(request.bytes),
        request.reason(),
        request.margin_percent
    ))
}

fn trust(report: &Report) -> String {
    let trust = &report.trust;
    if trust.complete {
        format!(
            "nothing was lost ({})",
            words::count(trust.events, "event", "events")
        )
    } else if trust.lost_events > 0 {
        let lost = words::count(trust.lost_events, "event is", "events are");
        format!("NOT complete: {lost} missing, see the end")
    } else {
        "NOT complete, see the end".to_owned()
    }
}
