//! The directories of runs whose output is followed.

use super::inotify::{Changed, Inotify};
use super::waker::Waker;
use super::{LOOK_EVERY, Waits};
use fullstop_cage::os::WatchId;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// However much is written, followers are woken no more often than this.
const NAP: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
pub(super) struct Directories {
    known: HashMap<PathBuf, Directory>,
    /// One directory may be known by two paths.
    watched: BTreeSet<(WatchId, PathBuf)>,
    unwatched: HashSet<PathBuf>,
    inotify: Inotify,
    /// When it was last tried to watch the unwatched ones.
    tried: Option<Instant>,
    /// When changes were last taken.
    taken: Option<Instant>,
}

#[derive(Debug, Default)]
struct Directory {
    waker: Waker,
    watch: Option<WatchId>,
    /// It was tried to watch it.
    has_begun: bool,
}

impl Directories {
    pub fn add(&mut self, path: &Path) -> watch::Receiver<()> {
        if !self.known.contains_key(path) {
            self.unwatched.insert(path.to_owned());
            self.tried = None;
        }
        self.known.entry(path.to_owned()).or_default().waker.add()
    }

    pub fn remove(&mut self, path: &Path) {
        let Some(directory) = self.known.get_mut(path) else { return };
        directory.waker.remove();
        if !directory.waker.is_unused() {
            return;
        }
        let watch = directory.watch;
        self.known.remove(path);
        self.unwatched.remove(path);
        if let Some(watch) = watch {
            self.watched.remove(&(watch, path.to_owned()));
            if self.paths(watch).next().is_none() {
                self.inotify.forget(watch);
            }
        }
    }

    pub fn is_unused(&self) -> bool {
        self.known.is_empty()
    }

    /// Wakes those whose directories have changed, and says what to wait for.
    pub fn look(&mut self, waits: &mut Waits) {
        self.watch(waits);
        let now = Instant::now();
        let nap = self.taken.map(|at| at + NAP).filter(|nap| *nap > now);
        if nap.is_some() {
            waits.look_again(nap);
        } else if self.wake() {
            self.taken = Some(now);
            waits.look_again(Some(now + NAP));
        } else {
            waits.changes.extend(self.inotify.changes());
        }
    }

    /// Watches the directories that are not watched yet. A directory that cannot be watched is
    /// polled by its followers.
    fn watch(&mut self, waits: &mut Waits) {
        let now = Instant::now();
        if self.tried.is_none_or(|at| at + LOOK_EVERY <= now) {
            self.tried = Some(now);
            for path in std::mem::take(&mut self.unwatched) {
                let Some(directory) = self.known.get_mut(&path) else { continue };
                directory.watch = self.inotify.watch(&path);
                directory.has_begun = true;
                // What came before it was watched has woken nobody.
                directory.waker.wake();
                match directory.watch {
                    Some(watch) => drop(self.watched.insert((watch, path))),
                    None => drop(self.unwatched.insert(path)),
                }
            }
        }
        if !self.unwatched.is_empty() {
            waits.look_again(self.tried.map(|at| at + LOOK_EVERY));
        }
    }

    /// Returns whether there was anybody to be woken.
    fn wake(&self) -> bool {
        match self.inotify.take() {
            Changed::These(these) => {
                let known = these.iter().flat_map(|watch| self.paths(*watch));
                known.filter_map(|path| self.known.get(path)).for_each(|it| it.waker.wake());
                !these.is_empty()
            }
            Changed::Any => {
                self.known.values().for_each(|it| it.waker.wake());
                true
            }
        }
    }

    fn paths(&self, watch: WatchId) -> impl Iterator<Item = &PathBuf> {
        let from = self.watched.range((watch, PathBuf::new())..);
        from.take_while(move |(other, _)| *other == watch).map(|(_, path)| path)
    }

    /// Whether it is known what wakes the followers of this one, or that nothing does.
    pub fn has_begun(&self, path: &Path) -> bool {
        self.known.get(path).is_none_or(|directory| directory.has_begun)
    }

    /// Why nothing wakes the followers of this directory.
    pub fn why_polling(&self, path: &Path) -> Option<String> {
        self.inotify.problem().filter(|_| self.unwatched.contains(path))
    }
}
