//! Pages of stories, read with Python's parser of HTML.

use super::*;
use crate::{
    model::{Moments, Quantity, testkit::Story},
    report::{
        chart::{self, Panel},
        lanes::{By, LaneFold, Names, tell_apart},
    },
    testing::python,
};

/// Every name in the story is `name` with a number.
fn story(name: &str) -> Story {
    let n = |n: u32| format!("{name}{n}");
    let words = |first: u32| [n(first), n(first + 1)];
    let mut story = Story::new();
    let [file, argument] = words(0);
    story.root(100, &[&file, &argument]).memory(100, 50);
    for pid in 101..106 {
        let [file, argument] = words(pid);
        story.after(5).fork(100, pid);
        story.memory(pid, 40).exec(pid, &[&file, &argument]);
        story.memory(pid, u64::from(pid)).after(5);
    }
    story.fork(100, 200).rename(200, 200, &n(2));
    story.exec(105, &["rtrace", "mark", &n(3)]);
    story.setsid(101).moved(102, &n(4)).signal(100, 103, 9);
    story
        .exec_failed(104, 2, &n(5))
        .slept(104, 104, 5000, "read");
    story.killed(103, 9).reaped(103).exit(104, 1).reaped(104);
    story.exit(100, 0);
    story.recording(|recording| {
        recording.command = vec![n(6), n(7)];
        recording.host = n(8);
        recording.kernel = n(9);
        recording.env.insert("SLURM_JOB_ID".to_owned(), n(10));
    });
    story
}

fn page_of(story: &Story) -> String {
    let tree = story.tree();
    let report = Report::new(&tree, &story.recorded());
    let names = Names::new(&report);
    let mut fold = LaneFold::new(
        &report,
        &names,
        &tree.timeline,
        (By::Program, Quantity::Rss),
    );
    let mut moments = Moments::new(&tree.timeline, Quantity::Rss);
    for event in story.events() {
        moments.push(event, &mut |moment| fold.see(moment));
    }
    moments.finish(&mut |moment| fold.see(moment));
    let lanes = tell_apart(&[fold.finish()], chart::MOST_LANES);
    let panel = Panel::new(crate::report::title(&report), &report, &lanes[0], 9);
    let svg = chart::svg(&[panel], (900, 300)).unwrap();
    let mut out = Vec::new();
    write(&report, Some(&svg), false, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Elements with their attributes as a browser sees them, a line each; then the number of comments and instructions.
fn structure(page: &str) -> String {
    let script = r#"
import sys
from html.parser import HTMLParser
class Reader(HTMLParser):
    other = 0
    def handle_starttag(self, tag, attributes):
        print(tag, attributes)
    def handle_endtag(self, tag):
        print("/" + tag)
    def handle_comment(self, data):
        self.other += 1
    handle_pi = unknown_decl = handle_comment
reader = Reader()
reader.feed(sys.stdin.read())
reader.close()
print(reader.other)
"#;
    String::from_utf8(python(script, page.as_bytes())).unwrap()
}

/// Text of a page, characters as a reader sees them.
fn text(page: &str) -> String {
    let script = r"
import sys
from html.parser import HTMLParser
class Reader(HTMLParser):
    def handle_data(self, data):
        sys.stdout.write(data)
Reader().feed(sys.stdin.read())
";
    String::from_utf8(python(script, page.as_bytes())).unwrap()
}

#[test]
fn names_are_text_whatever_they_hold() {
    let harmless = structure(&page_of(&story("abcdefgh")));
    assert!(harmless.contains("\nsvg ") && harmless.contains("\narticle "));
    assert!(!harmless.contains("script"));
    for name in [
        "<script>",
        "</style>",
        "</title>",
        "<!-- ab ",
        "<img src=x onerror=y>",
        "\"><b a='",
        "' onclick='",
        "&lt;b&gt;",
        "]]><b>",
        "<?php ?>",
        "\u{202e}\u{0}\u{7f}\n<i>",
    ] {
        let page = page_of(&story(name));
        // What isn't a line end of the page's own shows itself.
        let is_harmful = |c: char| c != '\n' && crate::report::escape::is_harmful(c);
        assert!(!page.contains(is_harmful), "{name:?}");
        let seen = structure(&page);
        // Lines of a chart end where text of other width does; what is there is the same.
        let kinds = |all: &str| -> Vec<String> {
            let words = all.lines().filter_map(|line| line.split(' ').next());
            words.map(str::to_owned).collect()
        };
        assert_eq!(kinds(&seen), kinds(&harmless), "{name:?}");
        let attributes = |all: &str| -> Vec<String> {
            let all = all.lines().filter(|line| !line.contains("('points'"));
            all.map(str::to_owned).collect()
        };
        assert_eq!(attributes(&seen), attributes(&harmless), "{name:?}");
    }
}

#[test]
fn a_reader_sees_names_as_they_are() {
    let text = text(&page_of(&story("<b>&amp;")));
    // The root's words, a name that a process gave itself, a mark, the command, the host and kernel, other words.
    for n in [0, 1, 2, 3, 6, 7, 8, 9, 101, 102] {
        assert!(text.contains(&format!("<b>&amp;{n}")), "{n}: {text}");
    }
    assert!(!text.contains("&lt;"));
}

#[test]
fn the_page_may_load_and_run_nothing() {
    let page = page_of(&story("a"));
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">");
    let at = page.find(&policy).unwrap();
    // It counts for what comes after it.
    assert!(at < page.find("<style>").unwrap());
    assert!(!page.contains("<script") && !page.contains("<link"));
    assert!(
        !page
            .replace("http://www.w3.org/2000/svg", "")
            .contains("://")
    );
}

#[test]
fn what_is_left_out_is_said_and_all_shows_it() {
    let mut story = Story::new();
    story.root(1, &["main"]).memory(1, 1);
    for n in 0..70 {
        let name = format!("program{n}");
        story
            .after(1)
            .fork(1, 10 + n)
            .exec(10 + n, &[&name])
            .exit(10 + n, 0);
    }
    story.exit(1, 0);
    let report = Report::new(&story.tree(), &story.recorded());
    let shown = page(&report, None, false).into_string();
    assert!(shown.contains("20 more processes; --all shows them"));
    let all = page(&report, None, true).into_string();
    assert_eq!(all.matches("<details id=").count(), 71);
    assert!(!all.contains("--all"));
}
