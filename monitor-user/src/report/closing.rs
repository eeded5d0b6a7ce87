//! What a recorder says at its end.

use crate::{
    event::Recording,
    model::{Summary, bounds::sum_peak, skipped_events},
    report::{
        ChargeReport, ExitReport, alive,
        escape::{escape, shorten},
        say,
        value::asked,
        words,
    },
    units::{Bytes, Nanos},
};

/// At most seven lines, and more if the recording checked itself: memory at the peak and by whom, how much to ask for,
/// time and end, processes, who is still alive, trust, what
/// was checked, and the command to type next. Lines are shortened to `width` columns, but never that command,
/// nor what was checked.
///
/// `trace` is the name of the file as the command should have it.
pub fn closing_lines(
    summary: &Summary,
    recording: &Recording,
    trace: &str,
    width: usize,
) -> Vec<String> {
    let mut lines = vec![memory(summary, recording)];
    lines.extend(request(summary, recording));
    lines.extend([time(summary, recording), processes(summary)]);
    if summary.live() > 0 {
        lines.push(format!("alive:     {}", alive::names(summary)));
    }
    lines.push(trust(summary, recording));
    let mut lines: Vec<String> = lines.iter().map(|l| shorten(l, width)).collect();
    lines.extend(checked(recording));
    lines.push(format!("next:      rtrace report {}", file_word(trace)));
    lines
}

/// A file's name for a shell; one that begins like an option isn't taken for one.
fn file_word(name: &str) -> String {
    let dash = if name.starts_with('-') { "./" } else { "" };
    words::shell_word(&format!("{dash}{name}"))
}

fn memory(summary: &Summary, recording: &Recording) -> String {
    let Some(peak) = summary.peak() else {
        return "memory:    not known, no event of memory came".to_owned();
    };
    let sum = match sum_peak(summary, recording, summary.max_spaces()) {
        Some(sum) => words::bounded(sum.rss, sum.bound),
        None => Bytes(peak.rss).to_string(),
    };
    // The name comes last: it is what may be cut.
    let top = peak.top().map(|top| {
        let pid = top.process.map(|p| format!("pid {}, ", p.pid));
        let pid = pid.unwrap_or_default();
        let rss = Bytes(top.memory.rss());
        format!(", {rss} of it in {pid}{}", name(&top.program))
    });
    format!("memory:    RSS peak {sum}{}", top.unwrap_or_default())
}

/// How much to ask a scheduler for.
fn request(summary: &Summary, recording: &Recording) -> Option<String> {
    let request = asked(summary, recording, summary.max_spaces())?;
    Some(format!(
        "ask for:   {}: {}",
        Bytes(request.bytes),
        request.reason()
    ))
}

fn name(program: &[u8]) -> String {
    if program.is_empty() {
        return "a program of unknown name".to_owned();
    }
    shorten(&escape(program), 30)
}

fn time(summary: &Summary, recording: &Recording) -> String {
    if recording.command.is_empty() && recording.attached_ns.is_some() {
        let took = recording
            .end_ns
            .map(|end_ns| end_ns.saturating_sub(recording.start_ns));
        let took = took.map_or_else(|| "not known".to_owned(), |ns| Nanos(ns).to_string());
        return format!("time:      {took}, no command");
    }
    let ended = match recording.exit_status {
        Some(status) => format!(
            "the command {}",
            words::ended(&ExitReport::from_status(status))
        ),
        None if is_command_alive(summary, recording) => "the command still runs".to_owned(),
        None => "how the command ended is not known".to_owned(),
    };
    let root = summary
        .root()
        .filter(|(key, _)| is_command(key.pid, recording));
    let took = root.and_then(|(key, end)| Some(end?.saturating_sub(key.start_ns)));
    let took = took.or_else(|| Some(recording.end_ns?.saturating_sub(recording.start_ns)));
    match took {
        Some(ns) => format!("time:      {}, {ended}", Nanos(ns)),
        None => format!("time:      not known, {ended}"),
    }
}

/// Where more is recorded than a command, the first process of all is another one.
fn is_command(pid: u32, recording: &Recording) -> bool {
    recording.attached_ns.is_none() || pid == recording.root_pid
}

fn is_command_alive(summary: &Summary, recording: &Recording) -> bool {
    let mut alive = summary.alive();
    alive.any(|(key, _)| key.pid == recording.root_pid && key.start_ns == recording.root_start_ns)
}

fn processes(summary: &Summary) -> String {
    let mut out = format!(
        "processes: {}, {} at once",
        words::grouped(summary.processes()),
        words::grouped(summary.max_live())
    );
    let mut also = |n: u64, one: &str, many: &str| {
        if n > 0 {
            out.push_str(", ");
            out.push_str(&words::count(n, one, many));
        }
    };
    also(summary.threads(), "more thread", "more threads");
    also(summary.bad_exits(), "failed", "failed");
    also(
        summary.deaths_by_signal(),
        "killed by a signal",
        "killed by signals",
    );
    also(summary.live(), "still alive", "still alive");
    out
}

fn checked(recording: &Recording) -> Vec<String> {
    let Some(found) = &recording.verification else {
        return Vec::new();
    };
    let (cpus, page_size) = (recording.cpus, recording.page_size);
    let charge = recording.charge.as_ref().map(ChargeReport::new);
    let mut said = say::verification::result(found, recording.start_ns);
    said.extend(charge.and_then(|charge| say::verification::group(&charge, cpus, page_size)));
    said.into_iter()
        .map(|sentence| match sentence.text.strip_prefix("Checked ") {
            Some(rest) => format!("checked:   {rest}"),
            None => format!("           {}", sentence.text),
        })
        .collect()
}

fn trust(summary: &Summary, recording: &Recording) -> String {
    let total = |map: &std::collections::BTreeMap<String, u64>| map.values().sum::<u64>();
    let lost = total(&recording.lost).max(total(summary.lost()));
    let skipped = skipped_events(recording);
    let refused = total(&recording.full_maps);
    let mut parts = Vec::new();
    let mut part = |n: u64, one: &str, many: &str| {
        if n > 0 {
            parts.push(words::count(n, one, many));
        }
    };
    part(lost, "event lost", "events lost");
    part(skipped, "run of a hook skipped", "runs of hooks skipped");
    part(refused, "entry found no room", "entries found no room");
    if parts.is_empty() {
        let events = words::count(summary.events(), "event", "events");
        format!("trust:     nothing lost ({events})")
    } else {
        format!("trust:     NOT complete: {}", parts.join(", "))
    }
}
