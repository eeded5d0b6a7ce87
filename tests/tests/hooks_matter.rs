//! Each hook is needed: with it a fact is reported, without it that fact is missing.
//!
//! So `cargo xtask test --without HOOK` fails for each of them.

use std::ffi::OsString;

use anyhow::ensure;
use rtrace_tests::{
    harness::{self, Recorder},
    lone_surrogates::Text,
    report::Report,
    victims::victim,
};

/// A hook, what the victim does, and whether the fact is in the report.
struct Need {
    hook: &'static str,
    /// Program of `workloads/`.
    victim: &'static str,
    act: [&'static str; 2],
    fact: &'static str,
    is_known: fn(&Report) -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        hook: "page_fault_user",
        victim: "family",
        act: ["4", "1"],
        fact: "which pages a child has copied",
        is_known: counts_copies,
    },
    Need {
        hook: "page_fault_kernel",
        victim: "family",
        act: ["4", "1"],
        // Without the kernel's own writes there would be too few.
        fact: "which pages a child has copied",
        is_known: counts_copies,
    },
    Need {
        hook: "task_newtask",
        victim: "actor",
        act: ["vfork", "3"],
        fact: "the flags of clone",
        is_known: |report| {
            report.others().iter().any(|child| {
                child
                    .clone_flags
                    .as_ref()
                    .is_some_and(|flags| !flags.is_empty())
            })
        },
    },
    Need {
        hook: "sched_process_fork",
        victim: "actor",
        act: ["forks", "1"],
        // Its process would still be shown, by its exit, under the parent that it had then.
        fact: "the thread that created the child",
        is_known: |report| {
            report
                .others()
                .iter()
                .any(|child| child.creator_tid.is_some())
        },
    },
    Need {
        hook: "sched_process_exec",
        victim: "actor",
        act: ["burst", "1"],
        fact: "the program of the child",
        is_known: |report| {
            let is_true = |name: &Text| name == "/bin/true";
            report.others().iter().any(|child| {
                child
                    .execs()
                    .any(|image| image.filename.as_ref().is_some_and(is_true))
            })
        },
    },
    Need {
        hook: "sched_process_exit",
        victim: "actor",
        act: ["forks", "1"],
        fact: "the exit code of the child",
        is_known: |report| report.others().iter().any(|child| child.code() == Some(7)),
    },
    Need {
        hook: "sched_process_free",
        victim: "actor",
        act: ["zombie", "0"],
        fact: "how long the child was a zombie",
        is_known: |report| {
            report
                .others()
                .iter()
                .any(|child| child.zombie_ns.is_some())
        },
    },
    Need {
        hook: "task_rename",
        victim: "actor",
        act: ["names", "0"],
        fact: "the name that the child gave itself",
        is_known: |report| {
            let renamed = |name: &Text| name.0.starts_with(b"b\xffyte");
            report
                .others()
                .iter()
                .any(|child| child.comm.as_ref().is_some_and(renamed))
        },
    },
    Need {
        hook: "rss_stat",
        victim: "actor",
        act: ["memory", "64"],
        fact: "the peak of memory that was given back before the end",
        is_known: |report| {
            let is_there = |image: &rtrace_tests::report::Image| {
                image.peak_rss_bytes.is_some_and(|peak| peak >= 64 << 20)
            };
            report
                .others()
                .iter()
                .any(|child| child.images.iter().any(is_there))
        },
    },
    Need {
        hook: "exit_mmap",
        victim: "actor",
        act: ["memory", "64"],
        // Only the end of the address space has the peak that was kept at every event.
        fact: "the child's peak to no more than the counters' own error",
        is_known: |report| {
            let counters = 3 * report.recording.rss_bound_bytes;
            let is_there = |image: &rtrace_tests::report::Image| {
                image
                    .peak_rss_bound_bytes
                    .is_some_and(|bound| bound <= counters)
            };
            report
                .others()
                .iter()
                .any(|child| child.images.iter().any(is_there))
        },
    },
    Need {
        hook: "signal_generate",
        victim: "watched",
        act: ["killed", "15"],
        fact: "who killed the child",
        is_known: |report| {
            let has_sender = |exit: &rtrace_tests::report::Exit| exit.sender.is_some();
            report
                .others()
                .iter()
                .any(|child| child.exit.as_ref().is_some_and(has_sender))
        },
    },
    Need {
        hook: "sys_exit",
        victim: "watched",
        act: ["fails", "1"],
        fact: "which calls of exec failed",
        is_known: |report| {
            report.others().iter().any(|child| {
                child
                    .exec_failures
                    .as_ref()
                    .is_some_and(|failures| !failures.is_empty())
            })
        },
    },
    Need {
        hook: "sys_enter",
        victim: "actor",
        act: ["forks", "1"],
        fact: "how long the call took that made the child",
        is_known: |report| report.others().iter().any(|child| child.fork_ns.is_some()),
    },
    Need {
        hook: "sched_switch",
        victim: "watched",
        act: ["stops", "200"],
        fact: "how long the child was stopped",
        is_known: |report| {
            report
                .others()
                .iter()
                .any(|child| child.stopped_ns > Some(0))
        },
    },
    Need {
        hook: "cgroup_attach_task",
        victim: "watched",
        act: ["moves", "0"],
        fact: "that the child moved to another control group",
        is_known: |report| report.others().iter().any(|child| !child.moves.is_empty()),
    },
    Need {
        hook: "mark_victim",
        victim: "oom",
        act: ["private", "32"],
        fact: "that the child was killed for memory",
        is_known: |report| report.tree.oom_kills == Some(1),
    },
    Need {
        hook: "mm_vmscan_memcg_reclaim_begin",
        victim: "oom",
        act: ["private", "32"],
        fact: "that a control group ran out",
        is_known: |report| has_run_out(report, "cgroup"),
    },
    Need {
        hook: HOST_RUNS_OUT,
        victim: "oom",
        act: ["host", "0"],
        fact: "that the whole host ran out",
        is_known: |report| has_run_out(report, "host"),
    },
];

fn counts_copies(report: &Report) -> bool {
    let images = report.others().into_iter().flat_map(|child| &child.images);
    images.filter_map(|image| image.write_faults).any(|n| n > 0)
}

/// A hook that can be tried out on a machine of its own only.
const HOST_RUNS_OUT: &str = "mm_vmscan_direct_reclaim_begin";

fn has_run_out(report: &Report, scope: &str) -> bool {
    let victims = report
        .processes
        .iter()
        .filter_map(|process| process.oom.as_ref());
    victims
        .map(|oom| oom.scope.as_deref())
        .any(|found| found == Some(scope))
}

fn is_known(need: &Need, recorder: &Recorder) -> anyhow::Result<bool> {
    let command: [OsString; 3] = [
        victim(need.victim).into(),
        need.act[0].into(),
        need.act[1].into(),
    ];
    Ok((need.is_known)(&recorder.record(&command)?.report()?))
}

#[test]
fn a_fact_is_missing_without_its_hook() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for need in NEEDS {
        let (hook, fact) = (need.hook, need.fact);
        if hook == HOST_RUNS_OUT && !harness::is_emulated() {
            continue;
        }
        ensure!(
            is_known(need, &Recorder::new())?,
            "with all hooks, {fact} should be known"
        );
        ensure!(
            !is_known(need, &Recorder::new().without(hook))?,
            "{fact} is known even without {hook}"
        );
    }
    Ok(())
}

#[test]
fn a_report_says_which_hook_was_left_out() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for need in NEEDS {
        let report = Recorder::new()
            .without(need.hook)
            .record(&["/bin/true"])?
            .report()?;
        ensure!(
            !report.trust.complete,
            "without {} a report isn't complete",
            need.hook
        );
        ensure!(
            report
                .trust
                .notes
                .iter()
                .any(|note| note.contains(need.hook)),
            "{}: {:?}",
            need.hook,
            report.trust
        );
    }
    Ok(())
}
