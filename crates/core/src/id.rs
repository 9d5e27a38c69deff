//! Run ids: sortable by birth, short enough to type, addressable by a prefix.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Nine letters of time (32,768 ticks a second, good for 34 years), four of chance.
///
/// Ids that were made before had seven letters of time, which are the same seven, and six
/// of chance. They are told from no other, and sort among them to a 32nd of a second.
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
const TIME_LETTERS: u32 = 9;
const CHANCE_LETTERS: u32 = 4;
/// 2026-01-01, so that the clock of the ids lasts until 2060.
const EPOCH_SECONDS: u64 = 1_767_225_600;
/// In 30 µs no two runs are begun one after the other.
const TICKS_A_SECOND: u64 = 32_768;

impl Id {
    /// The id of a run that begins so many milliseconds after 1970.
    pub fn new(unix_ms: u64, chance: u64) -> Self {
        Id::of(Tick::at(Duration::from_millis(unix_ms)), chance)
    }

    /// The id of this time, told from others of the same time by chance.
    pub fn of(tick: Tick, chance: u64) -> Self {
        let mut text = String::with_capacity((TIME_LETTERS + CHANCE_LETTERS) as usize);
        push_letters(&mut text, tick.0, TIME_LETTERS);
        push_letters(&mut text, chance, CHANCE_LETTERS);
        Id(text)
    }

    /// The id as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The time of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(u64);

impl Tick {
    /// The tick of a time since 1970.
    pub fn at(since_1970: Duration) -> Tick {
        let since = since_1970.saturating_sub(Duration::from_secs(EPOCH_SECONDS));
        let part = u64::from(since.subsec_nanos()) * TICKS_A_SECOND / 1_000_000_000;
        Tick(since.as_secs().saturating_mul(TICKS_A_SECOND).saturating_add(part))
    }

    /// This one, unless it is not behind the last: then the next behind that. So the ids
    /// of one maker grow, however fast they are made and whatever becomes of its clock.
    #[must_use]
    pub fn behind(self, last: Tick) -> Tick {
        self.max(Tick(last.0.saturating_add(1)))
    }

    /// As a number that grows with the time.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Of the number that it was.
    pub fn from_number(number: u64) -> Tick {
        Tick(number)
    }
}

fn push_letters(text: &mut String, value: u64, count: u32) {
    for place in (0..count).rev() {
        let digit = (value >> (5 * place)) & 31;
        text.push(char::from(LETTERS[usize::from(digit as u8)]));
    }
}

/// Not an id.
///
/// ```
/// use fullstop_core::id::{Id, InvalidId};
///
/// assert_eq!("research".parse::<Id>(), Err(InvalidId));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the id of a run")
    }
}

/// An id names a directory, so that nothing else may pass for one.
impl TryFrom<String> for Id {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Id, InvalidId> {
        text.parse()
    }
}

impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Id, InvalidId> {
        let length = (TIME_LETTERS + CHANCE_LETTERS) as usize;
        let fine = text.len() == length && text.bytes().all(|letter| LETTERS.contains(&letter));
        if fine { Ok(Id(text.to_owned())) } else { Err(InvalidId) }
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

    const EPOCH_MS: u64 = EPOCH_SECONDS * 1000;
    const LATER: u64 = 1_800_000_000;

    #[test]
    fn later_ids_sort_behind_earlier_ones() {
        let day = 24 * 3600 * 1000;
        let ids: Vec<Id> = (0..1000).map(|n| Id::new(EPOCH_MS + n * day, u64::MAX - n)).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.as_str().len() == 13));
    }

    #[test]
    fn a_millisecond_is_enough_to_sort() {
        let ids: Vec<Id> = (0..1000).map(|n| Id::new(LATER * 1000 + n, u64::MAX - n)).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn chance_tells_ids_of_one_instant_apart() {
        assert_ne!(Id::new(EPOCH_MS, 1), Id::new(EPOCH_MS, 2));
    }

    #[test]
    fn a_tick_is_behind_the_last_one_whatever_the_clock_says() {
        let now = Tick::at(Duration::from_secs(LATER));
        assert_eq!(now.behind(Tick(0)), now);
        assert_eq!(now.behind(now), Tick(now.0 + 1));
        assert_eq!(now.behind(Tick(now.0 + 70)), Tick(now.0 + 71));
    }

    /// As they were made before: 32 ticks a second, and six letters of chance.
    #[test]
    fn older_ids_sort_among_the_others_by_their_seven_letters_of_time() {
        let older = |n: u64| {
            let mut text = String::new();
            push_letters(&mut text, (LATER + n - EPOCH_SECONDS) * 32, 7);
            push_letters(&mut text, u64::MAX, 6);
            text.parse::<Id>().expect("an id")
        };
        let newer = |n: u64| Id::of(Tick::at(Duration::from_secs(LATER + n)), 0);
        assert_eq!(older(1).as_str()[..7], newer(1).as_str()[..7]);
        assert!(newer(0) < older(1) && older(1) < newer(2));
    }
}
