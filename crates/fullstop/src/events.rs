//! The events of all runs, in one stream.
//!
//! A follower reads the event files of all runs once. After that it waits for the journal,
//! and reads only the files of the runs that a notice names, so that following costs
//! nothing while nothing happens, however many runs have ended.

use crate::error::{Error, Result};
use crate::files::StateFiles;
use crate::helpers::{Helped, help_with};
use crate::rounds::{self, Rounds};
use crate::runs::Runs;
use crate::stream::{Next, Streamed};
use crate::tail::Tail;
use crate::watcher::Follower;
use fullstop_core::id::Id;
use fullstop_protocol::Event;
use futures_core::Stream;
use std::collections::{BTreeSet, HashMap, VecDeque};
use tokio::time::timeout;

/// Follows the events of runs, including runs that are born later.
///
/// ```
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
/// # let _ = std::fs::remove_dir_all(&dir);
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
    pub async fn past_events(&self, only: &[Id]) -> Result<Vec<Event>> {
        let only = only.to_vec();
        help_with(self.files(), move |files| files.past_events(&only)).await
    }

    /// The events of these runs, or of all runs if none is named: those until now, and then
    /// each as it happens.
    pub fn follow_events(&self, only: &[Id]) -> Events {
        Events {
            follower: Follower::of_journal(self.store()),
            looker: Helped::Here(Looker::new(self, only.to_vec())),
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

    /// The same as a stream of single events, for use with a `StreamExt`. It ends behind an error,
    /// and nowhere else.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event>> + Send + Unpin {
        let source = Singly { events: self, ready: VecDeque::new() };
        Streamed::new(source, |source| source.ready.pop_front(), Singly::next)
    }

    /// Why it polls four times a second instead of being woken, if it does.
    pub fn why_polling(&self) -> Option<String> {
        self.follower.why_polling()
    }
}

/// Events that come together, one by one.
struct Singly {
    events: Events,
    ready: VecDeque<Event>,
}

impl Singly {
    fn next(mut self) -> Next<Singly, Event> {
        Box::pin(async move {
            loop {
                if let Some(event) = self.ready.pop_front() {
                    return (self, Some(Ok(event)));
                }
                match self.events.next().await {
                    Ok(events) => self.ready.extend(events),
                    Err(error) => return (self, Some(Err(error))),
                }
            }
        })
    }
}

/// Reads the events of the runs that notices name.
#[derive(Debug)]
struct Looker {
    files: StateFiles,
    /// The runs whose events are wanted; if empty, all runs.
    only: Vec<Id>,
    /// Events up to this number are not wanted.
    after: u64,
    journal: Tail,
    /// How far the events of each run were read.
    offsets: HashMap<Id, u64>,
    /// The runs that may have events without a notice: they were unfinished when they were last
    /// read, or a notice has named them since.
    unfinished: BTreeSet<Id>,
    /// Nothing, before the first look.
    rounds: Option<Rounds>,
    /// What is to be told.
    new: Vec<Event>,
    error: Option<Error>,
}

impl Looker {
    fn new(runs: &Runs, only: Vec<Id>) -> Looker {
        Looker {
            only,
            after: 0,
            journal: Tail::new(runs.store()),
            files: runs.files(),
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
                let mut new = read(&self.files, &mut self.offsets, &ids);
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
            let live: BTreeSet<Id> = self.files.live_ids()?.into_iter().collect();
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
        self.unfinished = self.files.live_ids()?.into_iter().collect();
        if self.only.is_empty() { self.files.ids() } else { Ok(self.only.clone()) }
    }
}

/// Reads the new events of these runs, and sorts them by time.
pub(crate) fn read(files: &StateFiles, offsets: &mut HashMap<Id, u64>, ids: &[Id]) -> Vec<Event> {
    let mut new = Vec::new();
    for id in ids {
        let from = offsets.get(id).copied().unwrap_or_default();
        match files.events(id, from) {
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
