//! Conditions on stories.

use super::*;
use crate::{
    model::testkit::{MIB, Story},
    report::Report,
};

fn report(story: &Story) -> Report {
    Report::new(&story.tree(), &story.recorded())
}

/// A command of 2 s with 100 MiB, one child and a fork from several threads.
fn command() -> Story {
    let mut story = Story::new();
    story
        .root(10, &["job"])
        .memory(10, 99)
        .thread(10, 11)
        .fork(10, 20)
        .after(2_000);
    story
        .exit(20, 0)
        .reaped(20)
        .thread_exit(10, 11)
        .exit(10, 3)
        .reaped(10);
    // Counters are exact here, and a row is due at every change.
    story.recording(|r| {
        r.rss_bound_bytes = 0;
        r.resolution_bytes = 0;
        r.exit_status = Some(3 << 8);
    });
    story
}

fn verdict(story: &Story, expectation: &str) -> Verdict {
    Expectation::parse(expectation)
        .unwrap()
        .verdict(&report(story))
}

fn outcome_of(story: &Story, expectation: &str) -> Outcome {
    let checked = Checked {
        condition: String::new(),
        verdict: verdict(story, expectation),
    };
    outcome(&[checked])
}

#[test]
fn figures_are_compared_in_their_units() {
    let story = command();
    for (expectation, expected) in [
        ("processes==2", Outcome::Holds),
        ("processes<2", Outcome::Violated),
        (" processes <= 2 ", Outcome::Holds),
        ("processes!=2", Outcome::Violated),
        ("processes>1", Outcome::Holds),
        ("duration>=2s", Outcome::Holds),
        ("duration<1999ms", Outcome::Violated),
        ("duration<0.1min", Outcome::Holds),
        ("survivors==0", Outcome::Holds),
        ("exit_code==0", Outcome::Violated),
        ("exit_code==3", Outcome::Holds),
        ("threads_max==2", Outcome::Holds),
        ("peak>=200M", Outcome::Holds),
        ("peak<8GiB", Outcome::Holds),
        ("peak<100MB", Outcome::Violated),
        ("lost_events==0", Outcome::Holds),
        ("charge<1G", Outcome::Undecided),
        ("charge_scope=='own'", Outcome::Undecided),
    ] {
        assert_eq!(
            outcome_of(&story, expectation),
            expected,
            "{expectation}: {:?}",
            verdict(&story, expectation)
        );
    }
    assert_eq!(
        verdict(&story, "processes<2"),
        Verdict::Violated(vec!["processes is 2".to_owned()])
    );
}

#[test]
fn what_isnt_a_condition_is_refused() {
    for (text, why) in [
        ("peak", "it has none of"),
        ("peak=8GiB", "it has none of"),
        ("peek<8GiB", "'peek' is none of peak, in_use"),
        ("peak<8s", "has no unit of bytes"),
        ("peak<", "is no number"),
        ("peak<.5G", "is no number"),
        ("processes<1.5", "is no number"),
        ("processes<99999999999999999999", "too large"),
        ("peak<99999999999T", "too large"),
        ("duration<3", "no unit of time"),
        ("charge_scope<'own'", "is a word"),
        ("charge_scope==''", "missing"),
    ] {
        let error = Expectation::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn words_are_compared_as_they_are() {
    let mut story = command();
    story.recording(|r| {
        let charge = crate::event::Charge {
            version: 2,
            scope: crate::event::ChargeScope::Own,
            ..Default::default()
        };
        r.charge = Some(charge);
    });
    for (expectation, expected) in [
        ("charge_scope=='own'", Outcome::Holds),
        ("charge_scope==own", Outcome::Holds),
        ("charge_scope!=\"own\"", Outcome::Violated),
        ("charge_scope=='shared'", Outcome::Violated),
    ] {
        assert_eq!(outcome_of(&story, expectation), expected, "{expectation}");
    }
}

#[test]
fn between_bounds_nothing_is_decided() {
    let mut story = command();
    story.recording(|r| r.rss_bound_bytes = MIB);
    let peak = report(&story).tree.peak_rss_sum_bytes.unwrap();
    assert_eq!(
        outcome_of(&story, &format!("peak<{peak}")),
        Outcome::Undecided
    );
    assert_eq!(outcome_of(&story, "peak<50M"), Outcome::Violated);
    assert_eq!(outcome_of(&story, "peak<1G"), Outcome::Holds);
}

#[test]
fn losses_leave_the_upper_bound_open() {
    let mut story = command();
    story.lost("memory");
    for (expectation, expected) in [
        ("peak<8GiB", Outcome::Undecided),
        ("peak<1M", Outcome::Violated),
        ("processes<100", Outcome::Undecided),
        ("processes>1", Outcome::Holds),
        ("processes==1", Outcome::Violated),
        ("lost_events==0", Outcome::Violated),
    ] {
        assert_eq!(
            outcome_of(&story, expectation),
            expected,
            "{expectation}: {:?}",
            verdict(&story, expectation)
        );
    }
}

#[test]
fn findings_are_denied_by_level_area_and_id() {
    let report = report(&command());
    for (denied, expected) in [
        ("error", Outcome::Holds),
        ("warning", Outcome::Violated),
        ("fork.multithreaded", Outcome::Violated),
        ("fork", Outcome::Violated),
        ("pid.reused", Outcome::Holds),
    ] {
        let denial = Denial::parse(denied).unwrap();
        assert_eq!(
            outcome(&check(&report, &[denial], &[])),
            expected,
            "{denied}"
        );
    }
    assert!(Denial::parse("fatal").is_err());
}

#[test]
fn what_could_not_be_judged_is_not_decided() {
    let mut story = Story::new();
    story.root(10, &["a"]).exit(10, 0).reaped(10);
    story.recording(|r| r.missing_hooks.push("sched_process_exec".into()));
    let denial = Denial::parse("image").unwrap();
    assert_eq!(
        outcome(&check(&report(&story), &[denial], &[])),
        Outcome::Undecided
    );
}

#[test]
fn results_in_every_format() {
    let all = [
        Checked {
            condition: "peak<8GiB".into(),
            verdict: Verdict::Holds,
        },
        Checked {
            condition: "no finding x".into(),
            verdict: Verdict::Violated(vec!["<b>|evil: 100 %\u{1b}[31m".into(), "two".into()]),
        },
        Checked {
            condition: "survivors==0".into(),
            verdict: Verdict::Undecided(vec!["survivors is not known".into()]),
        },
    ];
    let formats = [
        Format::Text,
        Format::Junit,
        Format::Github,
        Format::Markdown,
    ];
    let text: Vec<String> = formats
        .iter()
        .map(|format| render(&all, "t.parquet", *format))
        .collect();
    insta::assert_snapshot!(text.join("\n----\n"));
}

/// A `multiprocessing.Pool` of two forked workers, of which one did nothing, and an executor of three.
fn pools() -> Story {
    let mut story = Story::new();
    story.root(10, &["/usr/bin/python3", "x.py"]).after(10);
    story.fork(10, 20).after(1).fork(10, 21).after(1);
    for tid in 11..14 {
        story.thread(10, tid);
    }
    story.after(50);
    for (pid, bytes) in [(20, 500), (21, 0)] {
        let usage = crate::event::Usage {
            written_chars: Some(bytes),
            ..crate::event::Usage::default()
        };
        story.exit(pid, 0).reaped_with(pid, 1, usage);
    }
    story.recording(|r| r.rss_bound_bytes = 0);
    story
}

#[test]
fn pools_and_findings_are_compared() {
    let mut story = pools();
    story.exit(10, 0).reaped(10);
    for (expectation, expected) in [
        ("pools==1", Outcome::Holds),
        ("pool.workers<=2", Outcome::Holds),
        ("pool.workers<2", Outcome::Violated),
        ("pool.idle==1", Outcome::Holds),
        ("pool.kind=='Pool'", Outcome::Holds),
        ("pool.kind!=Pool", Outcome::Violated),
        ("pool.start_method=='spawn'", Outcome::Violated),
        ("pool.start_method==\"fork\"", Outcome::Holds),
        ("pool.start==eager", Outcome::Holds),
        ("findings[worker.idle]==1", Outcome::Holds),
        ("findings[worker]<1", Outcome::Violated),
        ("findings[warning]==0", Outcome::Holds),
        ("findings[fork.multithreaded]==0", Outcome::Holds),
        ("process_peak[python3]<1GiB", Outcome::Holds),
        ("process_peak[python3]<1KiB", Outcome::Violated),
        ("process_peak[nobody]==0", Outcome::Holds),
    ] {
        assert_eq!(
            outcome_of(&story, expectation),
            expected,
            "{expectation}: {:?}",
            verdict(&story, expectation)
        );
    }
    for text in [
        "findings[no.such]==0",
        "findings==0",
        "findings[worker==0",
        "peak[a]<1G",
    ] {
        assert!(Expectation::parse(text).is_err(), "{text}");
    }
}

#[test]
fn without_a_pool_there_is_none_and_lost_events_leave_it_open() {
    let story = command();
    for (expectation, expected) in [
        ("pools==0", Outcome::Holds),
        ("pool.workers<=4", Outcome::Holds),
        ("pool.start_method=='spawn'", Outcome::Violated),
        ("pool.kind==none", Outcome::Holds),
    ] {
        assert_eq!(outcome_of(&story, expectation), expected, "{expectation}");
    }
    let mut story = command();
    story.lost("fork");
    for expectation in ["pools==0", "pool.workers<=4", "pool.start_method=='spawn'"] {
        assert_eq!(
            outcome_of(&story, expectation),
            Outcome::Undecided,
            "{expectation}"
        );
    }
    // The fork that was seen could be wrong, and there may be more.
    let told = verdict(&story, "findings[fork.multithreaded]==1");
    assert!(matches!(told, Verdict::Undecided(_)), "{told:?}");
}
