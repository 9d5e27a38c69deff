//! Waiting for a descriptor that is not a socket: a pidfd, a pipe, a terminal.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::future::{pending, poll_fn};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::pin;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns once it is readable. An error, if it cannot be waited for.
pub(crate) async fn readable(fd: impl AsFd + AsRawFd) -> io::Result<()> {
    wait_for(fd, Interest::READABLE)?.readable().await.map(drop)
}

fn wait_for<F: AsFd + AsRawFd>(fd: F, interest: Interest) -> io::Result<AsyncFd<F>> {
    // What replaces this function is unsafe, for descriptors that become others while
    // they are registered. These are owned, or borrowed for as long as this waits.
    #[allow(deprecated)]
    AsyncFd::with_interest(fd, interest)
}

/// Does this for as long as somebody can read what is written to `fd`: a pipe or a terminal
/// whose other end is closed would only show that to a write. Nothing, if it was not done.
pub async fn while_read<T>(fd: BorrowedFd<'_>, what: impl Future<Output = T>) -> Option<T> {
    let (mut what, mut closed) = (pin!(what), pin!(closed(fd)));
    poll_fn(|context| match what.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => closed.as_mut().poll(context).map(|()| None),
    })
    .await
}

async fn closed(fd: BorrowedFd<'_>) {
    // A file is never closed by others, and cannot be waited for.
    let Ok(waits) = wait_for(fd, Interest::READABLE | Interest::ERROR) else {
        return pending().await;
    };
    loop {
        let Ok(mut ready) = waits.ready(Interest::READABLE | Interest::ERROR).await else {
            return pending().await;
        };
        if is_closed(fd) {
            return;
        }
        // Somebody types at the terminal.
        ready.clear_ready();
    }
}

fn is_closed(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut fds, Some(&at_once)).is_ok()
        && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
