//! The events of all runs, in one stream.
//!
//! A follower reads the event files of all runs once. After that it waits for the journal,
//! and reads only the files of the runs that a notice names, so that following costs
//! nothing while nothing happens, however many runs have ended.

use crate::error::{Error, Result};
use crate::helpers::Helped;
use crate::rounds::{self, Rounds};
use crate::runs::Runs;
use crate::tail::Tail;
use crate::watcher::Follower;
use fullstop_core::id::Id;
use fullstop_protocol::Event;
use std::collections::{BTreeSet, HashMap};
use tokio::time::timeout;

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
/// # drop(events); // It makes the journal anew where that is removed.
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Events {
    follower: Follower,
    looker: Helped<Looker>,
    has_looked: bool,
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
        Events {
            follower: Follower::of_journal(self.store()),
            looker: Helped::Here(Looker::new(self.clone(), only.to_vec())),
            has_looked: false,
        }
    }
}

impl Events {
    /// Only those behind this number. An event has its number in its run, through all
    /// generations: so this goes on with one run where another program was. To be asked for
    /// before anything is read.
    #[must_use]
    pub fn after(mut self, number: u64) -> Events {
        if let Helped::Here(looker) = &mut self.looker {
            looker.after = number;
        }
        self
    }

    /// Waits for new events. The first call returns those until now, of which there may be
    /// none. A future that is dropped loses none.
    pub async fn next(&mut self) -> Result<Vec<Event>> {
        if !self.has_looked {
            self.follower.begun().await;
        }
        loop {
            let looker = self.looker.work(Looker::look).await?;
            let new = std::mem::take(&mut looker.new);
            if let Some(error) = looker.error.take() {
                return Err(error);
            }
            if !std::mem::replace(&mut self.has_looked, true) || !new.is_empty() {
                return Ok(new);
            }
            // After a timeout as after a change, the next look finds what is new.
            let _ = timeout(rounds::EVERY, self.follower.changed()).await;
        }
    }

    /// Why it looks four times a second instead of being woken, if it does.
    pub fn why_looking(&self) -> Option<String> {
        self.follower.why_looking()
    }
}

/// Reads the events of the runs that notices name.
#[derive(Debug)]
struct Looker {
    runs: Runs,
    /// The runs whose events are wanted; if empty, all runs.
    only: Vec<Id>,
    /// Events up to this number are not wanted.
    after: u64,
    journal: Tail,
    /// How far the events of each run were read.
    offsets: HashMap<Id, u64>,
    /// The runs that may have events without a notice: those that were unfinished when they
    /// were last read, and those that a notice has named since.
    unfinished: BTreeSet<Id>,
    /// Nothing, before the first look.
    rounds: Option<Rounds>,
    /// What is to be told.
    new: Vec<Event>,
    error: Option<Error>,
}

impl Looker {
    fn new(runs: Runs, only: Vec<Id>) -> Looker {
        Looker {
            only,
            after: 0,
            journal: Tail::new(runs.store()),
            runs,
            offsets: HashMap::new(),
            unfinished: BTreeSet::new(),
            rounds: None,
            new: Vec::new(),
            error: None,
        }
    }

    fn look(&mut self) {
        match self.ids() {
            Ok(ids) => {
                let mut new = read(&self.runs, &mut self.offsets, &ids);
                new.retain(|event| event.number > self.after);
                self.new.append(&mut new);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// The runs that may have new events.
    fn ids(&mut self) -> Result<Vec<Id>> {
        let Some(rounds) = &mut self.rounds else {
            // Opened before the first look: what happens after it has a notice.
            self.journal.open();
            return self.all();
        };
        let Some(notices) = self.journal.read() else { return self.all() };
        let mut ids: BTreeSet<Id> = notices.into_iter().map(|notice| notice.id).collect();
        self.unfinished.extend(ids.iter().cloned());
        let is_blind = !self.journal.is_open();
        if is_blind || rounds.is_due() {
            let live: BTreeSet<Id> = self.runs.live_ids()?.into_iter().collect();
            self.unfinished.extend(live.iter().cloned());
            let unfinished = &self.unfinished;
            let turn =
                if is_blind { Vec::from_iter(unfinished.clone()) } else { rounds.next(unfinished) };
            for id in turn.iter().filter(|id| !live.contains(id)) {
                // It is read for the last time.
                self.unfinished.remove(id);
            }
            ids.extend(turn);
        }
        ids.retain(|id| self.only.is_empty() || self.only.contains(id));
        Ok(ids.into_iter().collect())
    }

    /// Every run whose events are wanted.
    fn all(&mut self) -> Result<Vec<Id>> {
        self.rounds = Some(Rounds::new());
        self.unfinished = self.runs.live_ids()?.into_iter().collect();
        if self.only.is_empty() { self.runs.ids() } else { Ok(self.only.clone()) }
    }
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
