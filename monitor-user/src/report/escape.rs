//! Names that can't harm a terminal, in a given width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Bytes as text on one line: control characters, terminal escapes, invisible characters and those
/// that change the direction of writing are shown as `\n`, `\x1b`, `\u{202e}`; bytes that aren't
/// UTF-8 as `\xff`. A backslash is doubled, so what is shown has one meaning.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut out, c);
        }
        for byte in chunk.invalid() {
            push_hex(&mut out, *byte);
        }
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\x1f' | '\x7f' => push_hex(out, u8::try_from(c).unwrap_or(0)),
        c if is_harmful(c) => {
            out.extend(c.escape_unicode());
        }
        c => out.push(c),
    }
}

/// Whether a character could change what a terminal or a reader sees around it: control characters, and those
/// that are invisible or change the direction of writing.
pub(super) fn is_harmful(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

fn push_hex(out: &mut String, byte: u8) {
    let escape = format!("\\x{byte:02x}");
    out.push_str(&escape);
}

/// Format characters (general category Cf), separators of lines, fillers and variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Columns that text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Text in at most `columns`; what doesn't fit is cut and marked.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        // One column is for the mark.
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Text in at most `columns`, of which what doesn't fit is cut off in front and marked.
pub(super) fn shorten_left(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut start, mut used) = (text.len(), 1);
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        start = at;
    }
    if columns == 0 {
        return String::new();
    }
    format!("…{}", &text[start..])
}

/// Text filled up to `columns` on the right.
pub(super) fn left(text: &str, columns: usize) -> String {
    let fill = columns.saturating_sub(width(text));
    format!("{text}{:fill$}", "")
}

/// Text filled up to `columns` on the left.
pub(super) fn right(text: &str, columns: usize) -> String {
    let fill = columns.saturating_sub(width(text));
    format!("{:fill$}{text}", "")
}

/// Words in lines of at most `columns`, each after the first with `indent` spaces. Spaces in front
/// of the text stay; a word that is longer than a line is cut.
pub(super) fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let words = text.trim_start_matches(' ');
    let mut lines = Vec::new();
    let mut line = text[..text.len() - words.len()].to_owned();
    let mut is_start = true;
    for word in words.split(' ') {
        let word = shorten(word, columns.saturating_sub(indent));
        if !is_start && width(&line) + 1 + width(&word) > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            is_start = true;
        }
        if !is_start {
            line.push(' ');
        }
        line.push_str(&word);
        is_start = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        assert_eq!(escape(b"a\nb\t\x1b[31m\x7f"), "a\\nb\\t\\x1b[31m\\x7f");
        assert_eq!(
            escape("x\u{202e}y\u{9b}z".as_bytes()),
            "x\\u{202e}y\\u{9b}z"
        );
        assert_eq!(
            escape("\u{200b}\u{feff}\u{2066}".as_bytes()),
            "\\u{200b}\\u{feff}\\u{2066}"
        );
        assert_eq!(escape(b"\xff\\"), "\\xff\\\\");
        assert_eq!(escape("näme 日本".as_bytes()), "näme 日本");
        for c in (0..=0x10_ffff_u32).filter_map(char::from_u32) {
            let shown = escape(c.to_string().as_bytes());
            assert!(!shown.chars().any(char::is_control), "{c:?}");
        }
    }

    #[test]
    fn cutting_counts_columns() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdef", 5), "abcd…");
        assert_eq!(shorten("日本語", 5), "日本…");
        assert_eq!(shorten("日本語", 4), "日…");
        assert_eq!(shorten("abc", 0), "");
        assert_eq!(shorten_left("abcdef", 6), "abcdef");
        assert_eq!(shorten_left("abcdef", 5), "…cdef");
        assert_eq!(shorten_left("日本語", 5), "…本語");
        assert_eq!(shorten_left("日本語", 4), "…語");
        assert_eq!(shorten_left("abc", 0), "");
        assert_eq!(left("日", 4), "日  ");
        assert_eq!(right("ab", 4), "  ab");
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(wrap("  one two three", 9, 4), ["  one two", "    three"]);
        assert_eq!(wrap("", 8, 2), [""]);
        assert_eq!(wrap("- abcdefghijk x", 8, 2), ["- abcde…", "  x"]);
    }
}
