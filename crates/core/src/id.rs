//! Run ids: sortable by birth, short enough to type, addressable by a prefix.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Seven letters of time (32 ticks a second, good for 34 years), six of chance.
///
/// ```
/// use fullstop_core::id::Id;
///
/// let id = Id::new(1_800_000_000_000, 7);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Id(String);

/// Crockford's base 32: digits sort before letters, and no letter looks like a digit.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TIME_LETTERS: u32 = 7;
const CHANCE_LETTERS: u32 = 6;
/// 2026-01-01, so that the clock of the ids lasts until 2060.
const EPOCH_MS: u64 = 1_767_225_600_000;

impl Id {
    pub fn new(unix_ms: u64, chance: u64) -> Self {
        let ticks = unix_ms.saturating_sub(EPOCH_MS).saturating_mul(32) / 1000;
        let mut text = String::with_capacity((TIME_LETTERS + CHANCE_LETTERS) as usize);
        push_letters(&mut text, ticks, TIME_LETTERS);
        push_letters(&mut text, chance, CHANCE_LETTERS);
        Id(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_letters(text: &mut String, value: u64, count: u32) {
    for place in (0..count).rev() {
        let digit = (value >> (5 * place)) & 31;
        text.push(char::from(LETTERS[usize::from(digit as u8)]));
    }
}

/// Not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoId;

impl fmt::Display for NoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the id of a run")
    }
}

/// An id names a directory, so that nothing else may pass for one.
impl TryFrom<String> for Id {
    type Error = NoId;

    fn try_from(text: String) -> Result<Id, NoId> {
        text.parse()
    }
}

impl FromStr for Id {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Id, NoId> {
        let length = (TIME_LETTERS + CHANCE_LETTERS) as usize;
        let fine = text.len() == length && text.bytes().all(|letter| LETTERS.contains(&letter));
        if fine { Ok(Id(text.to_owned())) } else { Err(NoId) }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_ids_sort_behind_earlier_ones() {
        let day = 24 * 3600 * 1000;
        let ids: Vec<Id> = (0..1000).map(|n| Id::new(EPOCH_MS + n * day, u64::MAX - n)).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.as_str().len() == 13));
    }

    #[test]
    fn chance_tells_ids_of_one_instant_apart() {
        assert_ne!(Id::new(EPOCH_MS, 1), Id::new(EPOCH_MS, 2));
    }
}
