//! What is said of the memory controller's charge.

use super::*;
use crate::event::{Charge, ChargeScope, ChargeSplit};

const MIB: u64 = 1 << 20;

fn words(charge: Charge) -> String {
    let mut story = Story::new();
    story
        .root(10, &["make"])
        .memory(10, 5)
        .after(50)
        .exit(10, 0);
    story.recording(|recording| recording.charge = Some(charge));
    let text = text(&report(&story), 80);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn own() -> Charge {
    Charge {
        group: "/job/rtrace.7.8".to_owned(),
        version: 2,
        scope: ChargeScope::Own,
        start: Some(MIB),
        peak: Some(520 * MIB),
        seen_peak: Some(510 * MIB),
        seen_peak_ns: Some(9),
        at_peak: Some(ChargeSplit {
            ns: 10,
            total: Some(500 * MIB),
            anon: Some(400 * MIB),
            file: Some(60 * MIB),
            shmem: Some(0),
            kernel: Some(40 * MIB),
            page_tables: Some(8 * MIB),
        }),
        at_end: Some(ChargeSplit {
            shmem: Some(12 * MIB),
            file: Some(3 * MIB),
            ..ChargeSplit::default()
        }),
        processes_at_end: Some(0),
        ..Charge::default()
    }
}

#[test]
fn the_kernels_peak_is_told_with_what_a_look_found_and_what_is_left() {
    let words = words(own());
    let expected = "charged by the memory controller, each page once: at most 520 MiB; when it was 500 MiB: 400 MiB \
                    private memory, 60.0 MiB cached files, 40.0 MiB the kernel's own (page tables 8.0 MiB) still charged \
                    after the last process: 12.0 MiB in files in memory (tmpfs, /dev/shm) or shared memory that nobody \
                    has removed, 3.0 MiB of cached files, which the kernel takes back when it needs room";
    assert!(words.contains(expected), "{words}");
}

#[test]
fn what_others_share_is_not_told_as_the_commands() {
    let words = words(Charge {
        group: "/session\u{1b}".to_owned(),
        scope: ChargeScope::Shared,
        why_shared: Some("it is read-only".to_owned()),
        peak: None,
        ..own()
    });
    let expected = "at most 510 MiB to the control group /session\\x1b, which others share, 1.0 MiB of it before the \
                    command began";
    assert!(words.contains(expected), "{words}");
    assert!(words.contains("no control group of the command's own: it is read-only"));
    assert!(!words.contains("still charged"), "{words}");
}

#[test]
fn with_processes_left_nothing_is_called_left_behind() {
    for processes_at_end in [Some(1), None] {
        let words = words(Charge {
            processes_at_end,
            ..own()
        });
        assert!(!words.contains("still charged"), "{words}");
    }
}

#[test]
fn what_is_not_known_is_not_told_as_nothing() {
    let charge = Charge {
        why_shared: Some("the kernel has no control groups for memory".to_owned()),
        ..Charge::default()
    };
    let words = words(charge.clone());
    let expected =
        "charge of the memory controller: not known, the kernel has no control groups for memory";
    assert!(words.contains(expected), "{words}");
    let report = ChargeReport::new(&charge);
    assert_eq!(
        (report.scope, report.group, report.version),
        (None, None, None)
    );
    // Who didn't ask isn't told anything.
    assert!(!text(&super::report(Story::new().root(10, &["make"])), 80).contains("charge"));
}
