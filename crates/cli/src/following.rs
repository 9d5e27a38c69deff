//! Waiting for more to print: what `logs -f` and `events -f` share.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until there may be more to print. Returns false as soon as stdout has no reader
/// any more (a pipe or a terminal whose other end is closed), which a write would only find
/// out when there is something to write.
pub fn wait(changes: Option<BorrowedFd<'_>>, patience: Duration) -> bool {
    let stdout = io::stdout();
    let mut fds = vec![PollFd::new(&stdout, PollFlags::empty())];
    fds.extend(changes.map(|changes| PollFd::from_borrowed_fd(changes, PollFlags::IN)));
    let patience = Timespec::try_from(patience).ok();
    let waited = poll(&mut fds, patience.as_ref());
    waited.is_err() || !fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
