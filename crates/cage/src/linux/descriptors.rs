//! Letting go of descriptors: a held stdout is an EOF that never comes.

use super::procfs::numbered_entries;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsRawFd, RawFd};

/// Puts `/dev/null` over standard descriptors.
pub fn null_over(standard: &[RawFd]) {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let Ok(null) = null else { return };
    for &fd in standard {
        // SAFETY: duplicating over 0, 1 or 2 closes what the caller gives up here.
        unsafe { libc::dup2(null.as_raw_fd(), fd) };
    }
}

/// Closes every descriptor above 2 that is not listed.
///
/// The caller lists all it still uses; whatever else is open came from whoever
/// started us and belongs to the command alone.
pub fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<RawFd> = keep.iter().copied().filter(|&fd| fd > 2).collect();
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep {
        if from < fd {
            close_between(from, fd - 1);
        }
        from = from.max(fd + 1);
    }
    close_between(from, RawFd::MAX);
}

fn close_between(first: RawFd, last: RawFd) {
    // SAFETY: see close_all_but; the numbers are not negative.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, first.cast_unsigned(), last.cast_unsigned(), 0)
    };
    if done == 0 {
        return;
    }
    for fd in numbered_entries("/proc/self/fd") {
        if (first..=last).contains(&fd) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

/// Whether a program that is executed by this process finds this descriptor open.
pub fn is_inheritable(fd: RawFd) -> bool {
    // SAFETY: asking for flags touches no memory.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// How many may be held at once, with as much room for everything else.
pub fn room_for_descriptors() -> usize {
    const AT_LEAST: u64 = 8;
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((most / 2).max(AT_LEAST)).unwrap_or(usize::MAX)
}

/// A census may hold many pidfds. Called once the leader has its own limits.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
