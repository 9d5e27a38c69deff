//! One journal, and the followers of runs that it wakes.

use super::LOOK_EVERY;
use super::inotify::{Changed, Inotify};
use super::waker::Waker;
use fullstop_cage::os::WatchId;
use fullstop_core::id::Id;
use fullstop_store::{JournalReader, News, Store};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// In a storm of notices, so long is waited between two looks.
const NAP: Duration = Duration::from_millis(10);
/// How long is waited before the journal is watched for the sake of single runs. Most runs
/// end soon after they are asked to, and the death of their guard tells that. To let go of an
/// inotify takes the kernel ten milliseconds.
const WATCH_AFTER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Journal {
    store: Arc<Store>,
    /// Wakes the followers of single runs.
    runs: HashMap<Id, Waker>,
    /// Wakes the followers of all runs.
    all: Waker,
    /// Nothing, while it is not open.
    reader: Option<JournalReader>,
    /// It can neither be read nor made.
    is_missing: bool,
    watch: Option<WatchId>,
    /// It has grown since it was read.
    has_grown: bool,
    begun: Instant,
    looked: Option<Instant>,
}

impl Journal {
    pub fn new(store: Arc<Store>) -> Journal {
        Journal {
            store,
            runs: HashMap::new(),
            all: Waker::default(),
            reader: None,
            is_missing: false,
            watch: None,
            has_grown: false,
            begun: Instant::now(),
            looked: None,
        }
    }

    /// The waker of this run's followers, or of the followers of all runs.
    pub fn waker(&mut self, id: Option<&Id>) -> &mut Waker {
        match id {
            Some(id) => self.runs.entry(id.clone()).or_default(),
            None => &mut self.all,
        }
    }

    /// A follower of this run, or of all runs, has left.
    pub fn leave(&mut self, id: Option<&Id>) {
        self.waker(id).remove();
        self.runs.retain(|_, waker| !waker.is_unused());
    }

    pub fn is_unused(&self) -> bool {
        self.runs.is_empty() && self.all.is_unused()
    }

    /// Looks at what is new, if there is any and it is time to. Returns when to look again.
    pub fn look(&mut self, changed: &Changed, inotify: &mut Inotify) -> Option<Instant> {
        let now = Instant::now();
        self.has_grown |= changed.contains(self.watch);
        let was_open = self.is_open();
        if !was_open && !self.open() {
            self.wake_all();
            return Some(now + LOOK_EVERY);
        }
        let watch_at = self.watch_at();
        if self.watch.is_none() && watch_at <= now {
            self.watch(inotify);
            // What came before it was watched has woken nobody.
            self.has_grown = true;
        }
        // From here on no change is missed.
        if !was_open {
            self.wake_all();
        }
        if self.has_grown {
            match self.looked.map(|at| at + NAP).filter(|nap| *nap > now) {
                Some(nap) => return Some(nap),
                None => self.hear(now, inotify),
            }
        }
        match self.watch {
            Some(_) => None,
            None => Some(self.watch_at()),
        }
    }

    /// When to begin to watch it, or to try again.
    fn watch_at(&self) -> Instant {
        match self.looked {
            Some(looked) => looked + LOOK_EVERY,
            None if self.all.is_unused() => self.begun + WATCH_AFTER,
            None => self.begun,
        }
    }

    /// Opens it, at its end. Where it can neither be read nor made, all look for themselves.
    fn open(&mut self) -> bool {
        self.reader = self.store.journal().ok();
        self.is_missing = self.reader.is_none();
        !self.is_missing
    }

    fn watch(&mut self, inotify: &mut Inotify) {
        let path = self.reader.as_ref().map(JournalReader::path);
        self.watch = path.and_then(|path| inotify.watch(&path));
    }

    /// Wakes those whose runs are told of.
    fn hear(&mut self, now: Instant, inotify: &mut Inotify) {
        self.looked = Some(now);
        self.has_grown = false;
        let Some(reader) = &mut self.reader else { return };
        let unread = News { missed: true, ..News::default() };
        let news = reader.read().unwrap_or(unread);
        let is_other = reader.reopen_if_replaced().unwrap_or_default();
        if is_other {
            self.forget(inotify);
            self.watch(inotify);
        }
        if news.missed || is_other {
            return self.wake_all();
        }
        for notice in &news.notices {
            if let Some(waker) = self.runs.get(&notice.id) {
                waker.wake();
            }
        }
        if !news.notices.is_empty() {
            self.all.wake();
        }
    }

    fn wake_all(&self) {
        self.runs.values().chain([&self.all]).for_each(Waker::wake);
    }

    pub fn forget(&mut self, inotify: &Inotify) {
        if let Some(watch) = self.watch.take() {
            inotify.forget(watch);
        }
    }

    /// Whether it has grown since the last look, and is not to be looked at yet.
    pub fn is_napping(&self) -> bool {
        self.has_grown
    }

    /// Why nothing tells when it grows.
    pub fn why_polling(&self, inotify: &Inotify) -> Option<String> {
        if self.is_missing {
            return Some("there is no journal".to_owned());
        }
        inotify.problem().filter(|_| self.watch.is_none())
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// It is open, or is known to be missing.
    pub fn has_begun(&self) -> bool {
        self.is_open() || self.is_missing
    }
}
