//! `memory.shared_counted_twice`: the sum of RSS is well above what was really in use.

use crate::{
    event::{ChargeScope, Recording},
    findings::{
        Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found, scene::stayed_a_copy,
    },
    model::{
        Peak,
        bounds::{sum_peak, unique_at_peak},
    },
    units::ProcessKey,
};

/// The sum is at least this many halves of what was in use.
const HALVES: u64 = 3;
/// And at least this much more, bytes.
const MORE: u64 = 64 << 20;

pub(super) const RULE: Rule = Rule {
    id: "memory.shared_counted_twice",
    severity: Severity::Info,
    title: "the sum of RSS counts shared pages more than once",
    meaning: "RSS counts a page once for each process that has it. After fork, parent and children have the same \
        pages until one writes to them, and shared memory is there once however many map it. What ps, psutil and most \
        monitors add up is then far more than the machine needed: eight idle forks of a parent of 400 MB show 3.6 GB.",
    measured: "At the highest sum of RSS, the sum is at least 1.5 times the upper bound of what was in use, and at \
        least 64 MiB more. That bound comes from the pages that each child inherited and from its copies on write; \
        where the command had a control group of its own, also from the highest charge, which counts a page once; \
        where it had none, forked children that map shared memory are taken to map their creator's.",
    advice: "ask a scheduler for what was in use, not for the sum; compare tools by the sum of PSS or by the control \
        group's charge",
    wrong: "Without a control group of its own a child may have made shared memory of its own, of at most its \
        creator's size; the bounds in the report don't rest on that.",
    needs: &[Need::Memory, Need::Forks],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let (summary, recording) = (&scene.tree.summary, scene.recording);
    let spaces = scene.tree.totals.max_spaces;
    let Some((peak, sum)) = summary.peak().zip(sum_peak(summary, recording, spaces)) else {
        return;
    };
    let Some(unique) = unique_at_peak(summary, recording, spaces) else {
        found.unknown("how much memory was in use at the peak is not known");
        return;
    };
    // A charge below what certainly was in use is of other memory.
    let charged = charged(recording).filter(|charge| *charge >= unique.low);
    let mapped_again = match charged {
        Some(_) => 0,
        None => mapped_again(scene, &peak),
    };
    let at_most = unique.high.saturating_sub(mapped_again).max(unique.low);
    let at_most = charged.map_or(at_most, |charge| {
        // Pages of files may be charged to whoever read them first.
        let file: u64 = peak.shares.iter().map(|share| share.memory.file).sum();
        at_most.min(charge.saturating_add(file))
    });
    let is_well_above = sum.rss.saturating_mul(2) >= at_most.saturating_mul(HALVES);
    if !is_well_above || sum.rss < at_most.saturating_add(MORE) {
        return;
    }
    let mut subjects: Vec<ProcessKey> = peak
        .shares
        .iter()
        .filter_map(|share| share.process)
        .collect();
    subjects.sort_by_key(|key| (key.start_ns, key.pid));
    subjects.dedup();
    let finding = Finding::new(&RULE, subjects)
        .at(sum.time_ns)
        .with("sum_bytes", Value::Bytes(sum.rss))
        .with("in_use_at_least_bytes", Value::Bytes(unique.low))
        .with("in_use_at_most_bytes", Value::Bytes(at_most))
        .with(
            "spaces",
            Value::Count(peak.shares.len() as u64, "process", "processes"),
        );
    found.push(finding.say(
        scene,
        "the highest sum of RSS, {sum_bytes} over {spaces}, counts shared pages again for each: {in_use_at_least_bytes} \
         to {in_use_at_most_bytes} were really in use",
    ));
}

/// Highest charge of the command's own control group, bytes.
fn charged(recording: &Recording) -> Option<u64> {
    let charge = recording
        .charge
        .as_ref()
        .filter(|c| c.version != 0 && c.scope == ChargeScope::Own)?;
    charge.peak.max(charge.seen_peak)
}

/// Shared memory that copies of a process map at the peak and that their creator maps too, bytes.
fn mapped_again(scene: &Scene<'_>, peak: &Peak) -> u64 {
    let shmem_of = |key: ProcessKey| {
        let share = peak.shares.iter().find(|share| share.process == Some(key));
        share.map_or(0, |share| share.memory.shmem)
    };
    let again = |key: ProcessKey| {
        let process = scene.process(key).filter(|p| stayed_a_copy(p))?;
        Some(shmem_of(key).min(shmem_of(process.created.creator?)))
    };
    peak.shares
        .iter()
        .filter_map(|share| again(share.process?))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Charge, Memory},
        findings::testkit::{raised, unassessed},
        model::testkit::{MIB, Story},
    };

    /// A parent with shared memory, and children that map as much of it or make their own.
    fn family(parents: u64, childs: u64) -> Story {
        let mut story = Story::new();
        let with = |mib| Memory {
            shmem: mib * MIB,
            vms: 2 << 30,
            ..Memory::default()
        };
        story.root(10, &["a"]).memory_is(10, with(parents));
        for pid in 20..24 {
            story.fork(10, pid).after(1).memory_is(pid, with(childs));
        }
        story
    }

    #[test]
    fn a_segment_that_children_map_too() {
        let found = raised(&family(256, 256), RULE.id);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].text.starts_with("the highest sum of RSS, 1.3 GiB"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn segments_of_their_own_are_no_copies() {
        assert_eq!(raised(&family(0, 256), RULE.id), []);
    }

    #[test]
    fn a_charge_tells_them_apart() {
        for (charge, n) in [(270 * MIB, 1), (1_290 * MIB, 0)] {
            let mut story = family(256, 256);
            story.recording(|r| {
                r.charge = Some(Charge {
                    version: 2,
                    scope: ChargeScope::Own,
                    peak: Some(charge),
                    ..Charge::default()
                });
            });
            assert_eq!(raised(&story, RULE.id).len(), n, "{charge}");
        }
    }

    #[test]
    fn lost_memory_leaves_it_open() {
        let mut story = family(256, 256);
        story.lost("memory");
        assert_eq!(raised(&story, RULE.id), []);
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
