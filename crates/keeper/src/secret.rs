//! Secrets on their way from host to keeper, of which nothing stays behind.
//!
//! In the line between the two a secret is written in hexadecimal digits: whoever reads
//! JSON copies text with escapes to places that nobody can wipe, and digits have none.

use fullstop_store::Text;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Leaves nothing of what was there.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

pub fn serialize<S: Serializer>(content: &Text, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Digits(content.0.as_bytes()))
}

struct Digits<'a>(&'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    deserializer.deserialize_str(Reader)
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hexadecimal digits")
    }

    fn visit_str<E: Error>(self, digits: &str) -> Result<Text, E> {
        let value = |digit: u8| char::from(digit).to_digit(16);
        // As long as it will be: what grows leaves copies.
        let mut content = Vec::with_capacity(digits.len() / 2);
        for pair in digits.as_bytes().chunks(2) {
            let &[high, low] = pair else { return Err(E::custom("half a byte")) };
            let byte = value(high).zip(value(low)).map(|(high, low)| high << 4 | low);
            let byte = byte.and_then(|byte| u8::try_from(byte).ok());
            content.push(byte.ok_or_else(|| E::custom("no digit"))?);
        }
        Ok(Text(OsString::from_vec(content)))
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::Secret;
    use fullstop_store::Text;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    #[test]
    fn any_bytes_arrive_and_the_line_does_not_tell_them() {
        let all: Vec<u8> = (0..=255).collect();
        for content in [vec![], b"a secret\n".to_vec(), all] {
            let content = Text(OsString::from_vec(content));
            let secret = Secret { name: "N".into(), path: "p".into(), content };
            let line = serde_json::to_string(&secret).expect("it can be written");
            assert!(!line.contains("a secret"), "{line}");
            let read: Secret = serde_json::from_str(&line).expect("it can be read");
            assert!(read == secret, "{line}");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for wrong in ["f", "zz", "+1", "é"] {
            let line = format!(r#"{{"name":"N","path":"p","content":"{wrong}"}}"#);
            assert!(serde_json::from_str::<Secret>(&line).is_err(), "{wrong}");
        }
    }
}
