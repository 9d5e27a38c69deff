//! Waiting for more to print: what those have in common that follow something.

use crate::fail::complain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::future::{pending, poll_fn};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::pin;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Does this until stdout has no reader any more. Nothing, if it was not done by then.
pub async fn until_unread<T>(follow: impl Future<Output = T>) -> Option<T> {
    while_read(io::stdout().as_fd(), follow).await
}

/// Says once that it is looked again and again, for want of something that wakes.
#[derive(Default)]
pub struct Looking {
    is_told: bool,
}

impl Looking {
    pub fn tell(&mut self, what: &str, why: Option<String>) {
        if let Some(why) = why.filter(|_| !self.is_told) {
            complain(format!("looking for {what} four times a second: {why}"));
            self.is_told = true;
        }
    }
}

/// Does this for as long as somebody can read what is written to `fd`: a pipe or a terminal
/// whose other end is closed would only show that to a write. Nothing, if it was not done.
async fn while_read<T>(fd: BorrowedFd<'_>, what: impl Future<Output = T>) -> Option<T> {
    let (mut what, mut closed) = (pin!(what), pin!(closed(fd)));
    poll_fn(|context| match what.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => closed.as_mut().poll(context).map(|()| None),
    })
    .await
}

async fn closed(fd: BorrowedFd<'_>) {
    // A file is never closed by others, and cannot be waited for.
    // What replaces this function is unsafe, for descriptors that become others while they are
    // registered. Stdout is filled for as long as this process lives.
    #[allow(deprecated)]
    let waits = AsyncFd::with_interest(fd, Interest::READABLE | Interest::ERROR);
    let Ok(waits) = waits else {
        return pending().await;
    };
    loop {
        let Ok(mut ready) = waits.ready(Interest::READABLE | Interest::ERROR).await else {
            return pending().await;
        };
        if is_closed(fd) {
            return;
        }
        // A person types at the terminal.
        ready.clear_ready();
    }
}

fn is_closed(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut fds, Some(&at_once)).is_ok()
        && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
