//! Lengths of time as whole milliseconds. What is shorter than one is rounded up to it: a
//! time that was given is never none.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

fn count(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    count(*time).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// The same for a time that may not have been given.
pub mod optional {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, count};

    #[allow(clippy::ref_option)] // serde asks so.
    pub fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(count).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
