//! Bytes that aren't UTF-8 are written in the JSON report as lone surrogates U+DC80 to U+DCFF, one per byte.
//!
//! Rust strings can't hold those, so before parsing they become characters of a private plane, and
//! [`Text`] turns these back into the bytes.

use std::fmt;

use serde::{Deserialize, Deserializer};

/// Private character that stands for byte 0.
const PRIVATE: u32 = 0x10_f700;

/// Text of the report as the bytes that the kernel had.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(pub Vec<u8>);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 120;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if self.0.len() > SHOWN {
            write!(f, " and {} bytes more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            match u8::try_from(u32::from(character).wrapping_sub(PRIVATE)) {
                Ok(byte) if byte >= 0x80 => bytes.push(byte),
                _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Ok(Self(bytes))
    }
}

/// JSON with every lone surrogate escape replaced by its private character.
pub fn replace(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    let mut after_high = false;
    while let Some(at) = rest.find('\\') {
        after_high &= at == 0;
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = rest.get(2..6).filter(|_| rest.starts_with("\\u"));
        let unit = unit.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let lone = unit.filter(|unit| (0xdc80..=0xdcff).contains(unit) && !after_high);
        let length = if unit.is_some() { 6 } else { 2 };
        if let Some(character) = lone.and_then(|unit| char::from_u32(PRIVATE + (unit & 0xff))) {
            out.push(character);
        } else {
            out.push_str(rest.get(..length).unwrap_or(rest));
        }
        after_high = unit.is_some_and(|unit| (0xd800..0xdc00).contains(&unit));
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Text {
        serde_json::from_str(&replace(json)).expect("valid JSON")
    }

    #[test]
    fn lone_surrogates_become_bytes() {
        assert_eq!(parsed(r#""a\udcff\udc80b""#).0, b"a\xff\x80b");
    }

    #[test]
    fn pairs_and_escaped_backslashes_stay() {
        assert_eq!(parsed(r#""\ud83d\udc80""#), Text::from("\u{1f480}"));
        assert_eq!(parsed(r#""\\udc80 \" \u20ac""#), Text::from("\\udc80 \" €"));
    }
}
