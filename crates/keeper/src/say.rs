//! Messages for people, on stderr, and whatever else is written for others to read.
//! They may be gone, or not read at all; no run is held up by that.

use fullstop_cage::linux::now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How long a reader may let us wait in all.
const PATIENCE: Duration = Duration::from_secs(1);
/// Where there is room at all, there is room for this much.
const CHUNK: usize = 512;

macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::say(&format!("fullstop: {}\n", format_args!($($text)*)))
    };
}

/// Says it, unless nobody has listened before.
pub fn say(text: &str) {
    static DEAF: AtomicBool = AtomicBool::new(false);
    if !DEAF.load(Relaxed) && patiently(io::stderr().as_fd(), text.as_bytes()).is_err() {
        DEAF.store(true, Relaxed);
    }
}

/// Writes it all, or gives up. The descriptor is shared with others, so that it
/// cannot be made non-blocking; it is asked for room instead.
pub fn patiently(fd: BorrowedFd<'_>, mut text: &[u8]) -> io::Result<()> {
    let until = now() + PATIENCE;
    while !text.is_empty() {
        let left = Timespec::try_from(until.since(now())).unwrap_or_default();
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
        if poll(&mut fds, Some(&left)) == Ok(0) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match rustix::io::write(fd, &text[..text.len().min(CHUNK)]) {
            Ok(written) => text = &text[written..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
