//! What a rule needs to be judged, and whether a recording has it.

use crate::{event::Recording, findings::Scene, units::grouped};

/// Kinds of events that a rule rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Creations of processes.
    Forks,
    /// Programs.
    Execs,
    /// Ends of processes.
    Ends,
    /// Threads.
    Threads,
    /// Memory.
    Memory,
    /// Reaping.
    Reaping,
    /// Victims of the OOM killer.
    Victims,
    /// Failed calls of exec and fork.
    FailedCalls,
    /// Calls of setsid.
    Sessions,
    /// Signals and who sent them.
    Signals,
    /// Long waits of threads.
    Waits,
    /// A proper end of the recording, when the recorder looks at who is alive.
    End,
}

/// What a need rests on.
struct Source {
    /// In words.
    what: &'static str,
    /// Kinds of events, as losses name them.
    kinds: &'static [&'static str],
    /// Hooks that give them.
    hooks: &'static [&'static str],
}

impl Need {
    fn source(self) -> Source {
        let source = |what, kinds, hooks| Source { what, kinds, hooks };
        match self {
            Self::Forks => source(
                "creations of processes",
                &["fork"],
                &["task_newtask", "sched_process_fork"],
            ),
            Self::Execs => source("programs", &["exec"], &["sched_process_exec"]),
            Self::Ends => source("ends of processes", &["exit"], &["sched_process_exit"]),
            Self::Threads => source("threads", &["thread"], &["task_newtask"]),
            Self::Memory => source("memory", &["memory", "mm_end"], &["rss_stat", "exit_mmap"]),
            Self::Reaping => source("reaping", &["reaped"], &["sched_process_free"]),
            Self::Victims => source("victims of the OOM killer", &["oom"], &["mark_victim"]),
            Self::FailedCalls => source(
                "failed calls",
                &["exec_failed", "fork_failed"],
                &["sys_exit"],
            ),
            Self::Sessions => source("calls of setsid", &["session"], &["sys_exit"]),
            Self::Signals => source("signals", &["signal"], &["signal_generate"]),
            Self::Waits => source("waits of threads", &["sleep"], &["sched_switch"]),
            Self::End => source("the end of the recording", &[], &[]),
        }
    }

    /// Why it isn't there, or not whole, as a sentence without its full stop. `None` if it is.
    pub fn missing(self, scene: &Scene<'_>) -> Option<String> {
        let recording = scene.recording;
        if self == Self::End {
            return (recording.cut_short || recording.end_ns.is_none())
                .then(|| "the recording has no proper end".to_owned());
        }
        let source = self.source();
        if let Some(hook) = source.hooks.iter().find(|hook| is_off(recording, hook)) {
            return Some(format!(
                "there are no events of {}: hook {hook} was missing or switched off",
                source.what
            ));
        }
        let lost: u64 = source.kinds.iter().map(|kind| scene.lost(kind)).sum();
        let skipped = source
            .hooks
            .iter()
            .filter_map(|hook| recording.recursion_misses.get(*hook));
        // What one run of the hook of memory misses, the next one shows.
        let skipped: u64 = if self == Self::Memory {
            0
        } else {
            skipped.sum()
        };
        match (lost, skipped) {
            (0, 0) => None,
            (0, n) => Some(format!(
                "the kernel skipped {} of {}",
                grouped(n),
                source.what
            )),
            (n, _) => Some(format!(
                "{} of {} {} lost",
                events(n),
                source.what,
                if n == 1 { "was" } else { "were" }
            )),
        }
    }
}

fn events(n: u64) -> String {
    let noun = if n == 1 { "event" } else { "events" };
    format!("{} {noun}", grouped(n))
}

fn is_off(recording: &Recording, hook: &str) -> bool {
    recording
        .missing_hooks
        .iter()
        .any(|missing| missing == hook)
}
