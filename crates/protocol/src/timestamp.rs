//! Points in time: RFC 3339 in UTC, to the millisecond.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last millisecond that can be written with four digits for its year.
const LAST: u64 = 253_402_300_799_999;

/// A point in time, as the clock of the machine showed it.
///
/// ```
/// use fullstop_protocol::Timestamp;
///
/// let at = Timestamp::from_unix_ms(1_794_790_765_448);
/// assert_eq!(at.to_string(), "2026-11-16T00:59:25.448Z");
/// assert_eq!("2026-11-16T00:59:25.448Z".parse(), Ok(at));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    unix_ms: u64,
}

/// What is no point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no point in time: it is written 2026-11-16T00:59:25.448Z")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// The time by the clock of this machine.
    pub fn now() -> Timestamp {
        Timestamp::of(SystemTime::now())
    }

    /// One beyond the year 9999 is the last of that year.
    pub fn from_unix_ms(unix_ms: u64) -> Timestamp {
        Timestamp { unix_ms: unix_ms.min(LAST) }
    }

    /// Milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        self.unix_ms
    }

    /// How much later this is; nothing, if it is earlier.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.unix_ms.saturating_sub(earlier.unix_ms))
    }

    fn of(time: SystemTime) -> Timestamp {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_ms(u64::try_from(since.as_millis()).unwrap_or(LAST))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_millis(self.unix_ms);
        humantime::format_rfc3339_millis(time).fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Timestamp, InvalidTimestamp> {
        let time = humantime::parse_rfc3339(text);
        time.map(Timestamp::of).map_err(|_| InvalidTimestamp(text.to_owned()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a point in time, as 2026-11-16T00:59:25.448Z")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(unix_ms in 0..=LAST) {
            let at = Timestamp::from_unix_ms(unix_ms);
            prop_assert_eq!(at.to_string().parse(), Ok(at));
        }

        #[test]
        fn any_text_can_be_read(
            text in prop_oneof![any::<String>(), "[0-9]{4}-[0-9:TZ.+é-]{5,24}Z?"],
        ) {
            let read = text.parse::<Timestamp>();
            prop_assert!(read.is_err() || read.is_ok_and(|at| at.unix_ms() <= LAST));
        }
    }

    #[test]
    fn no_year_has_five_digits() {
        let last = Timestamp::from_unix_ms(u64::MAX);
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.999Z");
        for wrong in ["", "1800000000000", "2026-11-16", "2026-13-16T00:59:25Z", "now"] {
            assert!(wrong.parse::<Timestamp>().is_err(), "{wrong:?}");
        }
    }
}
