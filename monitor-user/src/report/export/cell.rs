//! Cells of a table, and how they are written so that no program takes them for more than text.

use std::borrow::Cow;

use serde::Serialize;

use crate::report::{ByteText, escape};

/// Letters that make a spreadsheet take a cell for a formula; the last four are the wide forms of the first.
const FORMULA: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// What stands in a row under a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Not known.
    Unknown,
    /// A whole number.
    Number(u64),
    /// Yes or no.
    Bool(bool),
    /// Text, escaped when it is written.
    Text(Vec<u8>),
    /// A value as JSON.
    Json(String),
}

impl Cell {
    /// A list or map as JSON.
    pub(super) fn json(value: &impl Serialize) -> Self {
        // Only a value that isn't made for JSON can fail.
        serde_json::to_string(value).map_or(Self::Unknown, Self::Json)
    }

    /// As it stands in CSV.
    pub(super) fn csv(&self) -> Cow<'static, str> {
        match self {
            Self::Unknown => Cow::Borrowed(""),
            Self::Number(n) => Cow::Owned(n.to_string()),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Text(bytes) => Cow::Owned(guarded(&escape::escape(bytes), hex)),
            Self::Json(json) => Cow::Owned(guarded(&plain_json(json), unicode)),
        }
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        Self::Number(n)
    }
}

impl From<u32> for Cell {
    fn from(n: u32) -> Self {
        Self::Number(n.into())
    }
}

impl From<bool> for Cell {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<&ByteText> for Cell {
    fn from(text: &ByteText) -> Self {
        Self::Text(text.0.clone())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unknown, Into::into)
    }
}

/// JSON that holds no control and no invisible character: within strings, where alone there can be any, they
/// are written as `\u202e`. The value is the same.
pub(super) fn plain_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if escape::is_harmful(c) {
            out.push_str(&unicode(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Escapes the letters with which a formula would begin: at the start of the cell, and behind a semicolon, at
/// which some countries' spreadsheets split what they read.
fn guarded(text: &str, escaped: fn(char) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_start = true;
    for c in text.chars() {
        if is_start && FORMULA.contains(&c) {
            out.push_str(&escaped(c));
        } else {
            out.push(c);
        }
        is_start = c == ';' || (is_start && (c == ' ' || c == '"' || c == '\''));
    }
    out
}

/// As in escaped text.
fn hex(c: char) -> String {
    match u32::from(c) {
        code @ 0..=0x7f => format!("\\x{code:02x}"),
        code => format!("\\u{{{code:x}}}"),
    }
}

/// As in JSON.
fn unicode(c: char) -> String {
    let mut units = [0; 2];
    c.encode_utf16(&mut units)
        .iter()
        .fold(String::new(), |out, unit| format!("{out}\\u{unit:04x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        Cell::Text(bytes.to_vec()).csv().into_owned()
    }

    #[test]
    fn no_cell_begins_a_formula() {
        for (given, written) in [
            ("=1+1", "\\x3d1+1"),
            ("+1", "\\x2b1"),
            ("-c", "\\x2dc"),
            ("@SUM(A1)", "\\x40SUM(A1)"),
            ("  =1", "  \\x3d1"),
            ("\"=1", "\"\\x3d1"),
            ("a;=1;'-2", "a;\\x3d1;'\\x2d2"),
            ("\t=1", "\\t=1"),
            ("\r=1", "\\r=1"),
            ("\u{ff1d}1", "\\u{ff1d}1"),
            ("a=1", "a=1"),
            ("'", "'"),
        ] {
            assert_eq!(text(given.as_bytes()), written);
        }
        let json = Cell::json(&["x;=1", "-c"]).csv().into_owned();
        assert_eq!(json, r#"["x;\u003d1","-c"]"#);
        assert_eq!(Cell::json(&"-c").csv(), r#""\u002dc""#);
    }

    #[test]
    fn json_stays_the_same_value() {
        for c in (0..=0x10_ffff_u32).filter_map(char::from_u32) {
            let given = format!(";{c}=");
            let cell = Cell::json(&given).csv().into_owned();
            assert!(!cell.chars().any(escape::is_harmful), "{cell:?}");
            assert_eq!(serde_json::from_str::<String>(&cell).unwrap(), given);
        }
    }

    #[test]
    fn what_is_not_known_is_empty() {
        assert_eq!(Cell::from(None::<u64>).csv(), "");
        assert_eq!(Cell::from(Some(0_u64)).csv(), "0");
        assert_eq!(Cell::from(Some(false)).csv(), "false");
        assert_eq!(text(b"\xff\\"), "\\xff\\\\");
    }
}
