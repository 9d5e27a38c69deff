//! Words that a later fullstop may add to.

use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A word that this version knows, or a word of a later version: that is shown as it is, and is
/// never taken for another.
///
/// ```
/// use fullstop_core::words::Reason;
/// use fullstop_protocol::Word;
///
/// let known: Word<Reason> = serde_json::from_str(r#""stopped""#)?;
/// assert_eq!(known, Reason::Stopped);
/// let later: Word<Reason> = serde_json::from_str(r#""bored""#)?;
/// assert_eq!((later.known(), later.to_string()), (None, "bored".to_owned()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word<T> {
    /// A word that this version knows.
    Known(T),
    /// A word of a later version.
    Other(String),
}

impl<T: Copy> Word<T> {
    /// The word, if this version knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Word::Known(word) => Some(*word),
            Word::Other(_) => None,
        }
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Word<T> {
        Word::Known(word)
    }
}

impl<T: PartialEq> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Word::Known(word) if word == other)
    }
}

impl<T: fmt::Display> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Known(word) => word.fmt(f),
            Word::Other(word) => f.write_str(word),
        }
    }
}

impl<T: Serialize> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Word::Known(word) => word.serialize(serializer),
            Word::Other(word) => serializer.serialize_str(word),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<T>, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known: StrDeserializer<'_, ValueError> = word.as_str().into_deserializer();
        Ok(T::deserialize(known).map_or_else(|_| Word::Other(word.clone()), Word::Known))
    }
}
