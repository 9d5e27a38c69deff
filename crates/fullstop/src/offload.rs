//! Work that blocks, on a thread of its own.

use crate::error::{Error, Result};
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
    let spawned = Builder::new().spawn(move || {
        if let Some(work) = take(&theirs) {
            work();
        }
    });
    if let (Err(_), Some(work)) = (spawned, take(&work)) {
        work();
    }
}

/// What the work came to.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (tell, told) = oneshot::channel();
    on_thread(move || drop(tell.send(work())));
    told.await.map_err(|_| Error::Unfit("work on a thread was not brought to an end".to_owned()))
}
