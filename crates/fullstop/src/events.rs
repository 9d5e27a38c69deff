//! The events of all runs, in one stream.
//!
//! A follower reads the event files of all runs once. After that it waits for the journal,
//! and reads only the files of the runs that a notice names, so that following costs
//! nothing while nothing happens, however many runs have ended.

use crate::error::{Error, Result};
use crate::readable::readable;
use crate::runs::Runs;
use fullstop_cage::linux::FileChanges;
use fullstop_core::id::Id;
use fullstop_protocol::Event;
use fullstop_store::{JournalReader, News};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// In a storm of notices, the follower waits this long between two looks.
const NAP: Duration = Duration::from_millis(10);
/// How often the journal is read where the kernel does not tell that it has grown.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A notice is lost if its writer is killed between event and notice, or if the disk is full.
/// So the event files of the unfinished runs are read this often, with or without a notice.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);

/// Follows the events of runs, including runs that are born later.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-events-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, EventKind, blocking};
///
/// let mut events = runs.follow_events(&[]);
/// let run = blocking::start(Command::new("true").runs(&runs))?;
/// let mut seen = Vec::new();
/// while !matches!(seen.last(), Some(EventKind::Ended { .. })) {
///     seen.extend(blocking::wait(events.next())?.into_iter().map(|event| event.kind));
/// }
/// assert!(matches!(seen[0], EventKind::Started { .. }));
/// # blocking::wait(run.wait())?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Events {
    runs: Runs,
    /// The runs whose events are wanted; if empty, all runs.
    only: Vec<Id>,
    journal: Result<JournalReader>,
    /// The inotify on the journal.
    changes: io::Result<FileChanges>,
    /// How far the events of each run were read.
    offsets: HashMap<Id, u64>,
    /// The runs that may have events without a notice: those that were unfinished when all
    /// unfinished runs were last read, and those that a notice has named since.
    unfinished: BTreeSet<Id>,
    /// When the last look was; `None` before the first.
    looked: Option<Instant>,
    /// The last look found notices. More may follow, and are read together after a nap.
    napping: bool,
    /// When the event files of all unfinished runs were last read.
    looked_at_all: Instant,
}

impl Runs {
    /// The events of these runs until now, or of all runs if none is named, in order of
    /// time.
    pub fn past_events(&self, only: &[Id]) -> Result<Vec<Event>> {
        let ids = if only.is_empty() { self.ids()? } else { only.to_vec() };
        Ok(read(self, &mut HashMap::new(), &ids))
    }

    /// The events of these runs, or of all runs if none is named: those until now, and then
    /// each as it happens.
    pub fn follow_events(&self, only: &[Id]) -> Events {
        let journal = self.store().journal().map_err(Into::into);
        let changes = watch(&journal);
        Events {
            runs: self.clone(),
            only: only.to_vec(),
            journal,
            changes,
            offsets: HashMap::new(),
            unfinished: BTreeSet::new(),
            looked: None,
            napping: false,
            looked_at_all: Instant::now(),
        }
    }
}

impl Events {
    /// Waits for new events. The first call returns those until now.
    pub async fn next(&mut self) -> Result<Vec<Event>> {
        loop {
            let new = self.look()?;
            if !new.is_empty() {
                return Ok(new);
            }
            let patience = self.patience();
            let changed = async {
                match self.changes() {
                    Some(changes) if readable(changes).await.is_ok() => {}
                    _ => tokio::time::sleep(patience).await,
                }
            };
            // After a timeout as after a change, the next look finds what is new.
            let _ = tokio::time::timeout(patience, changed).await;
        }
    }

    /// As [`Events::next`], without waiting. When it returns nothing, wait until
    /// [`Events::changes`] is readable, but no longer than [`Events::patience`].
    pub fn look(&mut self) -> Result<Vec<Event>> {
        let is_first = self.looked.is_none();
        if self.napping && !self.patience().is_zero() {
            return Ok(Vec::new());
        }
        let ids = if is_first { self.all()? } else { self.changed_runs()? };
        self.looked = Some(Instant::now());
        Ok(read(&self.runs, &mut self.offsets, &ids))
    }

    /// A descriptor that is readable when there may be new events. `None` in a nap between
    /// two looks, and where there is no inotify: then wait for [`Events::patience`] alone.
    pub fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().ok().filter(|_| !self.napping).map(FileChanges::as_fd)
    }

    /// After what time to look again without a change.
    pub fn patience(&self) -> Duration {
        let every = match &self.changes {
            Ok(_) if self.napping => NAP,
            Ok(_) => return LOOK_ANYWAY.saturating_sub(self.looked_at_all.elapsed()),
            Err(_) => LOOK_EVERY,
        };
        self.looked.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()))
    }

    /// Why the journal is read four times a second: there is no inotify to wait for.
    pub fn why_looking(&self) -> Option<&io::Error> {
        self.changes.as_ref().err()
    }

    /// Every run whose events are wanted.
    fn all(&mut self) -> Result<Vec<Id>> {
        self.looked_at_all = Instant::now();
        self.unfinished = self.runs.live_ids()?.into_iter().collect();
        if self.only.is_empty() { self.runs.ids() } else { Ok(self.only.clone()) }
    }

    /// The runs that may have new events.
    fn changed_runs(&mut self) -> Result<Vec<Id>> {
        let (mut ids, missed) = self.read_journal();
        self.napping = missed || !ids.is_empty();
        if missed {
            return self.all();
        }
        self.unfinished.extend(ids.iter().cloned());
        if self.journal.is_err() || self.looked_at_all.elapsed() >= LOOK_ANYWAY {
            self.looked_at_all = Instant::now();
            let live: BTreeSet<Id> = self.runs.live_ids()?.into_iter().collect();
            ids.extend(live.iter().cloned());
            ids.append(&mut std::mem::replace(&mut self.unfinished, live));
        }
        ids.retain(|id| self.only.is_empty() || self.only.contains(id));
        Ok(ids.into_iter().collect())
    }

    /// The runs that new notices name, and whether notices of other runs were missed.
    fn read_journal(&mut self) -> (BTreeSet<Id>, bool) {
        if let Ok(changes) = &self.changes {
            changes.drain();
        }
        let Ok(journal) = &mut self.journal else { return (BTreeSet::new(), false) };
        let unread = News { missed: true, ..News::default() };
        let news = journal.read().unwrap_or(unread);
        let replaced = journal.reopen_if_replaced().unwrap_or_default();
        if replaced {
            self.changes = watch(&self.journal);
        }
        let ids = news.notices.into_iter().map(|notice| notice.id).collect();
        (ids, news.missed || replaced)
    }
}

/// An inotify that tells when the journal grows.
fn watch(journal: &Result<JournalReader>) -> io::Result<FileChanges> {
    let journal = journal.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
    let changes = FileChanges::new()?;
    changes.watch(&journal.path())?;
    Ok(changes)
}

/// Reads the new events of these runs, and sorts them by time.
fn read(runs: &Runs, offsets: &mut HashMap<Id, u64>, ids: &[Id]) -> Vec<Event> {
    let mut new = Vec::new();
    for id in ids {
        let from = offsets.get(id).copied().unwrap_or_default();
        match runs.events(id, from) {
            Ok((events, next)) => {
                new.extend(events);
                offsets.insert(id.clone(), next);
            }
            // A run that was removed meanwhile has no more events.
            Err(Error::Store(error)) if error.is_missing() => drop(offsets.remove(id)),
            // What cannot be read now is read from there on next time.
            Err(_) => {}
        }
    }
    new.sort_by_key(|event| event.at);
    new
}

#[cfg(test)]
mod tests;
