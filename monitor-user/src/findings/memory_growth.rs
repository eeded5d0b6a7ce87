//! `memory.growth`: a worker has more memory after each task.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{grouped_by, is_worker, keys},
    },
    model::Process,
};

/// Growth from which on it counts, bytes.
const LEAST: u64 = 64 << 20;
/// A worker lived for at least this, ns.
const LIFE_NS: u64 = 1_000_000_000;
/// Parts of its life that can be compared, beside the first and the last.
const PARTS: usize = 6;
/// Parts in which it grew by a twentieth of the whole growth or more.
const RISES: usize = 4;

pub(super) const RULE: Rule = Rule {
    id: "memory.growth",
    severity: Severity::Warning,
    title: "a worker has more and more memory from task to task",
    meaning: "What a task leaves behind stays until its worker ends: caches, results that are referenced, allocations \
        that C code never frees, a heap in pieces. With many tasks the workers together reach the limit, and which \
        task is killed then is chance.",
    measured: "The worker's life of at least 1 s is divided into 8 to 16 equal parts, and of each the least anonymous \
        memory is taken, so that what a task takes and gives back doesn't count. It rises by at least 64 MiB and by \
        half of what was there, in at least 4 parts, by at most half of it in one, and never falls by more than a \
        tenth of that. The first and the last part are left out, and the last but one \
        if the memory is given back from there on.",
    advice: "end workers after some tasks (maxtasksperchild, max_tasks_per_child, joblib's recycling), find what a task \
        keeps (tracemalloc, heaptrack), or return less from it",
    wrong: "A worker that does a single task which fills memory steadily looks the same.",
    needs: &[Need::Memory, Need::Forks],
    told_by: &[],
    detect,
};

/// How a worker grew.
struct Growth {
    from: u64,
    to: u64,
    ns: u64,
}

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let workers = scene
        .tree
        .processes
        .iter()
        .filter(|p| is_worker(scene, p) && growth(p).is_some());
    for (_, members) in grouped_by(workers, |p| p.created.creator) {
        let grown = members.iter().filter_map(|p| growth(p));
        let Some(most) = grown.max_by_key(|growth| growth.to - growth.from) else {
            continue;
        };
        let per_second =
            u128::from(most.to - most.from) * 1_000_000_000 / u128::from(most.ns.max(1));
        let finding = Finding::new(&RULE, keys(&members))
            .with("from_bytes", Value::Bytes(most.from))
            .with("to_bytes", Value::Bytes(most.to))
            .with("within_ns", Value::Span(most.ns))
            .with(
                "per_second_bytes",
                Value::Bytes(u64::try_from(per_second).unwrap_or(u64::MAX)),
            );
        found.push(finding.say(
            scene,
            "{who} grew all the time, by {per_second_bytes} a second at most: from {from_bytes} of anonymous memory to \
             {to_bytes} within {within_ns}",
        ));
    }
}

fn growth(process: &Process) -> Option<Growth> {
    let image = process
        .images
        .last()
        .filter(|image| image.shared_mm_with.is_none())?;
    let floors = image.memory?.floors;
    let lows = tasks(floors.lows())?;
    let (from, to) = (*lows.first()?, *lows.last()?);
    let whole = to.checked_sub(from)?;
    let rises: Vec<u64> = lows
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    let falls = lows
        .windows(2)
        .map(|pair| pair[0].saturating_sub(pair[1]))
        .max()?;
    let is_large = whole >= LEAST && whole.saturating_mul(2) >= from;
    let is_steady = rises.iter().filter(|rise| **rise >= whole / 20).count() >= RISES
        && rises.iter().all(|rise| *rise <= whole / 2)
        && falls <= whole / 10;
    let parts = u64::try_from(lows.len()).ok()?;
    let ns = floors.width_ns().saturating_mul(parts);
    (lows.len() >= PARTS && ns >= LIFE_NS && is_large && is_steady).then_some(Growth {
        from,
        to,
        ns,
    })
}

/// The parts of a life without its start and its end, which are no tasks. Giving all back at the end takes a while, so it
/// may have begun in the part before.
fn tasks(lows: &[u64]) -> Option<&[u64]> {
    match lows.get(1..lows.len().checked_sub(1)?)? {
        [tasks @ .., before, last] if last < before => lows.get(1..=tasks.len() + 1),
        tasks => Some(tasks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// A worker whose task takes 200 MiB and that keeps `kept(task)` MiB after it.
    fn worker(kept: impl Fn(u64) -> u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["python3", "p.py"])
            .memory(10, 50)
            .fork(10, 20);
        for task in 0..20 {
            story
                .after(50)
                .memory(20, 250 + kept(task))
                .after(50)
                .memory(20, 50 + kept(task));
        }
        story.after(5).exit(20, 0).reaped(20);
        story
    }

    #[test]
    fn what_each_task_leaves() {
        let story = worker(|task| task * 10);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20)]);
        assert!(
            found[0].text.contains("grew all the time, by "),
            "{}",
            found[0].text
        );
    }

    /// Giving back takes some time, and may begin in the last but one part, wherever parts begin and end.
    #[test]
    fn when_it_gives_back_does_not_matter() {
        for ms in 0..300 {
            let mut story = Story::new();
            story
                .root(10, &["python3", "p.py"])
                .memory(10, 50)
                .fork(10, 20);
            for task in 0..18 {
                story
                    .after(50)
                    .memory(20, 250 + task * 10)
                    .after(50)
                    .memory(20, 50 + task * 10);
            }
            story.after(ms);
            for step in 0..10 {
                story.after(2).memory(20, 220 - step * 20);
            }
            story.after(1).exit(20, 0).reaped(20);
            assert_eq!(raised(&story, RULE.id).len(), 1, "after {ms} ms");
        }
    }

    #[test]
    fn at_the_threshold() {
        // In between the first and the last part there are 16 or 17 tasks.
        assert_eq!(raised(&worker(|task| task * 6), RULE.id).len(), 1);
        assert_eq!(raised(&worker(|task| task * 3), RULE.id), []);
    }

    #[test]
    fn what_comes_and_goes_or_comes_once_is_no_leak() {
        assert_eq!(raised(&worker(|_| 0), RULE.id), []);
        assert_eq!(
            raised(&worker(|task| if task > 8 { 300 } else { 0 }), RULE.id),
            []
        );
        assert_eq!(
            raised(
                &worker(|task| if task % 6 == 0 { 0 } else { task * 20 }),
                RULE.id
            ),
            []
        );
    }

    #[test]
    fn lost_memory_leaves_it_open() {
        let mut story = worker(|_| 0);
        story.lost("memory");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
