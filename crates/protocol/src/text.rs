//! Text from a command line or an environment: usually UTF-8, but not necessarily.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// In JSON a string where it is one, and otherwise its bytes as `{"base64": …}`.
///
/// ```
/// use fullstop_protocol::Text;
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
            None => Encoded { base64: STANDARD.encode(self.0.as_bytes()) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// How bytes are written that are not UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    base64: String,
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or bytes as {\"base64\": …}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
        let Encoded { base64 } = Encoded::deserialize(MapAccessDeserializer::new(map))?;
        let bytes = STANDARD.decode(base64).map_err(A::Error::custom)?;
        Ok(Text(OsString::from_vec(bytes)))
    }

    /// An array of numbers: so version 1 wrote bytes.
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

    #[test]
    fn bytes_are_base64_and_were_numbers() {
        let text = Text(OsString::from_vec(b"fo\xff".to_vec()));
        let json = serde_json::to_string(&text).expect("written");
        assert_eq!(json, r#"{"base64":"Zm//"}"#);
        for known in [&*json, "[102,111,255]"] {
            assert_eq!(serde_json::from_str::<Text>(known).expect("read"), text);
        }
        for wrong in ["7", "null", "[300]", r#"{"base64":"Zm/"}"#, r#"{"hex":"666f"}"#] {
            assert!(serde_json::from_str::<Text>(wrong).is_err(), "{wrong}");
        }
    }
}
