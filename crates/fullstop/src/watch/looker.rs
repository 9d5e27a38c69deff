//! Looking at what the journal tells of: the records of the runs that notices name.

use super::Change;
use crate::error::Result;
use crate::files::StateFiles;
use crate::filter::Filter;
use crate::rounds::Rounds;
use crate::runs::Runs;
use crate::status::Status;
use crate::tail::Tail;
use fullstop_core::id::Id;
use fullstop_store::{Cursor, Notice};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug)]
pub(super) struct Looker {
    files: StateFiles,
    pub filter: Filter,
    /// Those that have ended are in the snapshots too.
    pub all: bool,
    pub since: Option<Cursor>,
    journal: Tail,
    /// What was told of the runs that may stand differently without a notice.
    known: BTreeMap<Id, ReportedState>,
    /// What is to be told.
    pub changes: VecDeque<Result<Change>>,
    /// Nothing, before the first look.
    rounds: Option<Rounds>,
}

/// How a run stood when it was told of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReportedState {
    generation: u32,
    events: u64,
    state: String,
    step: Option<String>,
}

impl ReportedState {
    fn of(run: &Status) -> ReportedState {
        let (state, step) = (run.state.clone(), run.step.clone());
        ReportedState { generation: run.generation, events: run.events, state, step }
    }
}

impl Looker {
    pub fn new(runs: &Runs) -> Looker {
        Looker {
            journal: Tail::new(runs.store()),
            files: runs.files(),
            filter: Filter::default(),
            all: false,
            since: None,
            known: BTreeMap::new(),
            changes: VecDeque::new(),
            rounds: None,
        }
    }

    /// How far it has looked.
    pub fn cursor(&self) -> Option<Cursor> {
        self.journal.cursor()
    }

    /// Finds out what is to be told.
    pub fn look(&mut self) {
        if let Err(error) = self.try_look() {
            self.changes.push_back(Err(error));
        }
    }

    fn try_look(&mut self) -> Result<()> {
        if self.rounds.is_none() {
            return self.begin();
        }
        match self.read() {
            None => self.snapshot(true),
            Some(named) => {
                for (id, is_removed) in named {
                    self.look_at(&id, is_removed);
                }
                self.look_unasked()
            }
        }
    }

    /// The first look. The journal is opened before: what changes after it has a notice.
    fn begin(&mut self) -> Result<()> {
        self.journal.open();
        let Some(since) = self.since.take() else { return self.snapshot(false) };
        if !self.journal.go_to(&since) {
            return self.snapshot(true);
        }
        // Those that have no notice since stand as they were told before.
        let unfinished = self.list(false)?;
        self.known =
            unfinished.iter().map(|run| (run.id.clone(), ReportedState::of(run))).collect();
        match self.read() {
            None => self.snapshot(true),
            Some(named) => {
                for (id, is_removed) in named {
                    self.known.remove(&id);
                    self.look_at(&id, is_removed);
                }
                Ok(())
            }
        }
    }

    /// The runs that new notices name, and whether each was removed; nothing, if notices of
    /// others were missed.
    fn read(&mut self) -> Option<BTreeMap<Id, bool>> {
        let named = |notice: Notice| (notice.id, notice.state == Notice::REMOVED);
        self.journal.read().map(|notices| notices.into_iter().map(named).collect())
    }

    fn snapshot(&mut self, missed: bool) -> Result<()> {
        let runs = self.list(self.all)?;
        let unfinished = runs.iter().filter(|run| !run.is_over());
        self.known = unfinished.map(|run| (run.id.clone(), ReportedState::of(run))).collect();
        self.changes.push_back(Ok(Change::Snapshot { runs, missed }));
        Ok(())
    }

    fn list(&mut self, all: bool) -> Result<Vec<Status>> {
        self.rounds = Some(Rounds::new());
        let mut runs = self.files.list(all)?;
        runs.retain(|run| self.filter.fits(run));
        Ok(runs)
    }

    /// Looks at runs that no notice names: at all of them, if there can be none.
    fn look_unasked(&mut self) -> Result<()> {
        let is_blind = !self.journal.is_open();
        let Some(rounds) = self.rounds.as_mut().filter(|it| is_blind || it.is_due()) else {
            return Ok(());
        };
        let mut ids: BTreeSet<Id> = self.files.live_ids()?.into_iter().collect();
        ids.extend(self.known.keys().cloned());
        let ids = if is_blind { ids.into_iter().collect() } else { rounds.next(&ids) };
        for id in &ids {
            self.look_at(id, false);
        }
        Ok(())
    }

    /// Tells of a run that stands differently than was told.
    fn look_at(&mut self, id: &Id, is_removed: bool) {
        let Some(run) = Status::of(self.files.store(), id) else {
            // Without a notice it may be about to be born.
            if is_removed || self.known.contains_key(id) {
                self.known.remove(id);
                self.changes.push_back(Ok(Change::Removed { id: id.clone() }));
            }
            return;
        };
        if !self.filter.fits(&run) {
            return;
        }
        let now = ReportedState::of(&run);
        if self.known.get(id) == Some(&now) {
            return;
        }
        if run.is_over() {
            self.known.remove(id);
        } else {
            self.known.insert(id.clone(), now);
        }
        self.changes.push_back(Ok(Change::Run { run: Box::new(run) }));
    }
}

#[cfg(test)]
mod tests;
