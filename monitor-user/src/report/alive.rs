//! Who is still alive.

use crate::{
    event::{RecordedGroup, Recording},
    model::Summary,
    report::{
        escape::{escape, shorten},
        words,
    },
    units::Nanos,
};

/// Processes that are called by name; of more only the number is said.
const NAMED: usize = 5;
/// Columns of a name.
const NAME: usize = 20;

/// What a recorder waits for after the command's end, in one line of `width` columns.
pub fn waiting_line(summary: &Summary, waited_ns: u64, width: usize) -> String {
    let left = words::count(summary.live(), "process is", "processes are");
    let names = names(summary);
    let line = format!(
        "rtrace: the command has ended, {left} left after {} (Ctrl-C stops waiting): {names}",
        Nanos(waited_ns)
    );
    shorten(&line, width)
}

/// What a recorder says as it begins, if the control group that it records has no process yet.
pub fn expected_line(recording: &Recording) -> Option<String> {
    recording.group.as_ref().and_then(awaited_line)
}

/// What is said of a control group, or a container, that has no process yet.
pub fn awaited_line(group: &RecordedGroup) -> Option<String> {
    if group.first_ns.is_some() {
        return None;
    }
    let what = words::group(group);
    let until = match (&group.path, &group.container) {
        (Some(_), _) => {
            return Some(format!(
                "waiting for the first process in {what} (Ctrl-C stops waiting)"
            ));
        }
        (None, Some(_)) => "started",
        (None, None) => "made",
    };
    Some(format!(
        "waiting for {what} to be {until} (Ctrl-C stops waiting)"
    ))
}

/// The living by name and pid, the oldest first: "sleep (pid 12), sh (pid 13) and 4 more".
pub(super) fn names(summary: &Summary) -> String {
    let mut alive: Vec<_> = summary.alive().collect();
    alive.sort_by_key(|(key, _)| (key.start_ns, key.pid));
    let named = alive.iter().take(NAMED).map(|(key, program)| {
        let name = if program.is_empty() {
            "a program of unknown name".to_owned()
        } else {
            shorten(&escape(program), NAME)
        };
        format!("{name} (pid {})", key.pid)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match alive.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {} more", words::grouped(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testkit::Story;

    fn summary(story: &Story) -> Summary {
        let mut summary = Summary::new();
        for event in story.events() {
            summary.push(event);
        }
        summary
    }

    #[test]
    fn the_living_are_called_by_name_and_of_many_the_number_is_said() {
        let mut story = Story::new();
        story.root(10, &["/bin/sh"]).after(1);
        story.fork(10, 11).exec(11, &["/bin/sleep", "9"]).after(1);
        story.fork(10, 12).exit(12, 0).exit(10, 0);
        let few = summary(&story);
        assert_eq!(names(&few), "sleep (pid 11)");
        assert_eq!(
            waiting_line(&few, 2_000_000_000, 200),
            "rtrace: the command has ended, 1 process is left after 2.0 s (Ctrl-C stops waiting): sleep (pid 11)"
        );
        assert_eq!(waiting_line(&few, 0, 30).chars().count(), 30);
        let mut story = Story::new();
        story.root(10, &["/bin/sh"]);
        for pid in 11..18 {
            story.after(1).fork(10, pid);
        }
        story.exit(10, 0);
        let many = names(&summary(&story));
        assert!(many.starts_with("sh (pid 11), sh (pid 12), "), "{many}");
        assert!(many.ends_with("sh (pid 15) and 2 more"), "{many}");
    }
}
