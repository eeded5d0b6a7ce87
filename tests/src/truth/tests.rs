use super::{compare, parse};
use crate::{differences::Differences, lone_surrogates::Text, report::Report};

/// A root that forks a child, which executes a program; then it waits.
const LOG: &str = "root 10 1100 plain
create r r.0 11 fork waited 1200 1300 10 1 x74726565
exec r.0 1400 x2f622f77 x77,x,xff
image r.0 1500 x77
end r.0 1600 code 3 0 1 x77
wait r 11 1700 1800
quiet 1900
end r 2000 code 0 0 1 x74726565
";

const REPORT: &str = r#"{
 "root": {"pid": 10, "start_ns": 1050},
 "processes": [
  {"pid": 10, "start_ns": 1050, "end_ns": 2100, "creator": null, "created_by": "root", "comm": "tree",
   "images": [{"how": "exec", "start_ns": 1080, "end_ns": 2100, "filename": "/b/tree", "argv": ["/b/tree", "1"]}],
   "threads_created": 0, "threads_max": 1, "survived_root": false, "parents": [],
   "exit": {"code": 0, "signal": null, "core": false, "oom": false}},
  {"pid": 11, "start_ns": 1250, "end_ns": 1650, "creator": {"pid": 10, "start_ns": 1050}, "creator_tid": 10,
   "creator_threads": 1, "final_parent": {"pid": 10, "start_ns": 1050}, "created_by": "fork", "clone_flags": [],
   "comm": "w", "images": [
    {"how": "inherited", "start_ns": 1250, "end_ns": 1450, "comm": "tree", "shared_mm_with": null},
    {"how": "exec", "start_ns": 1450, "end_ns": 1650, "filename": "/b/w", "comm": "w", "argv": ["w", "", "\udcff"],
     "argv_bytes": 5, "argv_truncated": false}],
   "threads_created": 0, "threads_max": 1, "survived_root": false, "parents": [], "zombie_ns": 60,
   "exit": {"code": 3, "signal": null, "core": false, "oom": false}}],
 "tree": {"processes": 2, "threads_created": 0, "max_depth": 1},
 "recording": {"rss_bound_bytes": 262144, "start_ns": 1000, "env": {}},
 "trust": {"events": 5, "lost_events": 0, "complete": true, "notes": []}}"#;

fn differences(report: &str) -> Differences {
    let truth = parse(LOG).expect("a log");
    let report = Report::parse(report).expect("a report");
    let command = [Text::from("/b/tree"), Text::from("1")];
    compare(&report, &truth, &command, (1000, 2200))
}

#[test]
fn a_right_report_has_no_differences() {
    let found = differences(REPORT);
    assert!(found.is_empty(), "{found}");
}

#[test]
fn every_wrong_fact_is_a_difference() {
    let wrong = [
        (
            r#""pid": 11, "start_ns": 1250"#,
            r#""pid": 11, "start_ns": 1350"#,
        ),
        (
            r#""end_ns": 1650, "creator""#,
            r#""end_ns": 1550, "creator""#,
        ),
        (r#""creator_tid": 10"#, r#""creator_tid": 11"#),
        (r#""creator_threads": 1"#, r#""creator_threads": 2"#),
        (
            r#""final_parent": {"pid": 10"#,
            r#""final_parent": {"pid": 1"#,
        ),
        (r#""created_by": "fork""#, r#""created_by": "vfork""#),
        (r#""clone_flags": []"#, r#""clone_flags": ["CLONE_VM"]"#),
        (r#""how": "inherited""#, r#""how": "exec""#),
        (
            r#""shared_mm_with": null"#,
            r#""shared_mm_with": {"pid": 10, "start_ns": 1050}"#,
        ),
        (r#""filename": "/b/w""#, r#""filename": "/b/v""#),
        (r#"["w", "", "\udcff"]"#, r#"["w", "\udcff"]"#),
        (r#""argv_bytes": 5"#, r#""argv_bytes": 6"#),
        (r#""argv_truncated": false"#, r#""argv_truncated": true"#),
        (r#""comm": "w", "argv""#, r#""comm": "v", "argv""#),
        (
            r#""start_ns": 1450, "end_ns""#,
            r#""start_ns": 1550, "end_ns""#,
        ),
        (r#""zombie_ns": 60"#, r#""zombie_ns": 40"#),
        (r#"{"code": 3"#, r#"{"code": 4"#),
        (
            r#""threads_max": 1, "survived_root": false, "parents": [], "zombie"#,
            r#""threads_max": 2, "survived_root": false, "parents": [], "zombie"#,
        ),
        (r#""lost_events": 0"#, r#""lost_events": 1"#),
        (r#""max_depth": 1"#, r#""max_depth": 2"#),
        (r#""argv": ["/b/tree", "1"]"#, r#""argv": ["/b/tree"]"#),
    ];
    for (right, changed) in wrong {
        assert!(REPORT.contains(right), "{right}");
        assert!(
            !differences(&REPORT.replace(right, changed)).is_empty(),
            "{changed} went unnoticed"
        );
    }
}

#[test]
fn a_process_twice_or_too_many_is_a_difference() {
    let at = REPORT.find(r#"  {"pid": 11"#).expect("the child");
    let end = REPORT.find("],\n \"tree\"").expect("its end");
    let child = &REPORT[at..end];
    let twice = REPORT.replace(child, &format!("{child},{child}"));
    let stranger = REPORT.replace(
        child,
        &format!("{child},{}", child.replace("\"pid\": 11", "\"pid\": 12")),
    );
    assert!(!differences(&twice).is_empty());
    assert!(!differences(&stranger).is_empty());
}

#[test]
fn a_generator_that_broke_down_is_an_error() {
    assert!(parse("broken 12 fork: no memory\n").is_err());
    assert!(
        parse("root 10 1100 plain\n").is_err(),
        "the root's end is missing"
    );
}
