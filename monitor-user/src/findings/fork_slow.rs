//! `fork.slow`: a large process spent its time in fork, which copies its page tables.

use std::collections::BTreeMap;

use crate::findings::{
    Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found, scene::lived_until,
};
use crate::{
    model::{CreatedBy, Process},
    units::ProcessKey,
};

/// Page tables from which on their copy costs something that can be felt, bytes: those of half a GiB in small pages.
const LARGE: u64 = 1 << 20;
/// Time in all calls of a process below which it doesn't matter, ns.
const LEAST_NS: u64 = 100_000_000;
/// Part of the process's life that the calls took: one in so many.
const PART: u64 = 10;
/// A single call that is worth a warning, ns: whoever waits for it feels it.
const LONG_NS: u64 = 200_000_000;
/// Subjects that are named.
const NAMED: usize = 20;

pub(super) const RULE: Rule = Rule {
    id: "fork.slow",
    severity: Severity::Warning,
    title: "a large process spent its time in fork",
    meaning: "fork copies the page tables of the whole process before it returns, about 2 MiB of them for each GiB in \
        small pages, and marks every page so that the next write to it faults, in the parent too. The calling thread \
        waits, and other threads that map or unmap memory wait with it.",
    measured: "The time from the entry of fork or clone to the new process's being made, for creators with at least 1 MiB \
        of page tables: either all calls of one process take at least 0.1 s and a tenth of its life, or one takes 0.2 s. \
        vfork, posix_spawn and threads copy nothing and aren't counted.",
    advice: "start programs with posix_spawn or vfork (Python's subprocess does where it can), make workers before the \
        data is loaded, or use forkserver or spawn; huge pages make page tables small",
    wrong: "On a busy host the time holds what the caller waited for a CPU.",
    needs: &[Need::Forks],
    told_by: &[],
    detect,
};

/// What one process spent.
#[derive(Default)]
struct Spent<'a> {
    children: Vec<&'a Process>,
    sum_ns: u64,
}

fn detect(scene: &Scene<'_>, out: &mut Found) {
    let mut creators: BTreeMap<ProcessKey, Spent<'_>> = BTreeMap::new();
    let mut is_known = true;
    for process in &scene.tree.processes {
        let created = &process.created;
        let is_copy = created.by == Some(CreatedBy::Fork);
        let is_large = created
            .creator_page_tables
            .is_some_and(|bytes| bytes >= LARGE);
        let (Some(creator), true) = (created.creator, is_copy && is_large) else {
            continue;
        };
        let Some(took) = created.fork_ns else {
            is_known = false;
            continue;
        };
        let spent = creators.entry(creator).or_default();
        spent.sum_ns = spent.sum_ns.saturating_add(took);
        spent.children.push(process);
    }
    if !is_known {
        out.unknown("how long the calls took that made processes is not known of all");
    }
    for (creator, spent) in creators {
        let longest = spent
            .children
            .iter()
            .max_by_key(|child| child.created.fork_ns);
        let Some(longest) = longest else { continue };
        let longest_ns = longest.created.fork_ns.unwrap_or(0);
        let life = scene.process(creator).and_then(|process| {
            Some(lived_until(scene, process)?.saturating_sub(process.key.start_ns))
        });
        let is_much = spent.sum_ns >= LEAST_NS
            && life.is_some_and(|life| spent.sum_ns.saturating_mul(PART) >= life);
        if is_much || longest_ns >= LONG_NS {
            out.push(finding(scene, creator, &spent, longest));
        }
    }
}

fn finding(
    scene: &Scene<'_>,
    creator: ProcessKey,
    spent: &Spent<'_>,
    longest: &Process,
) -> Finding {
    let subjects = std::iter::once(creator);
    let children = spent.children.iter().take(NAMED).map(|child| child.key);
    let calls = spent.children.len() as u64;
    let created = &longest.created;
    Finding::new(&RULE, subjects.chain(children).collect())
        .with("creator", Value::Process(creator))
        .with("calls", Value::Count(calls, "call", "calls"))
        .with("sum_ns", Value::Span(spent.sum_ns))
        .with_known("longest_ns", created.fork_ns.map(Value::Span))
        .with_known("rss_bytes", created.creator_rss.map(Value::Bytes))
        .with_known("page_tables_bytes", created.creator_page_tables.map(Value::Bytes))
        .say(
            scene,
            "{creator} spent {sum_ns} in {calls} of fork, {longest_ns} in the longest of them[, when it had {rss_bytes} of \
             memory and {page_tables_bytes} of page tables to copy]",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// A process with page tables of `mib` MiB that makes children, each in a call of `ms`, one every `every` ms.
    fn forks(calls: u32, ms: u64, mib: u64, every: u64) -> Story {
        let mut story = Story::new();
        story.root(10, &["python3", "big.py"]).memory(10, 1000);
        for pid in 100..100 + calls {
            story.after(every).fork(10, pid);
            story.call_took(ms * 1_000_000, mib << 20).exit(pid, 0);
        }
        story.exit(10, 0);
        story
    }

    #[test]
    fn many_calls_that_take_much_of_its_life() {
        let found = raised(&forks(20, 6, 2, 10), RULE.id);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].text,
            "python3 big.py (pid 10) spent 120 ms in 20 calls of fork, 6.0 ms in the longest of them, when it had 1001 MiB \
             of memory and 2.0 MiB of page tables to copy"
        );
        assert_eq!(found[0].subjects.len(), 21);
    }

    #[test]
    fn one_long_call() {
        assert_eq!(raised(&forks(1, 200, 50, 60_000), RULE.id).len(), 1);
        assert_eq!(raised(&forks(1, 199, 50, 60_000), RULE.id), []);
    }

    #[test]
    fn what_is_small_or_seldom_is_silent() {
        assert_eq!(raised(&forks(16, 6, 2, 10), RULE.id), []);
        assert_eq!(raised(&forks(20, 6, 2, 100), RULE.id), []);
        assert_eq!(raised(&forks(20, 6, 0, 10), RULE.id), []);
        let mut story = Story::new();
        story.root(10, &["python3", "big.py"]).memory(10, 1000);
        story.after(5).vfork(10, 11);
        story
            .call_took(900_000_000, 9 << 20)
            .exit(11, 0)
            .exit(10, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_times_it_is_not_assessed() {
        let mut story = Story::new();
        story.root(10, &["python3", "big.py"]).memory(10, 1000);
        story.fork(10, 900).call_took(None, 9 << 20);
        assert!(unassessed(&story, RULE.id).unwrap().starts_with("how long"));
    }
}
