//! `cpu.oversubscribed`: workers of a pool had more threads than there were CPUs, and took CPUs from each other.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{found, keys},
    },
    model::{Process, pools::Pool},
};

/// Threads for each CPU from which on it counts.
const TIMES: u64 = 2;
/// CPU time of all workers below which nothing was lost that matters, ns.
const LEAST_NS: u64 = 1_000_000_000;
/// Times in a second of CPU time that the CPU was taken from a worker: an undisturbed one loses it a few times.
const RATE: u64 = 20;

pub(super) const RULE: Rule = Rule {
    id: "cpu.oversubscribed",
    severity: Severity::Warning,
    title: "a pool had more threads at work than there were CPUs",
    meaning: "Workers times threads is more than the CPUs that the command may run on, so that they take turns. Each turn \
        costs time and caches, and threads that wait for each other (OpenMP, BLAS) can take many times as long. Libraries \
        count the host's CPUs, not those that a scheduler or a container allows.",
    measured: "Most workers alive at once, times most threads that one of them had at once, is at least twice the number of \
        CPUs that the command may run on; the workers used at least 1 s of CPU time together, and in each second of that \
        the kernel took a CPU from them at least 20 times.",
    advice: "make fewer workers, or give each fewer threads (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS)",
    wrong: "Threads that slept are counted too, and CPUs may have been taken by other programs of the host. A limit of CPU \
        time by a control group isn't taken for fewer CPUs.",
    needs: &[Need::Forks, Need::Threads, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        let workers = found(scene, &pool.workers);
        let cpu_ns: u64 = workers.iter().filter_map(|worker| worker.cpu_ns).sum();
        if cpu_ns < LEAST_NS {
            continue;
        }
        let conditions = scene.recording.conditions.as_ref();
        let list = conditions.and_then(|conditions| conditions.allowed_cpus.as_deref());
        let Some(cpus) = list.and_then(counted) else {
            out.unknown("the CPUs that the command may run on are not known");
            continue;
        };
        let threads: Option<Vec<u32>> = workers.iter().map(|worker| worker.threads_max).collect();
        let most = threads.and_then(|threads| threads.into_iter().max());
        let (Some(at_once), Some(each)) = (pool.workers_max, most.map(u64::from)) else {
            out.unknown("of a pool it isn't known how many workers and threads it had at once");
            continue;
        };
        if at_once.saturating_mul(each) < cpus.saturating_mul(TIMES) {
            continue;
        }
        let Some(taken) = taken(&workers) else {
            out.unknown("of a pool's workers it isn't known how often they lost a CPU");
            continue;
        };
        // Switches in as many ns.
        if u128::from(taken) * 1_000_000_000 >= u128::from(cpu_ns) * u128::from(RATE) {
            out.push(finding(
                scene,
                pool,
                &workers,
                (at_once, each, cpus),
                (cpu_ns, taken),
            ));
        }
    }
}

fn finding(
    scene: &Scene<'_>,
    pool: &Pool,
    workers: &[&Process],
    (at_once, each, cpus): (u64, u64, u64),
    (cpu_ns, taken): (u64, u64),
) -> Finding {
    let setting = scene.process(pool.owner).and_then(threads_variable);
    let fewer = (cpus / at_once.max(1)).max(1);
    let advice = if each > 1 {
        format!(
            "give each worker {fewer} of the threads (OMP_NUM_THREADS={fewer} and the like), or make at most {} workers",
            (cpus / each).max(1)
        )
    } else {
        format!(
            "make at most {cpus} workers; os.cpu_count() and nproc --all don't tell what is allowed"
        )
    };
    Finding::new(&RULE, keys(workers))
        .with("owner", Value::Process(pool.owner))
        .with("workers", Value::Count(at_once, "worker", "workers"))
        .with("threads_each", Value::Count(each, "thread", "threads"))
        .with("cpus", Value::Count(cpus, "CPU", "CPUs"))
        .with("cpu_ns", Value::Span(cpu_ns))
        .with("switches", Value::Count(taken, "time", "times"))
        .with_known("setting", setting.map(Value::Text))
        .advise(advice)
        .say(
            scene,
            "{workers} at once in a pool of {owner}, each with up to {threads_each}[ ({setting})], on {cpus}: in {cpu_ns} of \
             CPU time a CPU was taken from them {switches}",
        )
}

/// How often the kernel took a CPU from these, in all.
fn taken(workers: &[&Process]) -> Option<u64> {
    let each = workers.iter().map(|w| w.usage.switches_involuntary);
    each.sum()
}

/// The first variable by which somebody chose a number of threads, `NAME=value`.
fn threads_variable(process: &Process) -> Option<Vec<u8>> {
    let values = &process.environment.as_ref()?.values;
    let is_one = |value: &&Vec<u8>| {
        let name = value.split(|byte| *byte == b'=').next();
        name.is_some_and(|name| name.ends_with(b"_NUM_THREADS"))
    };
    values.iter().find(is_one).cloned()
}

/// How many numbers a list such as "0-3,8" has; `None` if it isn't one.
fn counted(list: &str) -> Option<u64> {
    let mut count: u64 = 0;
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u64, u64) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        count = count.checked_add(to.checked_sub(from)?.checked_add(1)?)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Conditions, Usage},
        findings::testkit::{raised, unassessed},
        model::testkit::{MS, Story},
    };

    /// A pool of so many workers with an extra thread each, which used 800 ms each and lost a CPU so often.
    fn pool(workers: u32, taken: u64, cpus: Option<&str>) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["/usr/bin/python3", "x.py"])
            .environment(10, &["OMP_NUM_THREADS=2"], true);
        story.after(10);
        for pid in 20..20 + workers {
            story.fork(10, pid).after(1).thread(pid, pid + 100);
        }
        for tid in 11..14 {
            story.thread(10, tid);
        }
        story.after(900);
        for pid in 20..20 + workers {
            let usage = Usage {
                user_ns: Some(800 * MS),
                system_ns: Some(0),
                switches_involuntary: Some(taken),
                ..Usage::default()
            };
            story.exit(pid, 0).reaped_with(pid, 800 * MS, usage);
        }
        story.exit(10, 0);
        let allowed_cpus = cpus.map(str::to_owned);
        story.recording(|r| {
            r.conditions = Some(Conditions {
                allowed_cpus,
                ..Conditions::default()
            });
        });
        story
    }

    #[test]
    fn workers_times_threads_against_cpus() {
        let story = pool(4, 16, Some("0-2,7"));
        let found = raised(&story, RULE.id);
        assert_eq!(
            found[0].text,
            "4 workers at once in a pool of python3 x.py (pid 10), each with up to 2 threads (OMP_NUM_THREADS=2), on 4 CPUs: \
             in 3.2 s of CPU time a CPU was taken from them 64 times"
        );
        assert!(
            found[0].advice.contains("OMP_NUM_THREADS=1"),
            "{}",
            found[0].advice
        );
        assert_eq!(found[0].subjects.len(), 4);
    }

    #[test]
    fn at_the_thresholds() {
        // Eight threads on five CPUs; one switch too few; less than a second of work.
        assert_eq!(raised(&pool(4, 16, Some("0-4")), RULE.id), []);
        assert_eq!(raised(&pool(4, 15, Some("0-3")), RULE.id), []);
        assert_eq!(raised(&pool(1, 99, Some("0")), RULE.id), []);
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert!(unassessed(&pool(4, 16, None), RULE.id).is_some());
        let mut story = pool(4, 16, Some("0"));
        story.lost("thread");
        let found = raised(&story, RULE.id);
        assert!(found[0].doubt.is_some(), "{found:?}");
    }

    #[test]
    fn lists_of_cpus() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-3,8", Some(5)),
            ("", None),
            ("3-1", None),
            ("a", None),
        ] {
            assert_eq!(counted(list), count, "{list}");
        }
    }
}
