//! Findings on real processes: each situation raises its own, and its twin without the defect doesn't.

use std::{ffi::OsString, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use rtrace_tests::{
    harness::{self, Recorded, Recorder},
    report::{Finding, Report},
    victims::script,
};

const PYTHON: &str = "/usr/bin/python3";

/// Records a situation; `name` is what its program is called.
fn recorded(situation: &str, quality: &str, processes: u32) -> anyhow::Result<(Report, Recorded)> {
    let command: [OsString; 5] = [
        PYTHON.into(),
        script("situations.py").into(),
        situation.into(),
        quality.into(),
        processes.to_string().into(),
    ];
    let recorded = Recorder::new().record(&command)?;
    let report = recorded.report()?;
    ensure!(
        report.root()?.code() == Some(0),
        "{situation} {quality}: {}",
        recorded.stderr
    );
    Ok((report, recorded))
}

fn of<'a>(report: &'a Report, id: &str) -> Vec<&'a Finding> {
    report
        .findings
        .iter()
        .filter(|f| f.id == id && f.assessed)
        .collect()
}

/// The situation raises the finding about so many processes, its twin doesn't raise it at all.
fn pair(situation: &str, id: &str, processes: u32, subjects: usize) -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (bad, _) = recorded(situation, "bad", processes)?;
    let [finding] = of(&bad, id)[..] else {
        anyhow::bail!("{situation}: not one {id} but {:#?}", bad.findings);
    };
    ensure!(finding.subjects.len() == subjects, "{finding:#?}");
    let (good, _) = recorded(situation, "good", processes)?;
    ensure!(
        of(&good, id).is_empty(),
        "{situation}: {:#?}",
        good.findings
    );
    Ok(())
}

#[test]
fn a_child_that_is_not_reaped() -> anyhow::Result<()> {
    pair("zombie", "process.zombie", 1, 1)
}

#[test]
fn a_child_that_outlives_the_command() -> anyhow::Result<()> {
    pair("survivor", "process.survivor", 1, 1)
}

#[test]
fn a_child_that_a_fault_ends() -> anyhow::Result<()> {
    pair("signalled", "process.killed", 1, 1)
}

#[test]
fn forks_of_a_process_with_threads() -> anyhow::Result<()> {
    for threads in [1, 5] {
        pair("threaded", "fork.multithreaded", threads, 2)?;
    }
    Ok(())
}

#[test]
fn many_short_programs() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (bad, _) = recorded("storm", "bad", 350)?;
    ensure!(of(&bad, "fork.storm").len() == 1, "{:#?}", bad.findings);
    let (good, _) = recorded("storm", "good", 350)?;
    ensure!(of(&good, "fork.storm").is_empty(), "{:#?}", good.findings);
    Ok(())
}

#[test]
fn copies_of_a_large_process() -> anyhow::Result<()> {
    // The process and the first twenty of its children.
    pair("large_forks", "fork.slow", 150, 21)
}

#[test]
fn children_of_a_parent_with_a_large_reservation() -> anyhow::Result<()> {
    for children in [1, 4] {
        pair("reserved", "vms.inherited", children, children as usize)?;
    }
    Ok(())
}

#[test]
fn a_small_program_in_a_process_that_was_large() -> anyhow::Result<()> {
    pair("shrinks", "image.peak_inherited", 1, 1)
}

#[test]
fn children_that_share_their_parents_memory() -> anyhow::Result<()> {
    for children in [3, 6] {
        pair(
            "shares",
            "memory.shared_counted_twice",
            children,
            children as usize + 1,
        )?;
    }
    Ok(())
}

#[test]
fn a_worker_that_keeps_something_of_each_task() -> anyhow::Result<()> {
    pair("grows", "memory.growth", 1, 1)
}

#[test]
fn a_client_of_work_elsewhere() -> anyhow::Result<()> {
    pair("client", "tree.work_elsewhere", 1, 1)
}

#[test]
fn a_pid_namespace() -> anyhow::Result<()> {
    pair("namespace", "escape.pid_namespace", 1, 1)
}

#[test]
fn a_core() -> anyhow::Result<()> {
    pair("core", "process.core_dumped", 1, 1)
}

#[test]
fn a_pid_that_is_used_again() -> anyhow::Result<()> {
    pair("pid_again", "pid.reused", 1, 2)
}

#[test]
fn a_limit_of_memory() -> anyhow::Result<()> {
    pair("too_large", "memory.oom_kill", 1, 1)
}

#[test]
fn a_child_that_spins_on_what_no_thread_will_set() -> anyhow::Result<()> {
    pair("spins", "fork.spin_suspected", 1, 1)
}

#[test]
fn how_workers_were_started() -> anyhow::Result<()> {
    for workers in [2, 4] {
        pair("pooled", "pool.start_method", workers, workers as usize)?;
    }
    Ok(())
}

#[test]
fn a_recording_that_lacks_something() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let bad = Recorder::new()
        .without("sched_process_exit")
        .record(&["true"])?
        .report()?;
    ensure!(
        of(&bad, "trust.incomplete").len() == 1,
        "{:#?}",
        bad.findings
    );
    let good = Recorder::new().record(&["true"])?.report()?;
    ensure!(
        of(&good, "trust.incomplete").is_empty(),
        "{:#?}",
        good.findings
    );
    Ok(())
}

#[test]
fn more_workers_than_cpus() -> anyhow::Result<()> {
    const ON_ONE: &str = "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); \
                          os.execv(sys.argv[1], sys.argv[1:])";
    let _alone = harness::alone()?;
    let script = script("situations.py");
    let script = script.to_str().context("a path that isn't text")?;
    let crowded = |quality| {
        let recorder = Recorder::new().under(&[PYTHON, "-c", ON_ONE]);
        recorder
            .record(&[PYTHON, script, "crowded", quality, "4"])?
            .report()
    };
    let (bad, good) = (crowded("bad")?, crowded("good")?);
    let [finding] = of(&bad, "cpu.oversubscribed")[..] else {
        anyhow::bail!("not one: {:#?}", bad.findings);
    };
    ensure!(finding.subjects.len() == 4, "{finding:#?}");
    ensure!(
        of(&good, "cpu.oversubscribed").is_empty(),
        "{:#?}",
        good.findings
    );
    Ok(())
}

/// Each rule is raised by a real process here, and stays silent on the same one without the defect.
#[test]
fn every_finding_has_a_twin() {
    let own: String = include_str!("findings.rs").split_whitespace().collect();
    let is_paired = |id: &str| {
        let calls = own.split("pair(\"").skip(1);
        let mut calls = calls.filter_map(|call| call.split_once("\",\"")?.1.split_once('"'));
        calls.any(|(paired, _)| paired == id)
    };
    let is_by_hand = |id: &str| {
        ["bad", "good"]
            .iter()
            .all(|which| own.contains(&format!("of(&{which},\"{id}\")")))
    };
    let lacking: Vec<&str> = rtrace::findings::RULES
        .iter()
        .map(|rule| rule.id)
        .filter(|id| !is_paired(id) && !is_by_hand(id))
        .collect();
    assert!(
        lacking.is_empty(),
        "without a situation and its twin: {lacking:?}"
    );
}

#[test]
fn a_lock_that_a_thread_held_at_the_fork() -> anyhow::Result<()> {
    pair("locked", "fork.deadlock_suspected", 1, 1)
}

#[test]
fn a_child_that_is_stopped() -> anyhow::Result<()> {
    pair("stops", "process.stopped", 1, 1)
}

#[test]
fn a_session_of_its_own() -> anyhow::Result<()> {
    pair("sessions", "escape.session", 1, 1)
}

#[test]
fn a_program_that_is_missing() -> anyhow::Result<()> {
    pair("missing", "exec.failed", 1, 1)
}

#[test]
fn a_limit_of_processes() -> anyhow::Result<()> {
    pair("refused", "fork.failed", 4, 1)
}

#[test]
fn a_main_program_that_waits_for_its_child() -> anyhow::Result<()> {
    pair("main_waits", "exit.waits_for_child", 1, 2)
}

#[test]
fn a_tree_that_cannot_go_on() -> anyhow::Result<()> {
    pair("asleep", "stall.tree_asleep", 2, 4)
}

#[test]
fn files_that_are_left_in_memory() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (bad, recorded_bad) = recorded("leaves", "bad", 1)?;
    let left = recorded_bad.stdout.trim();
    ensure!(left.starts_with("/dev/shm/rtrace-situation-"), "{left}");
    fs::remove_file(left)?;
    let has_own_group = bad.tree.charge.as_ref().and_then(|c| c.scope.as_deref()) == Some("own");
    ensure!(
        of(&bad, "memory.left_charged").len() == usize::from(has_own_group),
        "{:#?}",
        bad.findings
    );
    let (good, _) = recorded("leaves", "good", 1)?;
    ensure!(
        of(&good, "memory.left_charged").is_empty(),
        "{:#?}",
        good.findings
    );
    Ok(())
}

#[test]
fn a_missing_hook_is_said_and_not_passed_over() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let recorded = Recorder::new()
        .without("sched_process_free")
        .record(&["true"])?;
    let report = recorded.report()?;
    let zombie = report
        .findings
        .iter()
        .find(|f| f.id == "process.zombie")
        .context("silent")?;
    ensure!(
        !zombie.assessed && zombie.text.contains("sched_process_free"),
        "{zombie:?}"
    );
    let text = harness::text_report(&recorded.trace)?;
    ensure!(
        text.contains("Not assessed, since there are no events of reaping"),
        "{text}"
    );
    Ok(())
}

/// Exit status of `rtrace check` with these options.
fn checked(trace: &Path, options: &[&str]) -> anyhow::Result<Option<i32>> {
    let status = Command::new(harness::binary()?)
        .arg("check")
        .arg(trace)
        .args(options)
        .output()?
        .status;
    Ok(status.code())
}

#[test]
fn conditions_decide_the_exit_status() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let (_, bad) = recorded("threaded", "bad", 2)?;
    for (options, expected) in [
        (&[][..], 0),
        (&["--deny", "warning"], 1),
        (&["--deny", "fork.multithreaded"], 1),
        (&["--deny", "pid.reused"], 0),
        (&["--expect", "processes==4"], 0),
        (&["--expect", "processes<4"], 1),
        (&["--expect", "peak<8GiB", "--expect", "survivors==0"], 0),
        (&["--expect", "nothing<8GiB"], 2),
        (&["--deny", "no.such"], 2),
    ] {
        ensure!(
            checked(&bad.trace, options)? == Some(expected),
            "{options:?}"
        );
    }
    let blind = Recorder::new()
        .without("sched_process_free")
        .record(&["true"])?;
    ensure!(checked(&blind.trace, &["--deny", "process.zombie"])? == Some(2));
    Ok(())
}

#[test]
fn a_check_at_the_end_of_a_recording_never_hides_the_commands_status() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for (options, command, expected, said) in [
        (&["--check"][..], "true", 0, "holds"),
        (&["--expect", "processes<2"], "true", 0, "holds"),
        (
            &["--check", "--expect", "processes>1"],
            "true",
            1,
            "VIOLATED",
        ),
        (&["--expect", "processes>1"], "exit 3", 3, "VIOLATED"),
        (
            &["--expect", "pool.kind==Pool"],
            "kill -9 $$",
            137,
            "VIOLATED",
        ),
        (
            &[
                "--deny",
                "process.zombie",
                "--without",
                "sched_process_free",
            ],
            "true",
            2,
            "not decidable",
        ),
    ] {
        let with = |recorder: Recorder, option: &&str| recorder.option(*option);
        let recorder = options.iter().fold(Recorder::new(), with);
        let outcome = recorder.record(&["sh", "-c", command])?;
        ensure!(
            outcome.status.code() == Some(expected) && outcome.stderr.contains(said),
            "{options:?}: {} {}",
            outcome.status,
            outcome.stderr
        );
        ensure!(outcome.stdout.is_empty(), "{}", outcome.stdout);
    }
    Ok(())
}

/// Programs that do nothing wrong, by what a shell makes of them.
const HEALTHY: &[(&str, &str)] = &[
    ("a pipeline", "seq 1 2000 | sort -r | head -n 3 | wc -l"),
    (
        "a script",
        "python3 -c 'import json, re; print(len(json.dumps([1] * 1000)))'",
    ),
    (
        "subprocesses",
        "python3 -c 'import subprocess; [subprocess.run([\"true\"]) for _ in range(5)]'",
    ),
    ("a build", "make -j2 -f build.mk"),
    (
        "a pool",
        "python3 -c 'import multiprocessing as m; p = m.get_context(\"fork\").Pool(3); p.map(abs, range(9)); p.close(); p.join()'",
    ),
    (
        "a pool in a block",
        "python3 -c 'import multiprocessing as m\nwith m.get_context(\"fork\").Pool(3) as p: p.map(abs, range(9))'",
    ),
    (
        "an executor",
        "python3 -c 'from concurrent.futures import ProcessPoolExecutor as E\nwith E(3) as e: print(sum(e.map(abs, range(9))))'",
    ),
];

const MAKEFILE: &str = "all: a b c d\na b c d:\n\t@sleep 0.05; echo 'int main(void) { return 0; }' > $@.c && cc -o $@ $@.c\n";

#[test]
fn healthy_programs_have_no_warnings() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    for (what, line) in HEALTHY {
        // Virtual machines have neither make nor a compiler.
        if harness::is_emulated() && line.starts_with("make") {
            continue;
        }
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("build.mk"), MAKEFILE)?;
        let line = format!("cd {} && {}", folder.path().display(), line);
        let recorded = Recorder::new().record(&["sh", "-c", &line])?;
        let report = recorded.report()?;
        ensure!(
            report.root()?.code() == Some(0),
            "{what}: {}",
            recorded.stderr
        );
        let bad: Vec<_> = report
            .findings
            .iter()
            .filter(|f| f.severity != "info" || !f.assessed)
            .collect();
        ensure!(bad.is_empty(), "{what}: {bad:#?}");
    }
    Ok(())
}

#[test]
fn a_worker_that_dies_and_is_replaced() -> anyhow::Result<()> {
    for workers in [2, 5] {
        pair("dies", "worker.killed", workers, 1)?;
        pair("dies", "worker.replaced", workers, 1)?;
    }
    Ok(())
}

#[test]
fn workers_that_are_renewed_by_plan() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Six tasks for each worker, two in each life: two lives of each place end before the last ones begin.
    let (bad, _) = recorded("recycles", "bad", 3)?;
    let [finding] = of(&bad, "worker.recycled")[..] else {
        anyhow::bail!("not one: {:#?}", bad.findings);
    };
    ensure!(finding.subjects.len() >= 6, "{finding:#?}");
    ensure!(of(&bad, "worker.killed").is_empty() && of(&bad, "worker.replaced").is_empty());
    let (good, _) = recorded("recycles", "good", 3)?;
    ensure!(
        of(&good, "worker.recycled").is_empty(),
        "{:#?}",
        good.findings
    );
    Ok(())
}

#[test]
fn workers_that_never_had_anything_to_do() -> anyhow::Result<()> {
    for workers in [2, 4] {
        pair("idles", "worker.idle", workers, workers as usize - 1)?;
    }
    Ok(())
}

#[test]
fn workers_whose_owner_was_killed() -> anyhow::Result<()> {
    for workers in [2, 3] {
        pair("orphans", "worker.orphaned", workers, workers as usize)?;
    }
    Ok(())
}

#[test]
fn workers_whose_owner_went_without_them() -> anyhow::Result<()> {
    for workers in [2, 3] {
        pair("leftover", "worker.leftover", workers, workers as usize)?;
    }
    Ok(())
}

#[test]
fn an_executor_that_gives_up() -> anyhow::Result<()> {
    for workers in [2, 4] {
        pair("breaks", "pool.broken", workers, 1)?;
    }
    Ok(())
}
