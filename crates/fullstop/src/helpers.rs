//! A few threads that read files for futures, which must not wait: nothing in this library
//! blocks in a poll.
//!
//! A caller of [`crate::blocking::wait`] waits on a thread of its own: there the work is done in
//! place, and no thread is made.

use crate::error::{Error, Result};
use crate::owner::Owner;
use crate::thread;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::oneshot;

/// So many pieces of work are done at a time, of each kind.
const MOST: usize = 4;
/// How long a thread without work waits for some.
const LINGER: Duration = Duration::from_secs(2);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Helpers {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    owner: Owner,
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

/// For what reads a few files.
static HELPERS: LazyLock<Helpers> = LazyLock::new(Helpers::default);
/// For what may take seconds: sweeps, removals, a look at the whole machine. No list waits
/// behind such work.
static LONG: LazyLock<Helpers> = LazyLock::new(Helpers::default);

thread_local! {
    static IN_PLACE: Cell<bool> = const { Cell::new(false) };
}

/// While this lives, what this thread asks helpers for is done on this thread.
pub(crate) struct InPlace {
    before: bool,
}

impl InPlace {
    pub fn begin() -> InPlace {
        InPlace { before: IN_PLACE.replace(true) }
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        IN_PLACE.set(self.before);
    }
}

impl Helpers {
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // In a copy of the process that has made the threads there is none, and what waited for
        // them is done by the original.
        if !state.owner.is_this_process() {
            *state = State { owner: Owner::this_process(), ..State::default() };
        }
        state
    }

    /// Does the work on a thread; here, if there is none and none can be made.
    fn add(&'static self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            return self.more.notify_one();
        }
        if state.threads < MOST
            && thread::start(Builder::new().name("fullstop-help".to_owned()), || self.serve())
                .is_ok()
        {
            state.threads += 1;
        } else if state.threads == 0 {
            let job = state.jobs.pop_front();
            drop(state);
            if let Some(job) = job {
                job();
            }
        }
    }

    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // Who waits for it is told by the end of the channel.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (woken, timeout) = self
                .more
                .wait_timeout_while(state, LINGER, |state| state.jobs.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// What the work came to.
pub(crate) async fn help<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    done_by(&HELPERS, work).await
}

/// What work on a thing came to that reads a few files.
pub(crate) async fn help_with<S: Send + 'static, T: Send + 'static>(
    thing: S,
    work: impl FnOnce(&S) -> Result<T> + Send + 'static,
) -> Result<T> {
    done_by(&HELPERS, move || work(&thing)).await?
}

/// What work on a thing came to that may take seconds.
pub(crate) async fn help_long<S: Send + 'static, T: Send + 'static>(
    thing: S,
    work: impl FnOnce(&S) -> Result<T> + Send + 'static,
) -> Result<T> {
    done_by(&LONG, move || work(&thing)).await?
}

async fn done_by<T: Send + 'static>(
    helpers: &'static Helpers,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if IN_PLACE.get() {
        return catch_unwind(AssertUnwindSafe(work)).map_err(|_| Error::Unfinished);
    }
    let (tell, told) = oneshot::channel();
    helpers.add(Box::new(move || drop(tell.send(work()))));
    told.await.map_err(|_| Error::Unfinished)
}

/// A value that helpers work on. A future that is dropped while it waits for them loses
/// nothing: the next one waits for the same work first.
#[derive(Debug)]
pub(crate) enum Helped<T> {
    Here(T),
    Away(oneshot::Receiver<T>),
}

impl<T: Send + 'static> Helped<T> {
    /// Has the work done, once all before it is done.
    pub async fn work(&mut self, work: impl FnOnce(&mut T) + Send + 'static) -> Result<&mut T> {
        self.back().await?;
        let (tell, told) = oneshot::channel();
        if let Helped::Here(mut value) = std::mem::replace(self, Helped::Away(told)) {
            let work = move || {
                work(&mut value);
                drop(tell.send(value));
            };
            if IN_PLACE.get() {
                let _ = catch_unwind(AssertUnwindSafe(work));
            } else {
                HELPERS.add(Box::new(work));
            }
        }
        self.back().await
    }

    /// The value, once all work on it is done.
    pub async fn back(&mut self) -> Result<&mut T> {
        if let Helped::Away(told) = self {
            *self = Helped::Here(told.await.map_err(|_| Error::Unfinished)?);
        }
        match self {
            Helped::Here(value) => Ok(value),
            Helped::Away(_) => Err(Error::Unfinished),
        }
    }
}

#[cfg(test)]
mod tests;
