//! Work that blocks, on a thread of its own.

use crate::error::{Error, Result};
use crate::thread;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use tokio::sync::oneshot;

/// Does the work on a thread; here, if no thread can be made (`ulimit -u`, seccomp): a
/// slow answer is better than none. The runtime's own pool panics instead, and its
/// shutdown waits for work that may never end.
pub fn on_thread(work: impl FnOnce() + Send + 'static) {
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let theirs = Arc::clone(&work);
    let spawned = thread::start(Builder::new(), move || {
        if let Some(work) = take(&theirs) {
            work();
        }
    });
    // Asked only then: a thread that was made may not have taken its work yet.
    if spawned.is_err()
        && let Some(work) = take(&work)
    {
        work();
    }
}

/// What the work came to.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (tell, told) = oneshot::channel();
    on_thread(move || drop(tell.send(work())));
    told.await.map_err(|_| Error::Unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_brought_to_its_end_however_late_the_thread_comes() {
        for _ in 0..1000 {
            assert_eq!(crate::blocking::wait(offload(|| 7)).ok(), Some(7));
        }
    }
}
