//! Titles: what processes wrote over their arguments.

use std::collections::HashMap;

use crate::{
    event,
    model::{draft::Draft, tree::How},
    units::ProcessKey,
};

/// Titles that are kept of a process, the last one among them.
const MOST: usize = 64;

/// What a process called itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// When that was seen, ns since boot; it may have been so for some time.
    pub ns: u64,
    /// Its words, put together with spaces.
    pub text: Vec<u8>,
    /// Whether there was more of it.
    pub is_cut: bool,
}

/// Takes a title; of more than are kept the last one tells what it was in the end.
pub(super) fn take(titles: &mut Vec<(u64, event::Title)>, time_ns: u64, title: &event::Title) {
    titles.truncate(MOST - 1);
    titles.push((time_ns, title.clone()));
}

/// What stands in the place of the arguments of a process over time.
type Words = Vec<(u64, Vec<u8>)>;

/// Titles of all processes. What a process has in that place without having written it is none: its arguments, or
/// what its creator had written there.
pub(super) fn all(drafts: &[Draft]) -> HashMap<ProcessKey, Vec<Title>> {
    let mut order: Vec<&Draft> = drafts.iter().collect();
    // Creators come first.
    order.sort_by_key(|draft| (draft.key.start_ns, draft.key.pid));
    let mut known: HashMap<ProcessKey, Words> = HashMap::new();
    let mut all = HashMap::new();
    for draft in order {
        let (words, titles) = of(draft, &known);
        if !titles.is_empty() {
            all.insert(draft.key, titles);
        }
        known.insert(draft.key, words);
    }
    all
}

fn of(draft: &Draft, known: &HashMap<ProcessKey, Words>) -> (Words, Vec<Title>) {
    let creator = match (&draft.fork, &draft.found) {
        (Some((_, fork)), _) => fork.creator,
        (None, Some((_, parent, _))) => *parent,
        (None, None) => None,
    };
    let start_ns = draft.key.start_ns;
    let inherited = creator.and_then(|creator| {
        let mut words = known.get(&creator)?.iter().rev();
        words
            .find(|(ns, _)| *ns <= start_ns)
            .map(|(_, words)| words.clone())
    });
    let mut words: Words = inherited
        .map(|words| (start_ns, words))
        .into_iter()
        .collect();
    for image in &draft.images {
        if let (How::Exec, Some(argv)) = (image.image.how, &image.image.argv) {
            let ns = image.image.start_ns.unwrap_or(start_ns);
            words.push((ns, joined(argv)));
        }
    }
    words.sort_by_key(|(ns, _)| *ns);
    let mut written = draft.titles.clone();
    written.sort_by_key(|(ns, _)| *ns);
    let mut titles = Vec::new();
    for (ns, title) in written {
        let now = joined(&title.words);
        let at = words.partition_point(|(since, _)| *since <= ns);
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let is_same = before
            .is_some_and(|(_, before)| before == &now || title.is_cut && before.starts_with(&now));
        if !is_same {
            words.insert(at, (ns, now));
            titles.push(Title {
                ns,
                text: title.words.join(&b' '),
                is_cut: title.is_cut,
            });
        }
    }
    (words, titles)
}

/// As they stand in memory. What is at the end without a letter can't be told from what fills it up.
fn joined(words: &[Vec<u8>]) -> Vec<u8> {
    let mut joined = words.join(&0);
    while joined.last() == Some(&0) {
        joined.pop();
    }
    joined
}
