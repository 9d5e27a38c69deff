//! Waiting for a descriptor that is not a socket: a pidfd, a pipe, a terminal.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns once it is readable. An error, if it cannot be waited for.
pub(crate) async fn readable(fd: impl AsFd + AsRawFd) -> io::Result<()> {
    // What replaces this function is unsafe, for descriptors that become others while
    // they are registered. These are owned, or borrowed for as long as this waits.
    #[allow(deprecated)]
    let waits = AsyncFd::with_interest(fd, Interest::READABLE)?;
    waits.readable().await.map(drop)
}
