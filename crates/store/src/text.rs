//! Text from a command line or an environment: usually UTF-8, but nobody says so.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// In JSON a string where it is one, and otherwise an array of bytes.
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
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(Text(match Either::deserialize(deserializer)? {
            Either::Text(text) => text.into(),
            Either::Bytes(bytes) => OsString::from_vec(bytes),
        }))
    }
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Text {
        Text(text)
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
