//! Moments that a program has marked: by running `rtrace mark TEXT`, or by a thread's name that starts with `@`.

use super::program::base;
use crate::event::Exec;

/// Marks that are kept of a process: a program that names its threads all the time must not fill the memory.
pub(super) const MOST: usize = 10_000;

/// A marked moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When, ns since boot.
    pub ns: u64,
    /// What was said, bytes as they were given.
    pub text: Vec<u8>,
}

/// The text of a mark, if this is one: `rtrace mark` with words, which are put together with spaces.
pub(super) fn of_exec(exec: &Exec) -> Option<Vec<u8>> {
    let is_own = base(&exec.filename) == b"rtrace";
    match exec.argv.as_slice() {
        [_, verb, words @ ..] if is_own && verb == b"mark" => {
            // As the command line itself takes it.
            let words = match words {
                [dashes, rest @ ..] if dashes == b"--" => rest,
                all => all,
            };
            Some(words.join(&b' ')).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}

/// The text of a mark, if a thread's new name is one.
pub(super) fn of_name(comm: &[u8]) -> Option<Vec<u8>> {
    let text = comm.strip_prefix(b"@")?;
    (!text.is_empty()).then(|| text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(filename: &str, argv: &[&str]) -> Option<String> {
        let exec = Exec {
            filename: filename.into(),
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            ..Exec::default()
        };
        of_exec(&exec).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn only_rtrace_itself_marks() {
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(
            text("/usr/bin/rtrace", &["rtrace", "mark", "a", "b c"]),
            is("a b c")
        );
        assert_eq!(text("./rtrace", &["x", "mark", "--", "-v"]), is("-v"));
        assert_eq!(text("/usr/bin/rtrace", &["rtrace", "mark"]), None);
        assert_eq!(text("/usr/bin/rtrace", &["rtrace", "mark", ""]), None);
        assert_eq!(text("/usr/bin/rtrace", &["rtrace", "report", "mark"]), None);
        assert_eq!(text("/usr/bin/echo", &["rtrace", "mark", "a"]), None);
        assert_eq!(text("/usr/bin/rtrace", &[]), None);
    }

    #[test]
    fn names_mark_by_their_first_letter() {
        assert_eq!(of_name(b"@load"), Some(b"load".to_vec()));
        assert_eq!(of_name(b"load@"), None);
        assert_eq!(of_name(b"@"), None);
        assert_eq!(of_name(b""), None);
    }
}
