//! Every path (`a::b::c`) that a source file names, without a full parser of Rust.
//!
//! Comments and the contents of strings are skipped; groups (`a::{b, c::d}`) are taken apart.

/// A path in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Its names; a group's `*` is a name too.
    pub(super) names: Vec<String>,
    /// Line, from 1.
    pub(super) line: usize,
    /// Names of the modules in this file around it, the outermost first.
    pub(super) inside: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    /// `::`
    Then,
    /// Any other letter that counts.
    Mark(char),
}

/// The paths of two names or more, and the single names after `use`, in the order of the file.
pub(super) fn named(source: &str) -> Vec<Named> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut modules: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while let Some((token, line)) = tokens.get(at) {
        match token {
            Token::Mark('{') => {
                depth += 1;
                if let Some(name) = module_before(&tokens, at) {
                    modules.push((name.to_owned(), depth));
                }
            }
            Token::Mark('}') => {
                modules.pop_if(|(_, opened)| *opened == depth);
                depth = depth.saturating_sub(1);
            }
            Token::Name(first) => {
                let is_use = first == "use";
                let start = if is_use { at + 1 } else { at };
                let mut paths = Vec::new();
                let end = path(&tokens, start, &[], &mut paths);
                let line = *line;
                let inside: Vec<String> = modules.iter().map(|(name, _)| name.clone()).collect();
                paths.retain(|(names, _)| is_use || names.len() > 1);
                found.extend(paths.into_iter().map(|(names, at_line)| Named {
                    names,
                    line: at_line.max(line),
                    inside: inside.clone(),
                }));
                at = end.max(at + 1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The name of the module whose body opens at `at`, if it is one.
fn module_before(tokens: &[(Token, usize)], at: usize) -> Option<&str> {
    let [(Token::Name(word), _), (Token::Name(name), _)] = tokens.get(at.checked_sub(2)?..at)?
    else {
        return None;
    };
    (word == "mod").then_some(name)
}

/// Reads one path from `at` on, with its groups; returns where it ends.
fn path(
    tokens: &[(Token, usize)],
    mut at: usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let mut names = before.to_vec();
    let mut line = 0;
    loop {
        match tokens.get(at) {
            Some((Token::Then, _)) => at += 1,
            Some((Token::Name(name), here))
                if line == 0 || matches!(tokens[at - 1].0, Token::Then) =>
            {
                names.push(name.clone());
                line = *here;
                at += 1;
            }
            Some((Token::Mark('*'), here)) if is_after_then(tokens, at) => {
                names.push("*".to_owned());
                line = *here;
                at += 1;
                break;
            }
            Some((Token::Mark('{'), _)) if is_after_then(tokens, at) => {
                return group(tokens, at + 1, &names, found);
            }
            _ => break,
        }
    }
    if names.len() > before.len() {
        found.push((names, line));
    }
    at
}

fn is_after_then(tokens: &[(Token, usize)], at: usize) -> bool {
    at > 0 && tokens[at - 1].0 == Token::Then
}

fn group(
    tokens: &[(Token, usize)],
    mut at: usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    while let Some((token, line)) = tokens.get(at) {
        match token {
            Token::Mark('}') => return at + 1,
            Token::Name(name) if name == "as" => at += 2,
            Token::Name(_) | Token::Then => at = path(tokens, at, before, found).max(at + 1),
            Token::Mark('*') => {
                found.push(([before, &["*".to_owned()]].concat(), *line));
                at += 1;
            }
            Token::Mark(_) => at += 1,
        }
    }
    at
}

fn tokens(source: &str) -> Vec<(Token, usize)> {
    let letters: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&letter) = letters.get(at) {
        let end = skipped(&letters, at).unwrap_or_else(|| {
            if letter == ':' && letters.get(at + 1) == Some(&':') {
                tokens.push((Token::Then, line));
                at + 2
            } else if is_name(letter) {
                let end = (at..letters.len())
                    .find(|&at| !is_name(letters[at]))
                    .unwrap_or(letters.len());
                let name: String = letters[at..end].iter().collect();
                tokens.push((Token::Name(name), line));
                end
            } else {
                if !letter.is_whitespace() {
                    tokens.push((Token::Mark(letter), line));
                }
                at + 1
            }
        });
        line += letters[at..end.min(letters.len())]
            .iter()
            .filter(|letter| **letter == '\n')
            .count();
        at = end;
    }
    tokens
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Where a comment, a string or a character that begins at `at` ends.
fn skipped(letters: &[char], at: usize) -> Option<usize> {
    let next = |offset: usize| letters.get(at + offset).copied();
    match (letters[at], next(1)) {
        ('/', Some('/')) => Some(
            (at..letters.len())
                .find(|&at| letters[at] == '\n')
                .unwrap_or(letters.len()),
        ),
        ('/', Some('*')) => Some(block_comment(letters, at)),
        ('"', _) => Some(string(letters, at + 1)),
        ('r', Some('"' | '#'))
            if at == 0 || !is_name(letters[at - 1]) || is_byte_prefix(letters, at) =>
        {
            raw_string(letters, at + 1)
        }
        // A character, not a lifetime: it ends after one letter, or has a backslash.
        ('\'', Some('\\')) => (at + 3..letters.len())
            .find(|&at| letters[at] == '\'')
            .map(|end| end + 1),
        ('\'', Some(_)) if next(2) == Some('\'') => Some(at + 3),
        _ => None,
    }
}

fn is_byte_prefix(letters: &[char], at: usize) -> bool {
    matches!(letters[at - 1], 'b' | 'c') && (at == 1 || !is_name(letters[at - 2]))
}

fn block_comment(letters: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < letters.len() {
        match (letters[at], letters.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(letters: &[char], mut at: usize) -> usize {
    while let Some(letter) = letters.get(at) {
        match letter {
            '"' => return at + 1,
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    letters.len()
}

/// `at` is behind the `r`. Nothing for a raw name such as `r#type`.
fn raw_string(letters: &[char], at: usize) -> Option<usize> {
    let marks = letters[at..]
        .iter()
        .take_while(|letter| **letter == '#')
        .count();
    if letters.get(at + marks) != Some(&'"') {
        return None;
    }
    let mut end = at + marks + 1;
    while end < letters.len() {
        let closes = letters[end] == '"'
            && letters[end + 1..]
                .iter()
                .take(marks)
                .filter(|l| **l == '#')
                .count()
                == marks;
        if closes {
            return Some(end + 1 + marks);
        }
        end += 1;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(source: &str) -> Vec<String> {
        named(source)
            .into_iter()
            .map(|named| format!("{}:{}", named.line, named.names.join("::")))
            .collect()
    }

    #[test]
    fn groups_are_taken_apart() {
        let source = "use crate::{\n    event,\n    model::{tree::Node, self as m, memory::*},\n};\nuse std::fs;\n";
        let want = [
            "2:crate::event",
            "3:crate::model::tree::Node",
            "3:crate::model::self",
            "3:crate::model::memory::*",
            "5:std::fs",
        ];
        assert_eq!(joined(source), want);
    }

    #[test]
    fn paths_in_code_count() {
        assert_eq!(
            joined("fn f(x: &crate::event::Kind) -> u8 { super::g::<u8>(x) }"),
            ["1:crate::event::Kind", "1:super::g"]
        );
        assert_eq!(joined("use aya;"), ["1:aya"]);
        assert_eq!(joined("let x = ::std::env::var(a);"), ["1:std::env::var"]);
    }

    #[test]
    fn comments_and_strings_do_not_count() {
        let source = "// crate::a::b\n/* crate::a /* crate::b::c */ crate::c::d */\nlet s = \"crate::a \\\" crate::b::c\";\n\
                      let r = r#\"crate::x::y \" \"#; let c = '\"'; let q = '\\''; fn f<'a>(x: &'a crate::z::Z) {}\n\
                      let b = br\"crate::w::w\"; let r#type = a::b;";
        assert_eq!(joined(source), ["4:crate::z::Z", "5:a::b"]);
    }

    #[test]
    fn modules_in_the_file_are_known() {
        let found = named("mod a { mod b { use super::x; } } use super::y;");
        assert_eq!(found[0].inside, ["a", "b"]);
        assert!(found[1].inside.is_empty());
    }
}
