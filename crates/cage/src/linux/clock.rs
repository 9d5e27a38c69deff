//! The kernel's clocks.

use fullstop_core::words::Moment;
use std::time::Duration;

/// Now, on the clock that does not count suspend.
pub fn now() -> Moment {
    Moment::at(read(libc::CLOCK_MONOTONIC))
}

/// Since the machine was started, suspend included, as the kernel dates its processes.
pub fn since_boot() -> Duration {
    read(libc::CLOCK_BOOTTIME)
}

/// The C library has found the kernel's clocks already; rustix would look for them once
/// more, which takes longer than many a system call of a start.
fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours, and is written before the call returns.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}
