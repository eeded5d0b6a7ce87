//! `image.peak_inherited`: the kernel's maximum of RSS belongs to an earlier program.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value, needs::Need, rule::Found, scene::grouped_by,
        scene::keys,
    },
    model::{How, Image, Process},
    units::ProcessKey,
};

/// The earlier program had at least this much more, bytes.
const MORE: u64 = 64 << 20;

pub(super) const RULE: Rule = Rule {
    id: "image.peak_inherited",
    severity: Severity::Info,
    title: "the kernel's maximum of RSS for a process belongs to an earlier program",
    meaning: "The kernel keeps one maximum for each process (`ru_maxrss`), and exec doesn't reset it. What \
        /usr/bin/time, getrusage and schedulers say about a small program that a large one has started is then the \
        large one's memory: what the process was before its exec, or, after vfork, what its creator had.",
    measured: "The highest RSS before the last exec is at least 64 MiB more than the last program's own, and at \
        least twice as much. rtrace keeps a peak for each program, so its own figures aren't affected.",
    advice: "take the peak of the program from this report, not from ru_maxrss or time -v",
    wrong: "After vfork the creator's peak counts only if it was reached before the exec, which is what the kernel \
        takes over; what it had before its own last exec isn't looked at.",
    needs: &[Need::Execs, Need::Memory],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    let hits = scene
        .tree
        .processes
        .iter()
        .filter(|p| peaks(scene, p).is_some());
    for (_, members) in grouped_by(hits, |p| (p.created.creator, scene.name(p.key))) {
        let Some(first) = members.iter().max_by_key(|p| peaks(scene, p)) else {
            continue;
        };
        let Some((before, own)) = peaks(scene, first) else {
            continue;
        };
        let finding = Finding::new(&RULE, keys(&members))
            .with("kernel_maximum_bytes", Value::Bytes(before))
            .with("own_peak_bytes", Value::Bytes(own));
        found.push(finding.say(
            scene,
            "{who}: the kernel's maximum is {kernel_maximum_bytes}, of before the last exec; the program itself had \
             {own_peak_bytes} at most",
        ));
    }
}

/// Highest RSS before the last exec and that of the last program, bytes, if the former hides the latter.
fn peaks(scene: &Scene<'_>, process: &Process) -> Option<(u64, u64)> {
    let (last, earlier) = process.images.split_last()?;
    let own = last.memory.filter(|_| last.how == How::Exec)?.peak.rss();
    let before = earlier
        .iter()
        .filter_map(|image| peak(scene, image))
        .max()?;
    let is_hidden = before >= own.saturating_add(MORE) && before >= own.saturating_mul(2);
    is_hidden.then_some((before, own))
}

/// Highest RSS that the kernel takes over from an image at exec.
fn peak(scene: &Scene<'_>, image: &Image) -> Option<u64> {
    match image.shared_mm_with {
        None => image.memory.map(|memory| memory.peak.rss()),
        Some(owner) => of_owner(scene, owner, image.end_ns?),
    }
}

/// Highest RSS that a process had in the program that it was at that moment, if it had reached it by then.
fn of_owner(scene: &Scene<'_>, owner: ProcessKey, at_ns: u64) -> Option<u64> {
    let images = &scene.process(owner)?.images;
    let image = images
        .iter()
        .rev()
        .find(|i| i.start_ns.is_some_and(|start| start <= at_ns))?;
    let memory = image.memory.filter(|memory| memory.peak_ns <= at_ns)?;
    Some(memory.peak.rss())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    /// A child that has `mib` before it becomes a program of 2 MiB.
    fn shrinking(mib: u64) -> Story {
        let mut story = Story::new();
        story
            .root(10, &["python3", "a.py"])
            .memory(10, 5)
            .after(1)
            .fork(10, 20)
            .after(1);
        story
            .memory(20, mib)
            .after(1)
            .exec(20, &["/bin/true"])
            .memory(20, 1)
            .after(1)
            .exit(20, 0);
        story
    }

    #[test]
    fn a_small_program_in_a_large_process() {
        let found = raised(&shrinking(700), RULE.id);
        assert_eq!(
            found[0].text,
            "true (pid 20): the kernel's maximum is 701 MiB, of before the last exec; the program itself had \
             2.0 MiB at most"
        );
    }

    #[test]
    fn at_the_threshold() {
        assert_eq!(raised(&shrinking(65), RULE.id).len(), 1);
        assert_eq!(raised(&shrinking(64), RULE.id), []);
    }

    #[test]
    fn after_vfork_it_is_the_creators() {
        let mut story = Story::new();
        story
            .root(10, &["python3", "a.py"])
            .memory(10, 300)
            .after(1)
            .memory(10, 20)
            .after(1);
        story
            .vfork(10, 20)
            .after(1)
            .exec(20, &["/bin/true"])
            .after(1)
            .exit(20, 0);
        assert_eq!(raised(&story, RULE.id)[0].subjects, [story.key(20)]);
        // What the creator reaches later is no part of it.
        let mut story = Story::new();
        story
            .root(10, &["python3", "a.py"])
            .memory(10, 20)
            .after(1)
            .vfork(10, 20)
            .after(1);
        story
            .exec(20, &["/bin/true"])
            .after(1)
            .exit(20, 0)
            .memory(10, 300);
        assert_eq!(raised(&story, RULE.id), []);
    }

    #[test]
    fn without_execs_it_is_not_assessed() {
        let mut story = Story::new();
        story
            .root(10, &["sh"])
            .fork(10, 20)
            .exec(20, &["x"])
            .lost("exec");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
