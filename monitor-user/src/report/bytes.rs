//! Bytes that are usually text.

use serde::{Serialize, Serializer, ser::Error};
use serde_json::value::RawValue;

/// Bytes from the kernel: an argument, a name, a path.
///
/// In JSON each byte that isn't part of valid UTF-8 becomes a lone surrogate U+DC80 to U+DCFF, as
/// Python's `surrogateescape` does, so nothing is lost. Serialization works with `serde_json` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteText(pub Vec<u8>);

impl ByteText {
    /// As a JSON string with its quotes.
    fn json(&self) -> Result<String, serde_json::Error> {
        let mut out = String::from("\"");
        for chunk in self.0.utf8_chunks() {
            let quoted = serde_json::to_string(chunk.valid())?;
            out.push_str(&quoted[1..quoted.len() - 1]);
            for byte in chunk.invalid() {
                let escape = format!("\\udc{byte:02x}");
                out.push_str(&escape);
            }
        }
        out.push('"');
        Ok(out)
    }
}

impl Serialize for ByteText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A Rust string can't hold a lone surrogate, so the JSON text is made here.
        let json = self.json().map_err(S::Error::custom)?;
        let raw = RawValue::from_string(json).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(bytes: &[u8]) -> String {
        serde_json::to_string(&ByteText(bytes.to_vec())).unwrap()
    }

    #[test]
    fn text_is_a_plain_string() {
        assert_eq!(json(b"a \"b\"\n\\"), r#""a \"b\"\n\\""#);
        assert_eq!(json("€\u{1b}".as_bytes()), "\"€\\u001b\"");
        assert_eq!(json(b""), r#""""#);
    }

    #[test]
    fn other_bytes_are_lone_surrogates() {
        assert_eq!(json(b"a\xff\xfe\x80b"), r#""a\udcff\udcfe\udc80b""#);
        // The start of a character that is cut off, and an encoded surrogate: byte by byte.
        assert_eq!(json(b"\xe2\x82"), r#""\udce2\udc82""#);
        assert_eq!(json(b"\xed\xb2\x80"), r#""\udced\udcb2\udc80""#);
    }

    #[test]
    fn python_gets_the_bytes_back() {
        let bytes = b"x\xff\xfe\x80 \xe2\x82\xac \"\\\n\x1b \xe2\x82";
        let script = "import json, sys, os\n\
                      sys.stdout.buffer.write(os.fsencode(json.load(sys.stdin)))";
        assert_eq!(
            crate::testing::python(script, json(bytes).as_bytes()),
            bytes
        );
    }
}
