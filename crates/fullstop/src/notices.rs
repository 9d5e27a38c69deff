//! Following many runs by one journal: a task that waits reads for all the others.
//!
//! There is no thread and no task of our own behind this. Whoever waits for news of its
//! run reads the journal meanwhile, and wakes those whose runs are told of; when it has
//! what it waited for, the next one reads on.

use crate::any_of::any_of;
use crate::readable::readable;
use fullstop_cage::linux::FileChanges;
use fullstop_core::id::Id;
use fullstop_store::{JournalReader, News, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, sleep};

/// In a storm of notices, so long is waited between two looks.
const NAP: Duration = Duration::from_millis(10);
/// How long is waited before the journal is watched.
const WATCH_AFTER: Duration = Duration::from_millis(100);
/// How often is looked where nothing can be watched.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(crate) struct Notices {
    heard: Mutex<Heard>,
    /// Held by the task that reads the journal for all.
    reading: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Heard {
    journal: Option<Journal>,
    /// The runs that somebody follows.
    followed: HashMap<Id, watch::Sender<()>>,
}

#[derive(Debug)]
struct Journal {
    reader: JournalReader,
    wakes: Wakes,
}

/// What wakes us when the journal grows.
#[derive(Clone, Debug)]
enum Wakes {
    /// Most runs end soon after they are asked to, and the death of their guard tells
    /// that. To let go of an inotify takes the kernel ten milliseconds.
    NotYet,
    Inotify(Arc<FileChanges>),
    /// A user has no more of these.
    Never,
}

impl Notices {
    /// From here on no change of this run is missed, but for one whose writer is killed
    /// before it has told of it.
    pub fn follow(self: &Arc<Self>, store: &Store, id: &Id) -> Follower {
        let mut heard = self.heard();
        let first = heard.followed.is_empty();
        match &mut heard.journal {
            Some(journal) if first => journal.skip(),
            Some(_) => {}
            None => heard.journal = Journal::open(store),
        }
        let sender = heard.followed.entry(id.clone()).or_insert_with(|| watch::channel(()).0);
        let changed = sender.subscribe();
        Follower { notices: self.clone(), id: id.clone(), changed }
    }

    /// A panic elsewhere leaves nothing here half done.
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads for all, until this is dropped.
    async fn read_on(&self) {
        let _turn = self.reading.lock().await;
        let mut last = None;
        loop {
            let wakes = self.heard().hear();
            if let Some(nap) = last.map(|at: Instant| NAP.saturating_sub(at.elapsed())) {
                sleep(nap).await;
            }
            last = Some(Instant::now());
            match wakes {
                Wakes::Inotify(changes) if readable(changes.clone()).await.is_ok() => {
                    changes.drain();
                }
                Wakes::NotYet => {
                    sleep(WATCH_AFTER).await;
                    self.heard().watch();
                }
                _ => sleep(LOOK_EVERY).await,
            }
        }
    }
}

impl Heard {
    /// Wakes those whose runs are told of. Returns what to wait for.
    fn hear(&mut self) -> Wakes {
        let Some(journal) = &mut self.journal else { return Wakes::Never };
        let unread = News { missed: true, ..News::default() };
        let news = journal.reader.read().unwrap_or(unread);
        for notice in news.notices {
            if let Some(follower) = self.followed.get(&notice.id) {
                follower.send_replace(());
            }
        }
        let replaced = journal.reader.reopen_if_replaced().unwrap_or_default();
        if replaced {
            journal.watch();
        }
        if news.missed || replaced {
            self.followed.values().for_each(|follower| follower.send_replace(()));
        }
        journal.wakes.clone()
    }

    fn watch(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.watch();
        }
    }
}

impl Journal {
    /// Nothing, where it can neither be read nor made: then the records are looked at.
    fn open(store: &Store) -> Option<Journal> {
        Some(Journal { reader: store.journal().ok()?, wakes: Wakes::NotYet })
    }

    fn watch(&mut self) {
        let watched = FileChanges::new().and_then(|changes| {
            changes.watch(&self.reader.path())?;
            Ok(changes)
        });
        self.wakes = watched.map_or(Wakes::Never, |changes| Wakes::Inotify(Arc::new(changes)));
    }

    /// Passes over what was told while nobody followed.
    fn skip(&mut self) {
        let _ = self.reader.go_to_end();
        if let Wakes::Never = self.wakes {
            self.wakes = Wakes::NotYet;
        }
    }
}

/// One who follows a run.
#[derive(Debug)]
pub(crate) struct Follower {
    notices: Arc<Notices>,
    id: Id,
    changed: watch::Receiver<()>,
}

impl Follower {
    /// Waits for the next notice of the run; one that has come already is not waited
    /// for.
    pub async fn changed(&mut self) {
        let changed = async {
            let _ = self.changed.changed().await;
        };
        any_of([Box::pin(changed), Box::pin(self.notices.read_on())]).await;
    }

    /// Whether there is nothing to wait for, so that the record must be looked at.
    pub fn is_blind(&self) -> bool {
        self.notices.heard().journal.is_none()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut heard = self.notices.heard();
        let last = |sender: &watch::Sender<()>| sender.receiver_count() <= 1;
        if heard.followed.get(&self.id).is_some_and(last) {
            heard.followed.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests;
