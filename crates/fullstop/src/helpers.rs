//! A few threads that read files for those who must not wait: nothing in this library blocks
//! in a poll.

use crate::error::{Error, Result};
use crate::orders::hear_no_signals;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::oneshot;

/// So many files are read at a time.
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
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static HELPERS: LazyLock<Helpers> = LazyLock::new(Helpers::default);

impl Helpers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work on a thread; here, if there is none and none can be made.
    fn add(&'static self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            return self.more.notify_one();
        }
        if state.threads < MOST
            && Builder::new().name("fullstop-help".to_owned()).spawn(|| self.serve()).is_ok()
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
        hear_no_signals();
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
    let (tell, told) = oneshot::channel();
    HELPERS.add(Box::new(move || drop(tell.send(work()))));
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
            HELPERS.add(Box::new(move || {
                work(&mut value);
                drop(tell.send(value));
            }));
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
mod tests {
    use super::*;
    use crate::blocking::wait;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread::sleep;
    use tokio::task::JoinSet;

    #[test]
    fn much_work_is_done_by_a_few_threads() {
        static AT_WORK: AtomicUsize = AtomicUsize::new(0);
        let most = wait(async {
            let mut all = JoinSet::new();
            for _ in 0..100 {
                all.spawn(help(|| {
                    let at_work = AT_WORK.fetch_add(1, Ordering::SeqCst) + 1;
                    sleep(Duration::from_millis(1));
                    AT_WORK.fetch_sub(1, Ordering::SeqCst);
                    at_work
                }));
            }
            let mut most = 0;
            while let Some(at_work) = all.join_next().await {
                most = most.max(at_work.expect("no panic")?);
            }
            Ok(most)
        });
        assert!(most.is_ok_and(|most| (1..=MOST).contains(&most)));
    }

    #[test]
    fn work_that_panics_is_told_and_harms_no_other() {
        for _ in 0..MOST * 2 {
            assert!(wait(help(|| panic!("as it should"))).is_err());
        }
        assert_eq!(wait(help(|| 7)).ok(), Some(7));
    }

    #[test]
    fn what_was_begun_is_not_lost_with_the_future_that_waited_for_it() {
        let mut value = Helped::Here(Vec::new());
        let (go, gone) = mpsc::channel::<()>();
        let gone = Arc::new(Mutex::new(gone));
        let done = wait(async {
            let slow = value.work(move |value| {
                let _ = gone.lock().map(|gone| gone.recv());
                value.push(1);
            });
            let cut = tokio::time::timeout(Duration::from_millis(1), slow).await;
            assert!(cut.is_err(), "it was done without leave");
            drop(go);
            Ok(value.work(|value| value.push(2)).await?.clone())
        });
        assert_eq!(done.ok(), Some(vec![1, 2]));
    }
}
