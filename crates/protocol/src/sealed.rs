//! Secrets on their way from host to keeper, of which nothing stays behind.
//!
//! On the wire a secret is written in hexadecimal digits: a reader of JSON copies text with
//! escapes to places that cannot be wiped, and digits have no escapes.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Overwrites bytes, so that nothing of them stays in memory.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

/// What is in a secret. It is never written to disk, never shown, and wiped when dropped.
///
/// ```
/// use fullstop_protocol::Sealed;
///
/// let key = Sealed::new(b"sk-1234".to_vec());
/// assert_eq!(key.bytes(), b"sk-1234");
/// assert_eq!(format!("{key:?}"), "Sealed(7 bytes)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// Takes the bytes, which are wiped when this is dropped.
    pub fn new(bytes: Vec<u8>) -> Sealed {
        Sealed(bytes)
    }

    /// What is sealed.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Digits(&self.0))
    }
}

struct Digits<'a>(&'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sealed, D::Error> {
        deserializer.deserialize_str(SealedVisitor)
    }
}

struct SealedVisitor;

impl Visitor<'_> for SealedVisitor {
    type Value = Sealed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hexadecimal digits")
    }

    fn visit_str<E: Error>(self, digits: &str) -> Result<Sealed, E> {
        let value = |digit: u8| char::from(digit).to_digit(16);
        // As long as it will be: a vector that grows leaves copies behind.
        let mut sealed = Sealed(Vec::with_capacity(digits.len() / 2));
        for pair in digits.as_bytes().chunks(2) {
            let &[high, low] = pair else { return Err(E::custom("half a byte")) };
            let byte = value(high).zip(value(low)).map(|(high, low)| high << 4 | low);
            let byte = byte.and_then(|byte| u8::try_from(byte).ok());
            sealed.0.push(byte.ok_or_else(|| E::custom("no digit"))?);
        }
        Ok(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_arrive_and_the_line_does_not_tell_them() {
        let all: Vec<u8> = (0..=255).collect();
        for content in [vec![], b"a secret\n".to_vec(), all] {
            let secret = Sealed::new(content);
            let line = serde_json::to_string(&secret).expect("it can be written");
            assert!(!line.contains("a secret") && !format!("{secret:?}").contains("a secret"));
            assert!(serde_json::from_str::<Sealed>(&line).expect("read") == secret, "{line}");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for wrong in ["f", "zz", "+1", "é"] {
            assert!(serde_json::from_str::<Sealed>(&format!("{wrong:?}")).is_err(), "{wrong}");
        }
    }
}
