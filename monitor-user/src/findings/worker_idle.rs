//! `worker.idle`: workers of a pool that never did anything.

use crate::findings::{
    Finding, Rule, Scene, Severity, Value,
    needs::Need,
    rule::Found,
    scene::{found, keys},
};

/// Memory of idle workers from which on they are a waste, bytes.
const WASTE: u64 = 256 << 20;

pub(super) const RULE: Rule = Rule {
    id: "worker.idle",
    severity: Severity::Info,
    title: "workers of a pool never had anything to do",
    meaning: "Each worker costs its start and its memory, whether it works or not, and of a copy of a large process \
        every page that it or its creator writes to. More workers than tasks, or than can be busy at once, are for \
        nothing. With 256 MiB and more it is a warning.",
    measured: "Workers whose system calls wrote fewer bytes than the smallest result takes, and which ended by plan; the \
        memory is theirs at the tree's highest sum of RSS, pages that they share with others included.",
    advice: "make fewer workers, or let them be made as tasks come (ProcessPoolExecutor with fork does; joblib and loky \
        too)",
    wrong: "How much memory would have been saved is at most what is told: shared pages would have stayed. Workers of \
        pools whose kind isn't known (those of servers, of test runners) aren't judged.",
    needs: &[Need::Forks, Need::Threads, Need::Ends],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, out: &mut Found) {
    for pool in &scene.pools.pools {
        // Servers' workers and the like give no results back: who of them did something isn't asked.
        if pool.kind.is_none() {
            continue;
        }
        let Some(idle) = &pool.idle else {
            out.unknown("of some pools it isn't known which workers did something");
            continue;
        };
        let idle = found(scene, idle);
        if idle.is_empty() {
            continue;
        }
        let bytes = pool.idle_bytes_at_peak.filter(|bytes| *bytes > 0);
        let severity = if bytes >= Some(WASTE) {
            Severity::Warning
        } else {
            RULE.severity
        };
        let finding = Finding::new(&RULE, keys(&idle))
            .severity(severity)
            .with("owner", Value::Process(pool.owner))
            .with(
                "workers",
                Value::Count(pool.workers.len() as u64, "worker", "workers"),
            )
            .with_known("at_peak_bytes", bytes.map(Value::Bytes));
        out.push(finding.say(
            scene,
            "{who}, of {workers} in a pool of {owner}, never had anything to do[; at the peak they had \
             {at_peak_bytes}]",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::Usage,
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// A pool of three workers with this much memory, MiB, of which each has written so many bytes.
    fn pool(mib: u64, written: [u64; 3]) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["/usr/bin/python3", "x.py"])
            .memory(10, 1)
            .after(10);
        for pid in 20..23 {
            story.fork(10, pid).after(1).memory(pid, mib);
        }
        for tid in 11..14 {
            story.thread(10, tid);
        }
        story.after(50);
        for (pid, bytes) in (20..23).zip(written) {
            let usage = Usage {
                written_chars: Some(bytes),
                ..Usage::default()
            };
            story.exit(pid, 0).reaped_with(pid, 1, usage);
        }
        story.exit(10, 0);
        story
    }

    #[test]
    fn workers_that_gave_nothing_back() {
        let story = pool(10, [500, 0, 16]);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(21), story.key(22)]);
        assert_eq!(found[0].severity, Severity::Info);
        assert!(
            found[0].text.contains("of 3 workers in a pool"),
            "{}",
            found[0].text
        );
        assert_eq!(raised(&pool(10, [500, 17, 30]), RULE.id), []);
    }

    #[test]
    fn much_memory_for_nothing_is_a_warning() {
        let severity = |mib| raised(&pool(mib, [500, 0, 0]), RULE.id)[0].severity;
        assert_eq!(severity(126), Severity::Info);
        assert_eq!(severity(128), Severity::Warning);
    }

    #[test]
    fn workers_that_hand_nothing_back_are_not_judged() {
        let mut story = Story::new();
        story.root(10, &["server"]).after(10);
        for pid in 20..23 {
            story.fork(10, pid).memory(pid, 1).after(1);
        }
        story.after(500);
        for pid in 20..23 {
            story.exit(pid, 0);
        }
        story.exit(10, 0);
        assert_eq!(story.tree().processes.len(), 4);
        assert_eq!(raised(&story, RULE.id), []);
        assert_eq!(unassessed(&story, RULE.id), None);
    }

    #[test]
    fn where_what_they_wrote_is_not_known_it_is_not_assessed() {
        let mut story = pool(10, [500, 0, 0]);
        story.lost("reaped");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
