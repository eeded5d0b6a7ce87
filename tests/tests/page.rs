//! Pictures, and the page for a browser, opened in one.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use rtrace_tests::harness;

/// Arguments that would be markup in a page that doesn't guard itself.
const HOSTILE: [&str; 6] = [
    "</title><script>document.title='taken'</script>",
    "\"><img src=x onerror=document.title='taken'>",
    "'><svg/onload=document.title='taken'>",
    "<style>body{display:none}</style>",
    "--><b>-->",
    "&lt;i&gt;",
];

/// What a browser made of a page.
#[derive(serde::Deserialize)]
struct Seen {
    /// How often each element is there.
    elements: BTreeMap<String, u32>,
    /// Names of all attributes.
    attributes: Vec<String>,
    /// Where links and the like lead.
    targets: Vec<String>,
    /// Text of the body.
    text: String,
    title: String,
}

/// Reads the document as the browser writes it out after having read the page.
const READ: &str = r#"
import collections, json, sys
from html.parser import HTMLParser
class Reader(HTMLParser):
    elements, attributes, targets = collections.Counter(), set(), []
    inside, text, title = [], "", ""
    def handle_starttag(self, tag, attributes):
        self.elements[tag] += 1
        self.inside.append(tag)
        for name, value in attributes:
            self.attributes.add(name)
            if name in ("href", "src", "xlink:href", "action"):
                self.targets.append(value)
    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass
    def handle_data(self, data):
        if "body" in self.inside:
            self.text += data
        elif "title" in self.inside:
            self.title += data
reader = Reader()
reader.feed(sys.stdin.read())
print(json.dumps({"elements": reader.elements, "attributes": sorted(reader.attributes), "targets": reader.targets,
                  "text": reader.text, "title": reader.title}))
"#;

/// Opens a page; a message on the browser's console is a failure.
fn open(page: &Path) -> anyhow::Result<Seen> {
    let profile = tempfile::tempdir()?;
    let mut user_data = std::ffi::OsString::from("--user-data-dir=");
    user_data.push(profile.path());
    let mut address = std::ffi::OsString::from("file://");
    address.push(page);
    let output = Command::new("chromium")
        // Its sandbox isn't for root.
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(user_data)
        .arg(address)
        .output()
        .context("Chromium can't be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    ensure!(!said.contains("CONSOLE"), "{said}");
    let document = profile.path().join("document.html");
    fs::write(&document, &output.stdout)?;
    let read = Command::new("/usr/bin/python3")
        .args(["-X", "utf8", "-c", READ])
        .stdin(fs::File::open(&document)?)
        .output()?;
    ensure!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    Ok(serde_json::from_slice(&read.stdout)?)
}

#[test]
fn a_browser_finds_text_where_names_would_be_markup() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let script =
        "\"$0\" mark \"$1\"; for word; do sh -c 'sleep 0.01' \"$word\" & done; wait; exit 3";
    let mut command = vec!["/bin/sh".into(), "-c".into(), script.into()];
    command.push(harness::binary()?.into_os_string());
    command.extend(HOSTILE.iter().map(Into::into));
    let recorded = harness::record(&command)?;
    let report = recorded.complete_report()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("page.html");
    let output = Command::new(harness::binary()?)
        .args(["report", "--html", "--all", "-o"])
        .args([&path, &recorded.trace])
        .output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.success() && said.is_empty(), "{said}");
    let seen = open(&path)?;
    // Nothing but what the page itself is made of.
    let known = [
        "html", "head", "meta", "title", "style", "body", "header", "main", "section", "article",
        "h1", "h2", "h3", "p", "strong", "a", "details", "summary", "span", "div", "dl", "dt",
        "dd", "table", "thead", "tbody", "tr", "th", "td", "figure", "svg", "text", "rect", "line",
        "polyline", "polygon", "circle",
    ];
    for element in seen.elements.keys() {
        ensure!(known.contains(&element.as_str()), "{element}");
    }
    ensure!(seen.elements.get("style") == Some(&1));
    ensure!(seen.elements.get("title") == Some(&1));
    ensure!(!seen.attributes.iter().any(|name| name.starts_with("on")));
    ensure!(
        seen.targets.iter().all(|target| target.starts_with("#r")),
        "{:?}",
        seen.targets
    );
    ensure!(seen.title.starts_with("/bin/sh -c"), "{}", seen.title);
    // Each is there to be read.
    for word in HOSTILE {
        ensure!(seen.text.contains(word), "{word}: {}", seen.text);
    }
    ensure!(seen.text.contains("ended with exit code 3"));
    // And so is every process, by its pid.
    ensure!(seen.elements.get("details") >= Some(&u32::try_from(report.processes.len())?));
    for process in &report.processes {
        ensure!(
            seen.text.contains(&process.pid.to_string()),
            "{}",
            process.pid
        );
    }
    Ok(())
}

/// Text of an SVG picture, piece by piece, after a check that it is well-formed XML.
const READ_PICTURE: &str = r#"
import json, sys, xml.etree.ElementTree as tree
texts = tree.parse(sys.stdin).iter("{http://www.w3.org/2000/svg}text")
print(json.dumps(["".join(text.itertext()).strip() for text in texts]))
"#;

#[test]
fn recordings_are_drawn_below_each_other() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let pool = "import multiprocessing, sys\n\
                if __name__ == '__main__':\n    \
                    big = b'x' * 50_000_000\n    \
                    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:\n        \
                        pool.map(len, [b'x' * 9_000_000] * 8)\n";
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("<pool>.py");
    fs::write(&script, pool)?;
    let mut recordings = Vec::new();
    let mut peaks = Vec::new();
    for method in ["fork", "spawn"] {
        let command = [
            "/usr/bin/python3".into(),
            script.clone().into_os_string(),
            method.into(),
        ];
        let recorded = harness::record(&command)?;
        let text = harness::text_report(&recorded.trace)?;
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("highest sum of RSS"));
        let peak = line.context("no peak")?.trim_start_matches(':').trim();
        let peak = peak.split(',').next().unwrap_or(peak);
        peaks.push(peak.split(" ±").next().unwrap_or(peak).to_owned());
        recordings.push(recorded);
    }
    let output = Command::new(harness::binary()?)
        .args(["plot", "--by", "role"])
        .args(recordings.iter().map(|recorded| &recorded.trace))
        .output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.success() && said.is_empty(), "{said}");
    let picture = folder.path().join("picture.svg");
    fs::write(&picture, output.stdout)?;
    let read = Command::new("/usr/bin/python3")
        .args(["-X", "utf8", "-c", READ_PICTURE])
        .stdin(fs::File::open(&picture)?)
        .output()?;
    ensure!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    let texts: Vec<String> = serde_json::from_slice(&read.stdout)?;
    for (recorded, (peak, method)) in recordings.iter().zip(peaks.iter().zip(["fork", "spawn"])) {
        // Each picture's highest point is the one that the report tells of.
        ensure!(texts.contains(peak), "{peak}: {texts:?}");
        let begin = recorded.trace.display().to_string();
        let is_title = |text: &&String| text.starts_with(&begin) && text.contains("<pool>.py");
        let title = texts.iter().find(is_title).context(begin.clone())?;
        ensure!(title.ends_with(method), "{title}");
    }
    for role in ["worker: ", "main: "] {
        ensure!(texts.iter().any(|text| text.starts_with(role)), "{texts:?}");
    }
    Ok(())
}
