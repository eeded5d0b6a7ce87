//! Pools of every kind and start method, and what looks like one.

use super::*;
use crate::{
    event::Usage,
    model::testkit::{MIB, Story},
};

const SPAWN: &[&str] = &[
    "/usr/bin/python3",
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
    "--multiprocessing-fork",
];
const TRACKER: &[&str] = &[
    "/usr/bin/python3",
    "-c",
    "from multiprocessing.resource_tracker import main;main(3)",
];
const SERVER: &[&str] = &[
    "/usr/bin/python3",
    "-c",
    "from multiprocessing.forkserver import main; main(4, 5, ['__main__'], **{})",
];
const LOKY: &[&str] = &[
    "/usr/bin/python3",
    "-m",
    "joblib.externals.loky.backend.popen_loky_posix",
    "--process-name",
    "LokyProcess-1",
];

fn python() -> Story {
    let mut story = Story::new();
    story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
    story
}

/// `owner`'s first thread makes workers as copies.
fn forks(story: &mut Story, owner: u32, pids: std::ops::Range<u32>) {
    for pid in pids {
        story.fork(owner, pid).after(1);
    }
}

fn execs(story: &mut Story, owner: u32, pids: std::ops::Range<u32>, argv: &[&str]) {
    for pid in pids {
        story.vfork(owner, pid).after(1).exec(pid, argv).after(1);
    }
}

/// The three threads of `multiprocessing.Pool`.
fn pool_threads(story: &mut Story, owner: u32, tid: u32) {
    for tid in tid..tid + 3 {
        story.thread(owner, tid);
    }
    story.after(1);
}

/// The two of `ProcessPoolExecutor`.
fn executor_threads(story: &mut Story, owner: u32, tid: u32) {
    story.thread(owner, tid).after(1);
    story.thread_by(owner, tid, tid + 1).after(1);
}

fn end(story: &mut Story, pids: std::ops::Range<u32>) {
    for pid in pids {
        story.after(1).exit(pid, 0).reaped(pid);
    }
}

fn pools(story: &mut Story) -> Vec<Pool> {
    story.after(1).exit(10, 0);
    Pools::of(&story.tree()).pools
}

fn only(story: &mut Story) -> Pool {
    let mut pools = pools(story);
    assert_eq!(pools.len(), 1, "{pools:#?}");
    pools.remove(0)
}

fn told(
    pool: &Pool,
) -> (
    Option<StartMethod>,
    Option<PoolKind>,
    Option<PoolStart>,
    usize,
) {
    (pool.start_method, pool.kind, pool.start, pool.workers.len())
}

#[test]
fn a_pool_of_copies() {
    let mut story = python();
    forks(&mut story, 10, 20..24);
    pool_threads(&mut story, 10, 11);
    story.after(100);
    end(&mut story, 20..24);
    let pool = only(&mut story);
    assert_eq!(
        told(&pool),
        (
            Some(StartMethod::Fork),
            Some(PoolKind::Pool),
            Some(PoolStart::Eager),
            4
        )
    );
    assert_eq!(pool.owner.pid, 10);
    assert_eq!(
        (pool.workers_max, pool.recycled, pool.replaced),
        (Some(4), Some(0), Some(0))
    );
    assert_eq!(pool.first_run_order, Some(pool.workers.clone()));
    let roles = Pools::of(&story.tree());
    assert_eq!(roles.role(story.key(20)), Some(Role::Worker));
    assert_eq!(roles.role(story.key(10)), None);
}

#[test]
fn an_executor_of_copies_starts_all_at_once() {
    let mut story = python();
    forks(&mut story, 10, 20..26);
    executor_threads(&mut story, 10, 11);
    story.after(100);
    end(&mut story, 20..26);
    assert_eq!(
        told(&only(&mut story)),
        (
            Some(StartMethod::Fork),
            Some(PoolKind::ProcessPoolExecutor),
            Some(PoolStart::Eager),
            6
        )
    );
}

#[test]
fn an_executor_that_spawns_starts_on_demand_since_3_9_and_at_once_before() {
    let mut story = python();
    execs(&mut story, 10, 19..20, TRACKER);
    execs(&mut story, 10, 20..21, SPAWN);
    executor_threads(&mut story, 10, 11);
    execs(&mut story, 10, 21..23, SPAWN);
    story.after(100);
    end(&mut story, 19..23);
    let pools = Pools::of(&story.tree());
    assert_eq!(pools.role(story.key(19)), Some(Role::ResourceTracker));
    let kind = Some(PoolKind::ProcessPoolExecutor);
    let spawn = Some(StartMethod::Spawn);
    assert_eq!(
        told(&only(&mut story)),
        (spawn, kind, Some(PoolStart::OnDemand), 3)
    );

    let mut old = python();
    execs(&mut old, 10, 20..23, SPAWN);
    executor_threads(&mut old, 10, 11);
    end(&mut old, 20..23);
    assert_eq!(
        told(&only(&mut old)),
        (spawn, kind, Some(PoolStart::Eager), 3)
    );

    let mut single = python();
    execs(&mut single, 10, 20..21, SPAWN);
    executor_threads(&mut single, 10, 11);
    end(&mut single, 20..21);
    assert_eq!(told(&only(&mut single)), (spawn, kind, None, 1));
}

#[test]
fn workers_of_a_fork_server_belong_to_who_asked() {
    let mut story = python();
    execs(&mut story, 10, 15..16, SERVER);
    execs(&mut story, 10, 16..17, TRACKER);
    forks(&mut story, 15, 20..23);
    pool_threads(&mut story, 10, 11);
    // One ends and the server makes another.
    story
        .after(9)
        .killed(20, 9)
        .reaped(20)
        .after(5)
        .fork(15, 23)
        .after(50);
    end(&mut story, 21..24);
    let server = story.key(15);
    let pool = only(&mut story);
    assert_eq!(
        told(&pool),
        (
            Some(StartMethod::Forkserver),
            Some(PoolKind::Pool),
            Some(PoolStart::Eager),
            4
        )
    );
    assert_eq!((pool.owner.pid, pool.server), (10, Some(server)));
    assert_eq!(
        (pool.workers_max, pool.replaced, pool.recycled),
        (Some(3), Some(1), Some(0))
    );
    assert_eq!(
        Pools::of(&story.tree()).role(server),
        Some(Role::Forkserver)
    );
}

#[test]
fn loky_is_told_by_its_command_line() {
    let mut story = python();
    execs(&mut story, 10, 20..22, LOKY);
    story.after(50).exit(20, 0).reaped(20).after(1);
    execs(&mut story, 10, 22..23, LOKY);
    story.after(50);
    end(&mut story, 21..23);
    let pool = only(&mut story);
    assert_eq!(
        told(&pool),
        (Some(StartMethod::Loky), Some(PoolKind::Loky), None, 3)
    );
    assert_eq!((pool.workers_max, pool.recycled), (Some(2), Some(1)));
}

#[test]
fn workers_that_end_by_plan_are_recycled_and_those_that_die_replaced() {
    let mut story = python();
    forks(&mut story, 10, 20..22);
    pool_threads(&mut story, 10, 11);
    story
        .after(50)
        .exit(20, 0)
        .reaped(20)
        .after(9)
        .fork_by(10, 11, 22);
    story
        .after(50)
        .exit(21, 0)
        .reaped(21)
        .after(9)
        .fork_by(10, 11, 23);
    story
        .after(50)
        .killed(22, 9)
        .reaped(22)
        .after(9)
        .fork_by(10, 11, 24);
    story
        .after(50)
        .exit(23, 1)
        .reaped(23)
        .after(9)
        .fork_by(10, 11, 25);
    story.after(50).killed(24, 15).exit(25, 0);
    let pool = only(&mut story);
    assert_eq!((pool.workers.len(), pool.workers_max), (6, Some(2)));
    assert_eq!((pool.recycled, pool.replaced), (Some(2), Some(2)));
}

#[test]
fn a_death_that_nobody_follows_is_no_replacement() {
    let mut story = python();
    forks(&mut story, 10, 20..23);
    executor_threads(&mut story, 10, 11);
    story.after(5).killed(20, 9).killed(21, 15).killed(22, 15);
    let pool = only(&mut story);
    assert_eq!((pool.recycled, pool.replaced), (Some(0), Some(0)));
}

#[test]
fn two_pools_of_one_process_are_two() {
    let mut story = python();
    forks(&mut story, 10, 20..22);
    pool_threads(&mut story, 10, 11);
    forks(&mut story, 10, 30..33);
    pool_threads(&mut story, 10, 14);
    forks(&mut story, 10, 40..44);
    executor_threads(&mut story, 10, 17);
    // A worker of the second is followed by one that the second's thread makes.
    story
        .after(5)
        .exit(30, 0)
        .reaped(30)
        .after(1)
        .fork_by(10, 14, 33)
        .after(9);
    for pids in [20..22, 31..34, 40..44] {
        end(&mut story, pids);
    }
    let pools = pools(&mut story);
    let sizes: Vec<_> = pools
        .iter()
        .map(|p| (p.workers.len(), p.recycled))
        .collect();
    assert_eq!(sizes, [(2, Some(0)), (4, Some(1)), (4, Some(0))]);
}

#[test]
fn a_pool_used_twice_is_one_and_two_in_turn_are_two() {
    let mut story = python();
    for n in 0..2 {
        forks(&mut story, 10, 20 + n * 10..23 + n * 10);
        pool_threads(&mut story, 10, 11);
        story.after(200).memory(10, 5).after(200);
        end(&mut story, 20 + n * 10..23 + n * 10);
        for tid in 11..14 {
            story.thread_exit(10, tid);
        }
        story.after(1);
    }
    let sizes: Vec<_> = pools(&mut story).iter().map(|p| p.workers.len()).collect();
    assert_eq!(sizes, [3, 3]);
}

#[test]
fn a_pool_in_a_worker_is_the_workers() {
    let mut story = python();
    forks(&mut story, 10, 20..22);
    executor_threads(&mut story, 10, 11);
    forks(&mut story, 20, 30..32);
    executor_threads(&mut story, 20, 13);
    story.after(10);
    end(&mut story, 30..32);
    end(&mut story, 20..22);
    let owners: Vec<_> = pools(&mut story).iter().map(|p| p.owner.pid).collect();
    assert_eq!(owners, [10, 20]);
}

#[test]
fn workers_live_on_without_their_owner() {
    let mut story = python();
    story.fork(10, 15).after(1);
    forks(&mut story, 15, 20..23);
    executor_threads(&mut story, 15, 16);
    story.after(9).killed(15, 9).reaped(15).after(100);
    for pid in 20..23 {
        story.reparent(pid, 1).killed(pid, 15);
    }
    let pool = only(&mut story);
    assert_eq!((pool.owner.pid, pool.workers_max), (15, Some(3)));
}

#[test]
fn a_manager_is_a_server_and_no_worker() {
    let mut story = python();
    story.fork(10, 15).after(1).thread(15, 16).after(5);
    story.thread_by(15, 16, 17).after(1).thread_exit(15, 17);
    forks(&mut story, 10, 20..22);
    executor_threads(&mut story, 10, 11);
    end(&mut story, 20..22);
    story.exit(15, 0).reaped(15);
    let manager = story.key(15);
    assert_eq!(Pools::of(&story.tree()).role(manager), Some(Role::Manager));
    assert_eq!(only(&mut story).workers.len(), 2);
}

#[test]
fn a_child_that_ended_before_a_pool_began_is_not_of_it() {
    let mut story = python();
    story.fork(10, 15).after(5).exit(15, 0).reaped(15).after(1);
    forks(&mut story, 10, 20..22);
    pool_threads(&mut story, 10, 11);
    end(&mut story, 20..22);
    assert_eq!(only(&mut story).workers.len(), 2);
}

#[test]
fn what_is_no_pool() {
    // A single child; a command; a thread that has nothing to do with a child.
    let mut story = python();
    story.fork(10, 15).after(1).thread(10, 11).after(5);
    story
        .vfork(10, 16)
        .after(1)
        .exec(16, &["git", "status"])
        .after(2)
        .exit(16, 0);
    story.exit(15, 0);
    assert_eq!(pools(&mut story), []);

    // Jobs of a build tool and subshells.
    for program in ["/usr/bin/make", "/bin/bash"] {
        let mut story = Story::new();
        story.root(10, &[program, "-j4"]).after(1);
        forks(&mut story, 10, 20..24);
        execs(&mut story, 10, 30..34, &["cc1", "1.c"]);
        story.after(10);
        end(&mut story, 20..24);
        end(&mut story, 30..34);
        assert_eq!(pools(&mut story), [], "{program}");
    }

    // Short jobs one after the other, two at a time.
    let mut story = python();
    for pid in (20..80).step_by(2) {
        story.fork(10, pid).fork(10, pid + 1).after(2);
        end(&mut story, pid..pid + 1);
        story.fork(10, pid + 100);
        end(&mut story, pid + 1..pid + 2);
        end(&mut story, pid + 100..pid + 101);
    }
    assert_eq!(pools(&mut story), []);
}

/// A launcher of this name and three equal programs, which it has numbered so.
fn launched(launcher: &str, numbers: [&str; 3]) -> Vec<Pool> {
    let mut story = Story::new();
    story.root(10, &[launcher, "solver"]).after(1);
    execs(&mut story, 10, 20..23, &["/usr/bin/solver"]);
    for (pid, number) in (20..23).zip(numbers) {
        story.environment(pid, &[number], true);
    }
    story.after(500);
    end(&mut story, 20..23);
    pools(&mut story)
}

#[test]
fn processes_of_a_parallel_program_are_no_workers() {
    for name in ["PMIX_RANK", "PMI_RANK", "SLURM_PROCID"] {
        let numbers = ["0", "1", "2"].map(|n| format!("{name}={n}"));
        let numbers = [&*numbers[0], &*numbers[1], &*numbers[2]];
        assert_eq!(launched("/opt/starter", numbers), [], "{name}");
    }
    assert_eq!(launched("/usr/bin/mpirun", [""; 3]), []);
    // All are in one job of Slurm's.
    assert_eq!(launched("/opt/starter", ["SLURM_PROCID=0"; 3]).len(), 1);
    assert_eq!(launched("/opt/starter", ["MY_RANK=1"; 3]).len(), 1);
}

#[test]
fn equal_workers_of_a_server_are_a_pool_of_unknown_kind() {
    let mut story = Story::new();
    story.root(10, &["nginx: master"]).after(1);
    forks(&mut story, 10, 20..24);
    story.after(500);
    end(&mut story, 20..24);
    assert_eq!(
        told(&only(&mut story)),
        (Some(StartMethod::Fork), None, None, 4)
    );

    let mut story = python();
    execs(
        &mut story,
        10,
        20..23,
        &["/usr/bin/python3", "-c", "import sys;exec(1)"],
    );
    story.after(500);
    end(&mut story, 20..23);
    assert_eq!(told(&only(&mut story)), (None, None, None, 3));
}

#[test]
fn without_threads_the_kind_is_not_known() {
    let mut story = python();
    forks(&mut story, 10, 20..23);
    pool_threads(&mut story, 10, 11);
    story.lost("thread").after(300);
    end(&mut story, 20..23);
    assert_eq!(
        told(&only(&mut story)),
        (Some(StartMethod::Fork), None, None, 3)
    );
}

/// What a worker has written in its life.
fn written(story: &mut Story, pid: u32, bytes: u64) {
    let usage = Usage {
        written_chars: Some(bytes),
        ..Usage::default()
    };
    story.after(1).exit(pid, 0).reaped_with(pid, 0, usage);
}

#[test]
fn who_gave_no_result_back_was_idle() {
    let mut story = python();
    forks(&mut story, 10, 20..24);
    for pid in 20..24 {
        story.memory(pid, 50);
    }
    pool_threads(&mut story, 10, 11);
    for (pid, bytes) in [(20, 29), (21, 0), (22, 4000), (23, 16)] {
        written(&mut story, pid, bytes);
    }
    let idle = [story.key(21), story.key(23)];
    let pool = only(&mut story);
    assert_eq!(pool.idle.as_deref(), Some(&idle[..]));
    assert_eq!(pool.used(), Some(2));
    assert_eq!(pool.idle_bytes_at_peak.map(|b| b / MIB), Some(102));

    // An executor's workers write their pids at the end.
    let mut story = python();
    forks(&mut story, 10, 20..22);
    executor_threads(&mut story, 10, 11);
    written(&mut story, 20, 21);
    written(&mut story, 21, 33);
    assert_eq!(only(&mut story).used(), Some(1));

    // Those of loky make a semaphore besides.
    let mut story = python();
    execs(&mut story, 10, 20..22, LOKY);
    executor_threads(&mut story, 10, 11);
    written(&mut story, 20, 32 + 19);
    written(&mut story, 21, 32 + 19 + 104);
    assert_eq!(only(&mut story).used(), Some(1));

    // Nobody waited for one of them.
    let mut story = python();
    forks(&mut story, 10, 20..22);
    pool_threads(&mut story, 10, 11);
    written(&mut story, 20, 0);
    story.exit(21, 0);
    assert_eq!(only(&mut story).idle, None);
}
