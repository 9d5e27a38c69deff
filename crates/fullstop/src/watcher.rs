//! Waiting for changes of runs, for all followers in this process.
//!
//! One thread waits for the kernel to tell that a journal or a log has grown, and wakes the
//! followers that it is about. So a thousand followers cost two inotifys and one thread, in
//! whatever runtimes they wait. The thread ends with the last follower. Where no thread can be
//! made, a follower that waits looks in its place.

mod directories;
mod inotify;
mod journal;
mod sources;
mod waker;

use crate::owner::Owner;
use fullstop_cage::os::Bell;
use fullstop_core::id::Id;
use fullstop_store::Store;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sources::{Key, Sources, Waits};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often is looked where nothing wakes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The thread calls nothing that is deep.
const STACK: usize = 128 * 1024;

static WATCHER: LazyLock<Watcher> = LazyLock::new(Watcher::default);

#[derive(Debug, Default)]
struct Watcher {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    owner: Owner,
    sources: Sources,
    /// Wakes the thread when there is another follower, or none any more. There is a thread
    /// exactly while there is a bell.
    bell: Option<Arc<Bell>>,
}

impl Watcher {
    /// For the thread, and for a follower that was made in this process. A panic elsewhere leaves
    /// nothing here half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_in_any_process(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        // A copy of the process that has made the thread has none, and shares its inotifys.
        if !state.owner.is_this_process() {
            *state = State { owner: Owner::this_process(), ..State::default() };
        }
        state
    }

    fn follow(
        &'static self,
        key: Key,
        add: impl FnOnce(&mut Sources) -> watch::Receiver<()>,
    ) -> Follower {
        let mut state = self.lock_in_any_process();
        let changed = add(&mut state.sources);
        match &state.bell {
            Some(bell) => bell.ring(),
            None => state.bell = self.start(),
        }
        Follower { watcher: self, owner: state.owner, key, changed }
    }

    /// Nothing, if there can be no thread.
    fn start(&'static self) -> Option<Arc<Bell>> {
        let bell = Arc::new(Bell::new().ok()?);
        let theirs = Arc::clone(&bell);
        let thread = Builder::new().name("fullstop-watch".to_owned()).stack_size(STACK);
        crate::thread::start(thread, move || self.serve(&theirs)).ok()?;
        Some(bell)
    }

    fn serve(&self, bell: &Bell) {
        loop {
            bell.silence();
            let waits = {
                let mut state = self.lock();
                if state.sources.is_unused() {
                    state.bell = None;
                    let unused = std::mem::take(&mut state.sources);
                    drop(state);
                    // To let go of an inotify takes the kernel ten milliseconds.
                    return drop(unused);
                }
                state.sources.look()
            };
            wait(bell, &waits);
        }
    }
}

fn wait(bell: &Bell, waits: &Waits) {
    let mut fds = vec![PollFd::new(bell, PollFlags::IN)];
    fds.extend(waits.changes.iter().map(|it| PollFd::new(it.as_ref(), PollFlags::IN)));
    let patience = waits.patience.and_then(|patience| Timespec::try_from(patience).ok());
    // After an interruption, as after a wake-up, the next look finds what is new.
    let _ = poll(&mut fds, patience.as_ref());
}

/// A handle that is woken by changes.
#[derive(Debug)]
pub(crate) struct Follower {
    watcher: &'static Watcher,
    owner: Owner,
    key: Key,
    changed: watch::Receiver<()>,
}

impl Follower {
    /// Is woken by the notices of one run. The first wake-up may come without one: from then
    /// on no change is missed, but for one whose writer is killed before it has told of it.
    pub fn of_run(store: &Arc<Store>, id: &Id) -> Follower {
        let key = Key::Run(store.path().to_owned(), id.clone());
        WATCHER.follow(key, |sources| sources.add_to_journal(store, Some(id)))
    }

    /// Is woken whenever the journal has grown, or is another; the first time as above.
    pub fn of_journal(store: &Arc<Store>) -> Follower {
        let key = Key::Journal(store.path().to_owned());
        WATCHER.follow(key, |sources| sources.add_to_journal(store, None))
    }

    /// Is woken whenever something is written in a directory; the first time as above.
    pub fn of_directory(path: &Path) -> Follower {
        let add = |sources: &mut Sources| sources.add_to_directory(path);
        WATCHER.follow(Key::Directory(path.to_owned()), add)
    }

    /// Waits for the next change; one that has come already is not waited for.
    pub async fn changed(&mut self) {
        // What wakes it does so in the process that it was made in.
        if !self.owner.is_this_process() {
            return sleep(LOOK_EVERY).await;
        }
        while self.is_without_thread() {
            if self.changed.has_changed().unwrap_or(true) {
                break;
            }
            sleep(LOOK_EVERY).await;
            self.watcher.lock().sources.look();
        }
        // The sender lives as long as there is a follower.
        let _ = self.changed.changed().await;
    }

    /// Waits until it is known what will wake it, or that nothing will.
    pub async fn begun(&mut self) {
        while !self.has_begun() {
            self.changed().await;
        }
    }

    fn has_begun(&self) -> bool {
        if !self.owner.is_this_process() {
            return true;
        }
        let mut state = self.watcher.lock();
        if state.bell.is_none() {
            state.sources.look();
        }
        state.sources.has_begun(&self.key)
    }

    fn is_without_thread(&self) -> bool {
        self.watcher.lock().bell.is_none()
    }

    /// Why it is looked four times a second: nothing tells of changes.
    pub fn why_polling(&self) -> Option<String> {
        if !self.owner.is_this_process() {
            return Some("this process is a copy of the one that began to follow".to_owned());
        }
        if self.is_without_thread() {
            return Some("no thread can be made to wait for changes".to_owned());
        }
        self.watcher.lock().sources.why_polling(&self.key)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.owner.is_this_process() {
            return;
        }
        let mut state = self.watcher.lock();
        state.sources.remove(&self.key);
        if state.sources.is_unused() {
            match &state.bell {
                Some(bell) => bell.ring(),
                None => state.sources = Sources::default(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
