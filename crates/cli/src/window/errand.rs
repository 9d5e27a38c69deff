//! Something that takes its time, done by a thread, so that the window's one loop
//! never waits for it.

use fullstop::front::on_thread;
use fullstop::{Error, Result, blocking};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};

/// Readable when it is done.
pub struct Errand<T> {
    done: UnixStream,
    result: Receiver<Result<T>>,
}

impl<T: Send + 'static> Errand<T> {
    /// Signals are held back in whoever sends it, and so in the thread.
    pub fn send<F: Future<Output = Result<T>>>(
        work: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<Errand<T>> {
        let (done, doing) = UnixStream::pair()?;
        let (tell, result) = channel();
        on_thread(move || {
            let _ = tell.send(blocking::wait(async { work().await }));
            drop(doing);
        });
        Ok(Errand { done, result })
    }

    /// What came of it, if it is done.
    pub fn result(&self) -> Option<Result<T>> {
        use std::sync::mpsc::TryRecvError::{Disconnected, Empty};
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(Empty) => None,
            Err(Disconnected) => Some(Err(Error::Unfinished)),
        }
    }
}

impl<T> AsFd for Errand<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}
