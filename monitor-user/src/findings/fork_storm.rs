//! `fork.storm`: hundreds of short processes in a few seconds.

use crate::findings::{
    Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found, scene::lived_until,
};
use crate::{model::Process, units::ProcessKey};

/// Width of the window, ns.
const WINDOW_NS: u64 = 5_000_000_000;
/// Processes that start in it.
const PROCESSES: usize = 200;
/// A process that lives for less is short, ns: tools that look once a second miss it more often than not.
const SHORT_NS: u64 = 500_000_000;
/// Subjects that are named.
const NAMED: usize = 20;

pub(super) const RULE: Rule = Rule {
    id: "fork.storm",
    severity: Severity::Info,
    title: "hundreds of short processes started within a few seconds",
    meaning: "Each process costs about a millisecond of the kernel's and the loader's time before it does anything, \
        more if its creator is large, and pids are used up. Tools that sample see hardly any of them. In a build or a \
        pipeline of small programs that is as it should be; in a loop that calls a program for each item it is what \
        the time went into.",
    measured: "At least 200 processes start within 5 s of recorded time, most of which live for less than 0.5 s.",
    advice: "if one loop starts them, do its work in one process, or hand many items to one call (xargs)",
    wrong: "It doesn't know whether the time was well spent: compare the CPU time of the programs in WORK.",
    needs: &[Need::Forks],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let processes = &scene.tree.processes;
    let Some((first, last)) = densest(processes) else {
        return;
    };
    let storm = &processes[first..=last];
    let lives: Vec<u64> = storm
        .iter()
        .filter_map(|p| Some(lived_until(scene, p)?.saturating_sub(p.key.start_ns)))
        .collect();
    let short = lives.iter().filter(|ns| **ns < SHORT_NS).count();
    if short * 2 <= storm.len() {
        return;
    }
    let within = storm[storm.len() - 1].key.start_ns - storm[0].key.start_ns;
    let subjects: Vec<ProcessKey> = storm.iter().take(NAMED).map(|p| p.key).collect();
    let name = scene.name(busiest(storm)).unwrap_or_default();
    let finding = Finding::new(&RULE, subjects)
        .with(
            "processes",
            Value::Count(storm.len() as u64, "process", "processes"),
        )
        .with("within_ns", Value::Span(within))
        .with("from_ns", Value::At(storm[0].key.start_ns))
        .with("short", Value::Count(short as u64, "", ""))
        .with("median_life_ns", Value::Span(median(lives)))
        .with_known("maker", maker(storm).map(Value::Process))
        .with("example", Value::Text(name.into_bytes()));
    found.push(finding.say(
        scene,
        "{processes} started within {within_ns}, from {from_ns} on[, most by {maker}]; \
         {short} of them lived for less than 0.5 s, half for less than {median_life_ns}",
    ));
}

/// The window in which most processes start: the places of its first and last; the root doesn't count.
fn densest(processes: &[Process]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut first = 0;
    for (last, process) in processes.iter().enumerate() {
        while process.key.start_ns - processes[first].key.start_ns > WINDOW_NS {
            first += 1;
        }
        if best.is_none_or(|(from, to)| last - first > to - from) {
            best = Some((first, last));
        }
    }
    best.filter(|(first, last)| last - first + 1 >= PROCESSES)
}

/// Who made most of them, if that one made more than half.
fn maker(storm: &[Process]) -> Option<ProcessKey> {
    let mut makers: Vec<ProcessKey> = storm.iter().filter_map(|p| p.created.creator).collect();
    makers.sort_unstable();
    let most = makers.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
    (most.len() * 2 > storm.len()).then_some(most[0])
}

/// One in the middle, as an example.
fn busiest(storm: &[Process]) -> ProcessKey {
    storm[storm.len() / 2].key
}

fn median(mut lives: Vec<u64>) -> u64 {
    lives.sort_unstable();
    lives.get(lives.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// A shell that runs `n` programs, one every `every` ms, each for `life` ms.
    fn burst(n: u32, every: u64, life: u64) -> Story {
        let mut story = Story::new();
        story.root(10, &["sh", "loop.sh"]).after(every);
        for pid in 100..100 + n {
            story.fork(10, pid).exec(pid, &["/bin/true"]);
            if life < every {
                story.after(life).exit(pid, 0).after(every - life);
            } else {
                story.after(every);
            }
        }
        story
    }

    #[test]
    fn many_short_processes() {
        let found = raised(&burst(300, 5, 2), RULE.id);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .text
                .starts_with("301 processes started within 1.5 s, from the start on"),
            "{}",
            found[0].text
        );
        assert!(
            found[0]
                .text
                .contains("most by sh loop.sh (pid 10); 300 of them lived")
        );
    }

    #[test]
    fn at_the_threshold() {
        // The root is one of them.
        assert_eq!(raised(&burst(199, 5, 2), RULE.id).len(), 1);
        assert_eq!(raised(&burst(198, 5, 2), RULE.id), []);
    }

    #[test]
    fn slow_or_long_ones_are_no_storm() {
        assert_eq!(raised(&burst(300, 50, 2), RULE.id), []);
        let mut story = burst(300, 5, 10);
        story.after(1_000);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_forks_it_is_not_assessed() {
        let mut story = burst(20, 5, 2);
        story.lost("fork");
        assert_eq!(raised(&story, RULE.id), []);
        assert_eq!(
            unassessed(&story, RULE.id).unwrap(),
            "1 event of creations of processes was lost"
        );
    }
}
