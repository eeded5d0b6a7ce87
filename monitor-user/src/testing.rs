//! What unit tests of several layers need.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// What a Python script prints that reads `input`: Python reads what is written for it as its users will.
///
/// # Panics
/// If there is no `python3`, which set-up installs, or the script fails.
pub(crate) fn python(script: &str, input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("python3")
        .args(["-X", "utf8", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}");
    output.stdout
}

/// Compares the parts of a page of `docs` that are made from the code with what they should be: each stands between
/// `<!-- NAME: begin -->` and `<!-- NAME: end -->`. With `RTRACE_WRITE_DOCS` set writes them instead.
///
/// # Panics
/// If a part is out of date, or its place isn't there.
pub(crate) fn documentation(page: &str, parts: &[(&str, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let text = fs::read_to_string(&path).unwrap();
    let mut expected = text.clone();
    for (name, made) in parts {
        let (begin, end) = (
            format!("<!-- {name}: begin -->\n"),
            format!("<!-- {name}: end -->"),
        );
        let (before, rest) = expected.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        expected = format!("{before}{begin}{made}{end}{after}");
    }
    if std::env::var_os("RTRACE_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            text == expected,
            "docs/{page} isn't up to date: run this test with RTRACE_WRITE_DOCS=1"
        );
    }
}
