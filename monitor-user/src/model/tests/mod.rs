//! Stories with known ends.

mod address_spaces;
mod environment;
mod found;
mod losses;
mod marks;
mod order;
mod parents;
mod streams;
mod summary;
mod titles;
mod trees;
mod watch;

use super::{
    testkit::{MIB, Story},
    *,
};

/// The process of a pid; the newest if the pid was used more than once.
fn of(tree: &Tree, pid: u32) -> &Process {
    let mut all = tree.processes.iter().rev();
    all.find(|p| p.key.pid == pid).unwrap()
}

fn names(process: &Process) -> Vec<Option<String>> {
    let name = |i: &Image| Some(String::from_utf8_lossy(i.comm.as_ref()?).into_owned());
    process.images.iter().map(name).collect()
}

fn peaks_mib(process: &Process) -> Vec<Option<u64>> {
    let peak = |i: &Image| i.memory.map(|m| m.peak.rss() / MIB);
    process.images.iter().map(peak).collect()
}

fn some(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|n| Some((*n).to_owned())).collect()
}

fn assert_clean(tree: &Tree) {
    assert_eq!(tree.trust.notes, Vec::<String>::new());
    assert!(tree.trust.complete);
    assert_eq!(tree.trust.lost_events, 0);
}

/// A root with two children, one of which executes something; everybody ends.
fn family() -> Story {
    let mut story = Story::new();
    story
        .root(10, &["/bin/sh", "-c", "true; work"])
        .memory(10, 2);
    story
        .after(10)
        .fork(10, 11)
        .after(1)
        .exec(11, &["true"])
        .memory(11, 1);
    story.after(5).exit(11, 0).after(20).reaped(11);
    story
        .fork(10, 12)
        .after(1)
        .memory(12, 8)
        .after(9)
        .exit(12, 3);
    story.after(20).reaped(12).exit(10, 0).after(300);
    story
}
