//! Text from a command line or an environment: usually UTF-8, but nobody says so.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// In JSON a string where it is one, and otherwise an array of bytes.
///
/// ```
/// use fullstop_store::Text;
///
/// assert_eq!(serde_json::to_string(&Text("plain".into()))?, r#""plain""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text(pub OsString);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_bytes().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an array of bytes")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Text, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(Text(OsString::from_vec(bytes)))
    }
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Text {
        Text(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.into())
    }
}

impl AsRef<OsStr> for Text {
    fn as_ref(&self) -> &OsStr {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive() {
        for bytes in [&b"plain"[..], b"", b"\xff\x00not utf-8", "größe".as_bytes()] {
            let text = Text(OsString::from_vec(bytes.to_vec()));
            let json = serde_json::to_string(&text).expect("written");
            assert_eq!(serde_json::from_str::<Text>(&json).expect("read"), text, "{json}");
        }
    }
}
