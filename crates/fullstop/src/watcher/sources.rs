//! What the watcher looks at: journals, and directories.

use super::directories::Directories;
use super::inotify::Inotify;
use super::journal::Journal;
use fullstop_cage::os::FileChanges;
use fullstop_core::id::Id;
use fullstop_store::Store;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What a follower is woken by.
#[derive(Clone, Debug)]
pub(super) enum Key {
    /// The notices of a run, in the journal of this state directory.
    Run(PathBuf, Id),
    Journal(PathBuf),
    Directory(PathBuf),
}

#[derive(Debug, Default)]
pub(super) struct Sources {
    journals: HashMap<PathBuf, Journal>,
    /// Apart from that of the directories, so that a nap for one keeps the other awake.
    inotify: Inotify,
    directories: Directories,
}

/// What to wait for before the next look.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub changes: Vec<Arc<FileChanges>>,
    pub patience: Option<Duration>,
}

impl Sources {
    pub fn add_to_journal(&mut self, store: &Arc<Store>, id: Option<&Id>) -> watch::Receiver<()> {
        let new = || Journal::new(Arc::clone(store));
        self.journals.entry(store.path().to_owned()).or_insert_with(new).waker(id).add()
    }

    pub fn add_to_directory(&mut self, path: &Path) -> watch::Receiver<()> {
        self.directories.add(path)
    }

    /// A follower has left.
    pub fn remove(&mut self, key: &Key) {
        let (path, id) = match key {
            Key::Run(path, id) => (path, Some(id)),
            Key::Journal(path) => (path, None),
            Key::Directory(path) => return self.directories.remove(path),
        };
        let Some(journal) = self.journals.get_mut(path) else { return };
        journal.leave(id);
        if journal.is_unused() {
            journal.forget(&self.inotify);
            self.journals.remove(path);
        }
    }

    #[cfg(test)]
    pub fn has_journal(&self, path: &Path) -> bool {
        self.journals.contains_key(path)
    }

    pub fn is_unused(&self) -> bool {
        self.journals.is_empty() && self.directories.is_unused()
    }

    /// Wakes the followers of what has changed. Returns what to wait for.
    pub fn look(&mut self) -> Waits {
        let mut waits = Waits::default();
        let changed = self.inotify.take();
        let mut is_napping = false;
        for journal in self.journals.values_mut() {
            waits.look_again(journal.look(&changed, &mut self.inotify));
            is_napping |= journal.is_napping();
        }
        if !is_napping {
            waits.changes.extend(self.inotify.changes());
        }
        self.directories.look(&mut waits);
        waits
    }

    /// Whether it is known by now what wakes the followers of this source.
    pub fn has_begun(&self, key: &Key) -> bool {
        match key {
            Key::Run(path, _) | Key::Journal(path) => {
                self.journals.get(path).is_none_or(Journal::has_begun)
            }
            Key::Directory(path) => self.directories.has_begun(path),
        }
    }

    /// Why nothing wakes the followers of this source.
    pub fn why_polling(&self, key: &Key) -> Option<String> {
        match key {
            Key::Run(path, _) | Key::Journal(path) => {
                self.journals.get(path)?.why_polling(&self.inotify)
            }
            Key::Directory(path) => self.directories.why_polling(path),
        }
    }
}

impl Waits {
    pub fn look_again(&mut self, at: Option<Instant>) {
        let patience = at.map(|at| at.saturating_duration_since(Instant::now()));
        self.patience = match (self.patience, patience) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}
