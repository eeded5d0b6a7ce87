//! Moments that programs mark: by a command, by a thread's name, and each test of pytest by the documented fixture.

use std::{fs, path::PathBuf, process::Command};

use anyhow::Context;
use rtrace_tests::{
    harness::{self, Recorder},
    report::{Process, Report},
};

fn texts(process: &Process) -> Vec<String> {
    let text =
        |mark: &rtrace_tests::report::Mark| String::from_utf8_lossy(&mark.text.0).into_owned();
    process.marks.iter().map(text).collect()
}

/// Where programs are looked for, rtrace's own folder first.
fn path() -> anyhow::Result<String> {
    let binary = harness::binary()?;
    let folder = binary.parent().context("folder")?;
    Ok(format!("{}:/usr/bin:/bin", folder.display()))
}

fn recorded(command: &[&str]) -> anyhow::Result<Report> {
    let recorded = Recorder::new().env("PATH", path()?).record(command)?;
    assert_eq!(recorded.status.code(), Some(0), "{}", recorded.stderr);
    recorded.complete_report()
}

#[test]
fn a_shell_marks_by_running_rtrace() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let script =
        "rtrace mark first; (rtrace mark -- -v x; true); true; rtrace mark last part; true";
    let report = recorded(&["/bin/sh", "-c", script])?;
    let root = report.root()?;
    assert_eq!(texts(root), ["first", "last part"]);
    let inner: Vec<_> = report
        .others()
        .into_iter()
        .filter(|process| !process.marks.is_empty())
        .collect();
    assert_eq!(inner.len(), 1);
    assert_eq!(texts(inner[0]), ["-v x"]);
    // At the exec of rtrace itself.
    let execs: Vec<_> = report
        .others()
        .iter()
        .flat_map(|p| p.execs())
        .map(|i| i.start_ns)
        .collect();
    let mark = root.marks.first().context("no mark")?;
    assert!(execs.contains(&Some(mark.ns)), "{mark:?} {execs:?}");
    Ok(())
}

#[test]
fn a_thread_marks_by_its_name() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let program = "
import threading
def name(text):
    with open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w') as comm:
        comm.write(text)
name('@begin')
thread = threading.Thread(target=name, args=('@in a thread of it',))
thread.start()
thread.join()
name('quiet')
";
    let report = recorded(&["/usr/bin/python3", "-c", program])?;
    // The kernel keeps 15 bytes.
    assert_eq!(texts(report.root()?), ["begin", "in a thread of"]);
    Ok(())
}

#[test]
fn without_a_recorder_nothing_happens() -> anyhow::Result<()> {
    let rtrace = harness::binary()?;
    let call = |words: &[&str]| Command::new(&rtrace).args(words).output();
    let marked = call(&["mark", "a", "b"])?;
    assert!(marked.status.success());
    assert_eq!((marked.stdout.len(), marked.stderr.len()), (0, 0));
    for wrong in [&["mark"][..], &["mark", ""]] {
        assert_eq!(call(wrong)?.status.code(), Some(2), "{wrong:?}");
    }
    Ok(())
}

/// The code of the fixture as the documentation has it.
fn fixture() -> anyhow::Result<String> {
    let text = include_str!("../../docs/recording.md");
    let (_, code) = text.split_once("```python\n").context("no code")?;
    let (code, _) = code.split_once("```").context("no end of the code")?;
    Ok(code.to_owned())
}

/// As much of pytest as the fixture needs: it isn't everywhere.
const PYTEST: &str = "
FOUND = []

def fixture(autouse):
    return FOUND.append

def run(*tests):
    for test in tests:
        around = [found(Request(test)) for found in FOUND]
        for fixture in around:
            next(fixture)
        test()
        for fixture in around:
            next(fixture, None)

class Request:
    def __init__(self, test):
        self.node = self
        self.nodeid = 'test_it.py::' + test.__name__
";

/// Two tests, one of which leaves a process behind.
const TESTS: &str = "
import subprocess
import conftest, pytest

def test_one():
    subprocess.Popen(['sleep', '0.2'])

def test_two():
    subprocess.run(['true'])

pytest.run(test_one, test_two)
";

#[test]
fn the_documented_fixture_marks_every_test() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let code = fixture()?;
    assert_eq!(
        code.lines().filter(|line| !line.is_empty()).count(),
        9,
        "{code}"
    );
    let folder = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
        let path = folder.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    };
    file("conftest.py", &code)?;
    file("pytest.py", PYTEST)?;
    let tests = file("test_it.py", TESTS)?;
    let report = recorded(&["/usr/bin/python3", &tests.to_string_lossy()])?;
    let root = report.root()?;
    let expected = [
        "test_it.py::test_one",
        "end of test_it.py::test_one",
        "test_it.py::test_two",
        "end of test_it.py::test_two",
    ];
    assert_eq!(texts(root), expected);
    // What was started in a test lies between its marks.
    let ns: Vec<u64> = root.marks.iter().map(|mark| mark.ns).collect();
    let started = |name: &str| {
        let mut others = report.others().into_iter();
        let process = others.find(|p| p.comm.as_ref().is_some_and(|comm| *comm == *name));
        process.map(|process| process.start_ns)
    };
    let (sleep, last) = (started("sleep"), started("true"));
    assert!(
        sleep.is_some_and(|at| ns[0] < at && at < ns[1]),
        "{sleep:?} {ns:?}"
    );
    assert!(
        last.is_some_and(|at| ns[2] < at && at < ns[3]),
        "{last:?} {ns:?}"
    );
    Ok(())
}
