//! Deadlines. Every wait in the arena has one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::Timespec;
use serde::{Deserialize as _, Deserializer};

use crate::{Failure, InTime, Missed};

pub const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A point in time, as fullstop writes it: RFC 3339 in UTC.
pub fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_rfc3339(&text).map_err(serde::de::Error::custom)
}

/// The same in milliseconds since 1970.
pub fn unix_ms_of(text: &str) -> Option<u64> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// A moment after which waiting is over, and since when that is known.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    start: Instant,
    patience: Duration,
}

impl Deadline {
    pub fn after(patience: Duration) -> Self {
        Self::from(Instant::now(), patience)
    }

    pub fn from(start: Instant, patience: Duration) -> Self {
        Self { start, patience }
    }

    pub fn left(self) -> Duration {
        self.patience.saturating_sub(self.start.elapsed())
    }

    pub fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// Is there time left?
    pub fn stands(self) -> InTime {
        if self.passed() { InTime::no(self.overrun()) } else { InTime::YES }
    }

    /// The failure of a wait that was given up because the moment had come.
    pub fn missed(self, sentence: impl Into<String>) -> Failure {
        Failure { text: sentence.into(), missed: self.overrun() }
    }

    fn overrun(self) -> Option<Missed> {
        Missed::since(self.start, self.patience)
    }

    /// What is left, in the words of `ppoll`.
    pub(crate) fn timespec(self) -> Timespec {
        let left = self.left();
        Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        }
    }
}

/// For conditions of which the kernel sends no event (a counter in `/proc`, a
/// file that is to appear): looks again every two milliseconds until the
/// condition holds or the patience is over, and says which.
pub fn await_until(patience: Duration, condition: impl FnMut() -> bool) -> InTime {
    look_until(patience, condition, || std::thread::sleep(millis(2)))
}

/// The same without a pause, for those who race with what they wait for.
pub fn race_until(patience: Duration, condition: impl FnMut() -> bool) -> InTime {
    look_until(patience, condition, || {})
}

fn look_until(patience: Duration, mut condition: impl FnMut() -> bool, pause: impl Fn()) -> InTime {
    let deadline = Deadline::after(patience);
    loop {
        if condition() {
            return InTime::YES;
        }
        if deadline.passed() {
            return InTime::no(deadline.overrun());
        }
        pause();
    }
}
