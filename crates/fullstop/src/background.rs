//! Something that takes its time, beside a loop that waits for descriptors.

use crate::blocking;
use crate::error::{Error, Result};
use crate::offload::on_thread;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// A call that is brought to its end on a thread, for a program without a runtime that must not
/// wait for it: its descriptor is readable once it is done.
///
/// The thread takes no signals. If this is dropped, the call goes on, and its result is lost.
///
/// ```
/// use fullstop::blocking::Background;
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// let task = Background::begin(|| async { Ok(6 * 7) })?;
/// poll(&mut [PollFd::new(&task, PollFlags::IN)], None)?;
/// assert_eq!(task.result().transpose()?, Some(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Background<T> {
    done: UnixStream,
    result: Receiver<Result<T>>,
}

impl<T: Send + 'static> Background<T> {
    /// Begins it. Where no thread can be made it is done here, and this returns behind its end.
    pub fn begin<F: Future<Output = Result<T>>>(
        call: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<Background<T>> {
        let (done, doing) = UnixStream::pair()?;
        let (tell, result) = channel();
        on_thread(move || {
            let _ = tell.send(blocking::wait(async { call().await }));
            drop(doing);
        });
        Ok(Background { done, result })
    }

    /// What came of it, once it is done, and only the first time.
    pub fn result(&self) -> Option<Result<T>> {
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Error::Unfinished)),
        }
    }
}

impl<T> AsFd for Background<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}
