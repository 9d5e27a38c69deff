//! Orders are carried out on a thread of the library's own.
//!
//! The future that the caller holds may be dropped, its executor may be busy or shut down, or
//! be another one than tokio. None of that may take back an order that was given, or leave
//! half of many orders given. So the first poll hands the order over, and later polls only wait
//! for the answer: no file, socket or timer of ours is used in a poll of the caller's.

use crate::error::{Error, Result};
use crate::owner::Owner;
use crate::thread;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How long the thread stays without work, at least.
const LINGER: Duration = Duration::from_secs(2);

struct Thread {
    owner: Owner,
    /// Of its runtime, for as long as the thread takes orders.
    handle: Option<Handle>,
    /// How many orders are not carried out yet.
    at_work: usize,
    /// How many were ever given.
    given: u64,
}

static THREAD: Mutex<Thread> = Mutex::new(Thread::none_of(Owner::NOBODY));

/// In a copy of the process that has made the thread there is none.
fn lock() -> MutexGuard<'static, Thread> {
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if !thread.owner.is_this_process() {
        *thread = Thread::none_of(Owner::this_process());
    }
    thread
}

impl Thread {
    const fn none_of(owner: Owner) -> Thread {
        Thread { owner, handle: None, at_work: 0, given: 0 }
    }

    fn handle(&mut self) -> std::io::Result<Handle> {
        if let Some(handle) = &self.handle {
            return Ok(handle.clone());
        }
        let runtime = Background(Some(Builder::new_current_thread().enable_all().build()?));
        let handle = runtime.handle()?;
        let thread = std::thread::Builder::new().name("fullstop-orders".to_owned());
        thread::start(thread, move || runtime.serve())?;
        Ok(self.handle.insert(handle).clone())
    }
}

/// A runtime that can be dropped anywhere, also in a poll of another one, which is where it is
/// dropped if no thread can be made for it.
struct Background(Option<Runtime>);

impl Background {
    fn handle(&self) -> std::io::Result<Handle> {
        let runtime = self.0.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
        Ok(runtime.handle().clone())
    }

    fn serve(self) {
        let Some(runtime) = &self.0 else { return };
        runtime.block_on(async {
            let mut given = 0;
            loop {
                sleep(LINGER).await;
                let mut thread = lock();
                if thread.at_work == 0 && thread.given == given {
                    thread.handle = None;
                    return;
                }
                given = thread.given;
            }
        });
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Counts an order for as long as it is not carried out.
struct AtWork;

impl AtWork {
    fn begin(thread: &mut Thread) -> AtWork {
        thread.at_work += 1;
        thread.given += 1;
        AtWork
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        lock().at_work -= 1;
    }
}

/// An order that was given. It is carried out, whether this is waited for or dropped.
pub(crate) struct Given<T> {
    task: JoinHandle<Result<T>>,
    owner: Owner,
}

impl<T> Given<T> {
    fn new(task: JoinHandle<Result<T>>) -> Given<T> {
        Given { task, owner: Owner::this_process() }
    }
}

impl<T> Future for Given<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        // Nobody carries it out, or would tell, in a copy of the process that has given it.
        if !self.owner.is_this_process() {
            return Poll::Ready(Err(Error::Unfinished));
        }
        Poll::Ready(match ready!(Pin::new(&mut self.task).poll(context)) {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                // A panic of ours is said, and not passed over.
                Ok(panic) => resume_unwind(panic),
                // Its runtime is shut down.
                Err(_) => Err(Error::Unfinished),
            },
        })
    }
}

/// Gives an order, now. Where no thread can be made (`ulimit -u`, seccomp) it is carried out on
/// the caller's runtime, and goes on for as long as that does.
pub(crate) fn give<T: Send + 'static>(
    order: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<Given<T>> {
    let mut thread = lock();
    let own = match thread.handle() {
        Ok(handle) => handle,
        Err(why) => {
            let cannot = |_| Error::io("make a thread for orders")(why);
            return Handle::try_current().map(|here| Given::new(here.spawn(order))).map_err(cannot);
        }
    };
    // From here on the thread stays until the order is carried out.
    let at_work = AtWork::begin(&mut thread);
    drop(thread);
    Ok(Given::new(own.spawn(async move {
        let _at_work = at_work;
        order.await
    })))
}

/// Gives an order at the first poll, and waits for what comes of it.
pub(crate) async fn carry_out<T: Send + 'static>(
    order: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    give(order)?.await
}

/// As [`carry_out`], of an order that tells how it goes: in the caller's polls.
pub(crate) async fn carry_out_telling<P, T, O>(
    order: impl FnOnce(ProgressSender<P>) -> O,
    mut tell: impl FnMut(P),
) -> Result<T>
where
    T: Send + 'static,
    O: Future<Output = Result<T>> + Send + 'static,
{
    let (sender, mut told) = mpsc::unbounded_channel();
    let given = give(order(ProgressSender(sender)))?;
    // It ends with the order, which holds the other end.
    while let Some(progress) = told.recv().await {
        tell(progress);
    }
    given.await
}

/// Tells how an order goes, to a caller that may have dropped its future by now.
pub(crate) struct ProgressSender<P>(mpsc::UnboundedSender<P>);

impl<P> ProgressSender<P> {
    pub fn send(&self, progress: P) {
        let _ = self.0.send(progress);
    }
}

impl<P> Clone for ProgressSender<P> {
    fn clone(&self) -> ProgressSender<P> {
        ProgressSender(self.0.clone())
    }
}

/// Waits for something on that thread. It is no order: a future that is dropped waits no more.
pub(crate) async fn await_there<T: Send + 'static>(
    what: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    struct Abort<T>(Given<T>);
    impl<T> Drop for Abort<T> {
        fn drop(&mut self) {
            self.0.task.abort();
        }
    }
    let mut waiting = Abort(give(what)?);
    (&mut waiting.0).await
}

#[cfg(test)]
mod tests;
