//! `vms.inherited`: a fork child's large address space is mostly its creator's.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value,
        needs::Need,
        rule::Found,
        scene::{grouped_by, keys, stayed_a_copy},
    },
    model::Process,
};

/// An address space from this size on is large, bytes.
const LARGE: u64 = 1 << 30;

pub(super) const RULE: Rule = Rule {
    id: "vms.inherited",
    severity: Severity::Info,
    title: "forked children show a large VMS that is mostly their creator's",
    meaning: "fork hands all mappings down, reserved ones too: stacks of threads, arenas of malloc, pools of BLAS and \
        CUDA. Each child then shows the creator's VMS although it uses none of it. A sum of VMS over a tree, as some \
        schedulers and monitors have it, counts it once for each child: N children of a parent of 6 GiB show N x 6 GiB.",
    measured: "VMS right at the fork is at least 1 GiB and at least half of the highest VMS that the child ever had; \
        for children that never executed a program.",
    advice: "judge memory by RSS or the control group's charge, not by VMS; to make it smaller, fork before threads \
        and large libraries are there, set OMP_NUM_THREADS and MALLOC_ARENA_MAX, or use spawn or forkserver",
    wrong: "Mappings that the child needs count as inherited too.",
    needs: &[Need::Forks, Need::Memory],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let children = scene
        .tree
        .processes
        .iter()
        .filter(|p| inherited(p).is_some());
    for (creator, children) in grouped_by(children, |p| p.created.creator) {
        let each: Vec<u64> = children.iter().filter_map(|p| inherited(p)).collect();
        let largest = each.iter().max().copied().unwrap_or(0);
        let sum = each
            .iter()
            .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let rss = children.iter().filter_map(|p| p.peak_rss()).max();
        let finding = Finding::new(&RULE, keys(&children))
            .with("largest_bytes", Value::Bytes(largest))
            .with("sum_bytes", Value::Bytes(sum))
            .with_known("peak_rss_bytes", rss.map(Value::Bytes))
            .with_known("creator", creator.map(Value::Process));
        found.push(finding.say(
            scene,
            "{who} began with up to {largest_bytes} of VMS[ from {creator}], {sum_bytes} in all[, and none had more \
             than {peak_rss_bytes} of RSS]",
        ));
    }
}

/// VMS that the process has from its creator, bytes, if that is large and most of what it had.
fn inherited(process: &Process) -> Option<u64> {
    let memory = process.images.first().and_then(|image| image.memory)?;
    let start = memory.start?.vms;
    let is_most = start.saturating_mul(2) >= memory.peak_vms;
    (stayed_a_copy(process) && start >= LARGE && is_most).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::Memory,
        findings::testkit::{raised, unassessed},
        model::testkit::{MIB, Story},
    };

    fn parent_of(vms: u64) -> Story {
        let mut story = Story::new();
        story.root(10, &["big"]).memory_is(
            10,
            Memory {
                anon: 9 * MIB,
                vms,
                ..Memory::default()
            },
        );
        story
    }

    #[test]
    fn children_of_a_large_parent() {
        let mut story = parent_of(6 << 30);
        story
            .after(1)
            .fork(10, 20)
            .fork(10, 21)
            .after(5)
            .exit(20, 0)
            .exit(21, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].subjects, [story.key(20), story.key(21)]);
        assert_eq!(
            found[0].text,
            "2 processes big (pids 20, 21) began with up to 6.0 GiB of VMS from big (pid 10), 12.0 GiB in all, \
             and none had more than 9.0 MiB of RSS"
        );
    }

    #[test]
    fn at_the_threshold() {
        for (vms, n) in [(LARGE, 1), (LARGE - 4096, 0)] {
            let mut story = parent_of(vms);
            story.fork(10, 20).after(5).exit(20, 0);
            assert_eq!(raised(&story, RULE.id).len(), n, "{vms}");
        }
    }

    #[test]
    fn what_is_its_own_or_gone_by_exec_is_not_inherited() {
        let mut story = parent_of(2 << 30);
        story
            .fork(10, 20)
            .exec(20, &["sleep"])
            .vfork(10, 21)
            .after(1)
            .exit(21, 0)
            .fork(10, 22);
        story.memory_is(
            22,
            Memory {
                vms: 5 << 30,
                ..Memory::default()
            },
        );
        story.after(5).exit(20, 0).exit(22, 0);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_memory_it_is_not_assessed() {
        let mut story = Story::new();
        story.root(10, &["big"]).memory(10, 1).lost("memory");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
