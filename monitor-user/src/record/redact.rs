//! Hides secrets in argument lists: they must not get into a file that is passed around.
//!
//! A value is hidden after an option or a variable whose name sounds like a secret, and where a URL
//! holds a password or a token. It is replaced, so that one sees that there was something. This is a
//! courtesy for the usual ways to pass secrets, not a promise for all.

/// Stands for what was hidden.
pub(super) const HIDDEN: &[u8] = b"[hidden]";

/// Parts of names that sound like secrets, without case, `-` and `_`.
const NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
];
/// Whole names that do; as parts of others they say nothing.
const WHOLE_NAMES: [&str; 3] = ["pass", "pwd", "auth"];

/// Hides secrets in a whole argument list.
pub(super) fn hide(argv: &mut [Vec<u8>]) {
    let mut is_secret = false;
    for (n, word) in argv.iter_mut().enumerate() {
        if std::mem::take(&mut is_secret) && !word.starts_with(b"-") {
            *word = HIDDEN.to_vec();
            continue;
        }
        match word.iter().position(|byte| *byte == b'=') {
            Some(at) if sounds_secret(&word[..at]) => {
                word.truncate(at + 1);
                word.extend_from_slice(HIDDEN);
            }
            // The program's own name isn't an option.
            None if n > 0 && word.starts_with(b"-") => is_secret = sounds_secret(word),
            _ => {}
        }
        hide_in_urls(word);
    }
}

/// The same in what a program wrote over its arguments, which may be one string with all of them.
pub(super) fn hide_in_title(words: &mut [Vec<u8>]) {
    hide(words);
    for word in words {
        let mut parts: Vec<Vec<u8>> = word
            .split(|byte| *byte == b' ')
            .map(<[u8]>::to_vec)
            .collect();
        if parts.len() > 1 {
            hide(&mut parts);
            *word = parts.join(&b' ');
        }
    }
}

fn sounds_secret(name: &[u8]) -> bool {
    // Nobody's names are as long, but a whole script may stand before an equals sign.
    if name.len() > 64 {
        return false;
    }
    let plain: String = name
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    let is_name = name
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte));
    is_name
        && (NAMES.iter().any(|part| plain.contains(part)) || WHOLE_NAMES.contains(&plain.as_str()))
}

/// `scheme://user:secret@host/...?token=secret&...`.
fn hide_in_urls(word: &mut Vec<u8>) {
    let mut from = 0;
    while let Some(at) = find(&word[from..], b"://") {
        let start = from + at + 3;
        let len = |word: &[u8], is_end: fn(u8) -> bool| {
            let end = word[start..].iter().position(|byte| is_end(*byte));
            end.unwrap_or(word.len() - start)
        };
        let authority = len(word, |byte| {
            b"/?# \t\n'\"".contains(&byte) || byte.is_ascii_control()
        });
        let user = word[start..start + authority]
            .iter()
            .rposition(|byte| *byte == b'@');
        let colon = user.and_then(|end| word[start..start + end].iter().position(|b| *b == b':'));
        if let (Some(end), Some(colon)) = (user, colon) {
            word.splice(start + colon + 1..start + end, HIDDEN.iter().copied());
        }
        let end = start + len(word, |byte| b" \t\n'\"".contains(&byte));
        hide_parameters(word, start, end);
        from = start;
    }
}

/// Values of a URL's parameters, from the last one on: places before it stay what they are.
fn hide_parameters(word: &mut Vec<u8>, start: usize, end: usize) {
    let marks: Vec<usize> = (start..end)
        .filter(|at| matches!(word[*at], b'?' | b'&'))
        .collect();
    let mut until = end;
    for mark in marks.into_iter().rev() {
        let parameter = &word[mark + 1..until];
        if let Some(equals) = parameter.iter().position(|byte| *byte == b'=')
            && sounds_secret(&parameter[..equals])
        {
            word.splice(mark + 1 + equals + 1..until, HIDDEN.iter().copied());
        }
        until = mark;
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(words: &[&str]) -> Vec<String> {
        let mut argv: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        hide(&mut argv);
        let text = argv
            .into_iter()
            .map(|word| String::from_utf8_lossy(&word).into_owned());
        text.collect()
    }

    #[test]
    fn values_of_secret_names_are_hidden_and_nothing_else() {
        for (typed, kept) in [
            (
                &["x", "--password=a b"][..],
                &["x", "--password=[hidden]"][..],
            ),
            (
                &["x", "--api-key", "k", "y"],
                &["x", "--api-key", "[hidden]", "y"],
            ),
            (
                &["x", "--token", "--verbose"],
                &["x", "--token", "--verbose"],
            ),
            (
                &["env", "DB_PASSWORD=s", "A=b"],
                &["env", "DB_PASSWORD=[hidden]", "A=b"],
            ),
            (
                &["x", "--pass", "s", "--passes", "3"],
                &["x", "--pass", "[hidden]", "--passes", "3"],
            ),
            (&["--token", "not an option"], &["--token", "not an option"]),
            (
                &["sh", "-c", "echo token=1 && true"],
                &["sh", "-c", "echo token=1 && true"],
            ),
            (
                &["x", "--author=me", "--bypass", "y"],
                &["x", "--author=me", "--bypass", "y"],
            ),
            (&["x", "--password"], &["x", "--password"]),
        ] {
            assert_eq!(hidden(typed), kept);
        }
    }

    #[test]
    fn secrets_in_urls_are_hidden() {
        for (typed, kept) in [
            ("https://me:s3@h/p", "https://me:[hidden]@h/p"),
            (
                "https://h/p?a=1&access_token=x&b=2",
                "https://h/p?a=1&access_token=[hidden]&b=2",
            ),
            ("https://h/?token=x", "https://h/?token=[hidden]"),
            (
                "get 'ftp://u:p@h' http://u:q@h",
                "get 'ftp://u:[hidden]@h' http://u:[hidden]@h",
            ),
            ("https://h:80/p@q", "https://h:80/p@q"),
            ("https://me@h", "https://me@h"),
            ("://:@", "://:[hidden]@"),
            ("a://", "a://"),
        ] {
            assert_eq!(hidden(&["x", typed])[1], kept);
        }
    }

    #[test]
    fn a_title_may_have_all_arguments_in_one_string() {
        let mut title = vec![b"worker --token s3 of ftp://u:p@h x  y".to_vec()];
        hide_in_title(&mut title);
        assert_eq!(
            title,
            [b"worker --token [hidden] of ftp://u:[hidden]@h x  y".to_vec()]
        );
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let mut argv = vec![b"x".to_vec(), b"\xff://\xfe:\xfd@=".to_vec(), vec![]];
        hide(&mut argv);
        assert_eq!(argv[1], b"\xff://\xfe:[hidden]@=");
    }
}
