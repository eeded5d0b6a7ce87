//! What was lost, in plain sentences.

use crate::{
    event::Recording,
    model::{build::Context, tree::Trust},
};

/// Things that don't fit together unless an event was lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gaps {
    /// Processes without the event of their creation.
    pub(super) forks: u64,
    /// Those of them whose parent at the end stands in for their creator.
    pub(super) creators_from_parent: u64,
    /// Images without the event of their exec.
    pub(super) execs: u64,
    /// Processes that ended without an event of that.
    pub(super) ends: u64,
    /// Processes of which it isn't known whether they ended.
    pub(super) unknown_ends: u64,
    /// Address spaces without an end.
    pub(super) mm_ends: u64,
    /// Processes whose threads can't be counted.
    pub(super) threads: u64,
    /// Environments of which the end wasn't looked through.
    pub(super) cut_environments: u64,
    /// Marks that were left out since a process made too many.
    pub(super) marks: u64,
    /// Processes that were there before the recording began. Nothing is missing of what was to be recorded.
    pub(super) found: u64,
    /// Processes that came into the control group which was recorded.
    pub(super) entered: u64,
    /// Argument lists of which the end wasn't kept.
    pub(super) cut_arguments: u64,
}

/// Hooks that show values as they are now: what one run doesn't see, the next does.
const SHOWN_AGAIN: [&str; 2] = ["rss_stat", "mmap_lock_released"];
/// Hooks that only count how much memory may be a forked process's own.
const COUNTED: [&str; 2] = ["page_fault_user", "page_fault_kernel"];
/// Hooks that only tell what ran out when the OOM killer chooses, and are no events of their own.
const BEFORE_A_KILL: [&str; 2] = [
    "mm_vmscan_memcg_reclaim_begin",
    "mm_vmscan_direct_reclaim_begin",
];

/// The hooks that show begin and end of every system call of the whole host, of which next to none are told.
const OF_EVERYBODY: [&str; 2] = ["sys_enter", "sys_exit"];

/// Runs that were skipped and may each have been an event: those that make a recording incomplete.
pub fn skipped_events(recording: &Recording) -> u64 {
    let misses = recording.recursion_misses.iter();
    let is_event = |(hook, _): &(&String, &u64)| {
        let hook = hook.as_str();
        let lists: [&[&str]; 4] = [&SHOWN_AGAIN, &COUNTED, &BEFORE_A_KILL, &OF_EVERYBODY];
        !lists.iter().any(|list| list.contains(&hook))
    };
    misses.filter(is_event).map(|(_, n)| n).sum()
}

/// Puts losses and gaps into words.
pub(super) fn trust(context: &Context<'_>, gaps: &Gaps, events: u64) -> Trust {
    let recording = context.recording;
    let lost: u64 = context.lost.values().sum();
    let skipped = skipped_events(recording);
    let refused: u64 = recording.full_maps.values().sum();
    let mut notes = Vec::new();
    if recording.cut_short {
        notes.push(
            "The file was cut short: the recorder did not end it, so what came after the last event is not known."
                .to_owned(),
        );
    } else if recording.end_ns.is_none() {
        notes.push("The recording has no end; what came after the last event is not known.".into());
    }
    let kinds = context.lost.iter().filter(|(_, n)| **n > 0);
    let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} of {kind}")).collect();
    if lost > 0 {
        notes.push(format!(
            "{lost} {} lost on the way from the kernel: {}{}.",
            was(lost, "record", "records"),
            kinds.join(", "),
            on_cpus(recording)
        ));
    }
    for (program, n) in recording.recursion_misses.iter().filter(|(_, n)| **n > 0) {
        let runs = if *n == 1 { "run" } else { "runs" };
        let meaning = if SHOWN_AGAIN.contains(&program.as_str()) {
            "each may be a change of memory, of any process, that was seen at the next one only"
        } else if COUNTED.contains(&program.as_str()) {
            "each may be a page, of any process, that was copied on write and isn't counted as such"
        } else if BEFORE_A_KILL.contains(&program.as_str()) {
            "what ran out when the OOM killer chose may be an older finding"
        } else {
            "each may be an event that is missing"
        };
        notes.push(format!(
            "The kernel skipped {n} {runs} of the hook {program}; {meaning}."
        ));
    }
    for (map, n) in recording.full_maps.iter().filter(|(_, n)| **n > 0) {
        notes.push(format!(
            "{n} {} no room in the kernel-side table {map}; what belongs to {} is missing.",
            if *n == 1 {
                "entry found"
            } else {
                "entries found"
            },
            if *n == 1 { "it" } else { "them" }
        ));
    }
    if recording.late_events > 0 {
        notes.push(format!(
            "{} {} too late to be put in order.",
            recording.late_events,
            if recording.late_events == 1 {
                "event came"
            } else {
                "events came"
            }
        ));
    }
    if !recording.missing_hooks.is_empty() {
        notes.push(format!(
            "Hooks that were missing or switched off: {}.",
            recording.missing_hooks.join(", ")
        ));
    }
    for (hook, stand_in) in &recording.stand_ins {
        notes.push(format!("Without the hook {hook}: {stand_in}."));
    }
    notes.extend(gap_notes(gaps));
    let fits = gaps.forks + gaps.execs + gaps.ends + gaps.mm_ends + gaps.threads == 0;
    Trust {
        events,
        lost_events: lost,
        complete: context.has_end
            && recording.missing_hooks.is_empty()
            && lost + skipped + refused == 0
            && fits,
        notes,
    }
}

/// Where records were lost, if more than one CPU could have lost them.
fn on_cpus(recording: &Recording) -> String {
    if recording.cpus < 2 || recording.lost_by_cpu.is_empty() {
        return String::new();
    }
    let each = recording.lost_by_cpu.iter();
    let each: Vec<String> = each.map(|(cpu, n)| format!("{n} on CPU {cpu}")).collect();
    format!(" ({})", each.join(", "))
}

fn was(n: u64, one: &str, many: &str) -> String {
    if n == 1 {
        format!("{one} was")
    } else {
        format!("{many} were")
    }
}

fn gap_notes(gaps: &Gaps) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |n: u64, one: &str, many: &str| {
        if n > 0 {
            notes.push(format!("{n} {}", if n == 1 { one } else { many }));
        }
    };
    note(
        gaps.forks,
        "process appears without the event of its creation: who made it, and how, is not known.",
        "processes appear without the event of their creation: who made them, and how, is not known.",
    );
    note(
        gaps.creators_from_parent,
        "of them is shown under the parent that it had at its end, which need not be its creator.",
        "of them are shown under the parent that they had at their end, which need not be their creator.",
    );
    note(
        gaps.execs,
        "program start is missing: memory shows that there was one, its name is not known.",
        "program starts are missing: memory shows that there were some, their names are not known.",
    );
    note(
        gaps.ends,
        "process ended without an event of that: when and how is not known.",
        "processes ended without an event of that: when and how is not known.",
    );
    note(
        gaps.unknown_ends,
        "process may have ended or not: the recording does not say.",
        "processes may have ended or not: the recording does not say.",
    );
    note(
        gaps.mm_ends,
        "address space has no end: its highest values come from the rows of the trace.",
        "address spaces have no end: their highest values come from the rows of the trace.",
    );
    note(
        gaps.threads,
        "process has an unknown number of threads, since records of threads were lost.",
        "processes have an unknown number of threads, since records of threads were lost.",
    );
    note(
        gaps.cut_environments,
        "environment was too large to be looked through: variables that are kept may be missing.",
        "environments were too large to be looked through: variables that are kept may be missing.",
    );
    note(
        gaps.marks,
        "mark is left out: of each process only the first 10,000 are kept.",
        "marks are left out: of each process only the first 10,000 are kept.",
    );
    note(
        gaps.found,
        "process was there before the recording began: how it was made, and what it did and used before, is not known.",
        "processes were there before the recording began: how they were made, and what they did and used before, is not \
         known.",
    );
    note(
        gaps.entered,
        "process came into the control group while it was recorded: how it was made, and what it did and used before, is \
         not known.",
        "processes came into the control group while it was recorded: how they were made, and what they did and used \
         before, is not known.",
    );
    note(
        gaps.cut_arguments,
        "argument list was not kept to its end: its image says how long it was.",
        "argument lists were not kept to their end: their images say how long they were.",
    );
    notes
}
