//! `memory.left_charged`: memory that nobody uses any more and that nothing will free.

use crate::{
    event::ChargeScope,
    findings::{Finding, Rule, Scene, Severity, Value, rule::Found},
};

/// Files in memory and shared memory from this size on, bytes.
const LEFT: u64 = 16 << 20;

pub(super) const RULE: Rule = Rule {
    id: "memory.left_charged",
    severity: Severity::Warning,
    title: "memory was still charged after the last process had ended",
    meaning: "Files in /dev/shm and other tmpfs, System V segments and named semaphores outlive the processes that \
        made them. They fill memory, and in a job they count against its limit until somebody removes them. \
        Page cache that is left is no harm: the kernel drops it when it needs room.",
    measured: "After its last process had ended, the command's own control group was still charged with at least \
        16 MiB of files in memory and shared memory. Needs a group of the command's own.",
    advice: "look into /dev/shm and at `ipcs -m`; a worker that was killed can't unlink its shared memory, so let \
        its owner do that (SharedMemory.unlink, shm_unlink)",
    wrong: "Something outside of the tree may have such a file open and still need it.",
    needs: &[],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let own = scene
        .recording
        .charge
        .as_ref()
        .filter(|c| c.version != 0 && c.scope == ChargeScope::Own);
    // Without a group of its own nothing can be said, and the report says elsewhere that there was none.
    let Some(charge) = own.filter(|charge| charge.processes_at_end == Some(0)) else {
        return;
    };
    let Some((split, left)) = charge.at_end.and_then(|split| Some((split, split.shmem?))) else {
        return;
    };
    if left < LEFT {
        return;
    }
    let finding = Finding::new(&RULE, Vec::new())
        .at(split.ns)
        .with("left_bytes", Value::Bytes(left))
        .with_known("charged_bytes", split.total.map(Value::Bytes));
    found.push(finding.say(
        scene,
        "{left_bytes} of files in memory and shared memory were left when the last process had ended\
         [ (of {charged_bytes} that were still charged)]",
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Charge, ChargeSplit},
        findings::testkit::raised,
        model::testkit::Story,
    };

    fn left(shmem: u64, processes: u64, scope: ChargeScope) -> Story {
        let mut story = Story::new();
        story.root(10, &["job"]).exit(10, 0);
        story.recording(|r| {
            r.charge = Some(Charge {
                version: 2,
                scope,
                processes_at_end: Some(processes),
                at_end: Some(ChargeSplit {
                    total: Some(shmem + (1 << 30)),
                    file: Some(1 << 30),
                    shmem: Some(shmem),
                    ..ChargeSplit::default()
                }),
                ..Charge::default()
            });
        });
        story
    }

    #[test]
    fn files_in_memory() {
        let found = raised(&left(300 << 20, 0, ChargeScope::Own), RULE.id);
        assert!(
            found[0].text.starts_with("300 MiB of files in memory"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&left(LEFT, 0, ChargeScope::Own), RULE.id).len(), 1);
        assert_eq!(raised(&left(LEFT - 1, 0, ChargeScope::Own), RULE.id), []);
    }

    #[test]
    fn others_may_be_using_it() {
        assert_eq!(raised(&left(300 << 20, 1, ChargeScope::Own), RULE.id), []);
        assert_eq!(
            raised(&left(300 << 20, 0, ChargeScope::Shared), RULE.id),
            []
        );
    }
}
