//! One clock for everybody: `CLOCK_MONOTONIC`, comparable between processes.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot, suspend excluded.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock is never negative.
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
