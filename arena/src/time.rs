//! Deadlines. Every wait in the arena has one.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

pub const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A moment after which waiting is over.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(patience: Duration) -> Self {
        Self(Instant::now() + patience)
    }

    pub fn from(start: Instant, patience: Duration) -> Self {
        Self(start + patience)
    }

    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn passed(self) -> bool {
        self.left().is_zero()
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
pub fn await_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Deadline::after(patience);
    loop {
        if condition() {
            return true;
        }
        if deadline.passed() {
            return false;
        }
        std::thread::sleep(millis(2));
    }
}
