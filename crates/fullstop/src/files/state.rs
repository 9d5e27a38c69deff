//! The files of a state directory, and so of all its runs.

use super::RunFiles;
use crate::error::Result;
use crate::group::Group;
use crate::run::Run;
use crate::runs::{Pruned, Runs};
use crate::status::Status;
use fullstop_core::id::Id;
use fullstop_keeper::sweep::{self, LostElsewhere, Mode, Swept};
use fullstop_protocol::{Event, Whereabouts};
use fullstop_store::{GroupName, Standing, Store, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct StateFiles {
    runs: Runs,
}

impl Runs {
    pub(crate) fn files(&self) -> StateFiles {
        StateFiles { runs: self.clone() }
    }
}

impl StateFiles {
    pub fn store(&self) -> &Store {
        self.runs.store()
    }

    pub fn path(&self) -> &Path {
        self.runs.path()
    }

    pub fn of(&self, id: &Id) -> RunFiles {
        RunFiles::new(&self.runs, id)
    }

    pub fn list(&self, all: bool) -> Result<Vec<Status>> {
        self.list_among(&self.unfinished()?, all)
    }

    pub fn sweep_and_list(&self, all: bool) -> Result<Vec<Status>> {
        let unfinished = self.unfinished()?;
        let listed = self.list_among(&unfinished, all)?;
        let is_lost = |status: &&Status| !status.live && unfinished.contains(&status.id);
        let lost: Vec<Id> = listed.iter().filter(is_lost).map(|status| status.id.clone()).collect();
        sweep::sweep_before_list(self.store(), &lost);
        let lost: BTreeSet<Id> = lost.into_iter().collect();
        let look_again = |status: Status| {
            if !lost.contains(&status.id) {
                return Some(status);
            }
            let over = matches!(self.store().standing(&status.id), Ok(Standing::Over));
            if over && !all { None } else { Status::of(self.store(), &status.id) }
        };
        Ok(listed.into_iter().filter_map(look_again).collect())
    }

    fn unfinished(&self) -> Result<BTreeSet<Id>> {
        Ok(self.store().live()?.into_iter().collect())
    }

    /// The directory of an unfinished run may have been removed: it is listed all the same.
    fn list_among(&self, unfinished: &BTreeSet<Id>, all: bool) -> Result<Vec<Status>> {
        let over = if all { self.store().all()? } else { Vec::new() };
        let mut ids: Vec<&Id> = over.iter().filter(|id| !unfinished.contains(id)).collect();
        ids.extend(unfinished);
        ids.sort_unstable();
        Ok(ids.into_iter().filter_map(|id| Status::of(self.store(), id)).collect())
    }

    pub fn live(&self) -> Result<Vec<Run>> {
        Ok(self.store().live()?.into_iter().map(|id| self.runs.run(id)).collect())
    }

    pub fn ids(&self) -> Result<Vec<Id>> {
        Ok(self.store().all()?)
    }

    pub fn live_ids(&self) -> Result<Vec<Id>> {
        Ok(self.store().live()?)
    }

    pub fn events(&self, id: &Id, from: u64) -> Result<(Vec<Event>, u64)> {
        Ok(self.store().events(id, from)?)
    }

    pub fn past_events(&self, only: &[Id]) -> Result<Vec<Event>> {
        let ids = if only.is_empty() { self.ids()? } else { only.to_vec() };
        Ok(crate::events::read(self, &mut HashMap::new(), &ids))
    }

    pub fn find(&self, word: &str) -> Result<Run> {
        Ok(self.runs.run(self.store().find(word)?))
    }

    pub fn sweep(&self) -> Result<Vec<Swept>> {
        // It lists those again that were taken off the list. What is not tidied now is the
        // next time.
        let _ = self.store().tidy();
        Ok(sweep::sweep(self.store(), Mode::End)?)
    }

    pub fn sweep_dry(&self) -> Result<Vec<Swept>> {
        Ok(sweep::sweep(self.store(), Mode::DryRun)?)
    }

    pub fn lost_elsewhere(&self) -> Result<Vec<LostElsewhere>> {
        let lost = sweep::lost(self.store())?;
        let lost = lost.iter().filter_map(|id| LostElsewhere::look(self.store(), id));
        Ok(lost.filter(|lost| !lost.is_provable()).collect())
    }

    pub fn forget(&self, lost: &Id, dry_run: bool) -> Result<Option<Whereabouts>> {
        let run = self.of(lost);
        match if dry_run { run.is_forgettable() } else { run.forget() } {
            Err(_) if run.is_gone().unwrap_or(false) => Ok(None),
            done => done.map(Some),
        }
    }

    pub fn groups(&self) -> Result<Vec<Group>> {
        let names = GroupName::all(self.store().root())?;
        Ok(names.into_iter().map(|name| Group::new(self.runs.clone(), name)).collect())
    }

    pub fn prune(&self, older: Duration, keep: usize, dry_run: bool) -> Result<Pruned> {
        let now = std::time::SystemTime::now();
        let over = |id: &Id| matches!(self.store().standing(id), Ok(Standing::Over));
        let aged = |id: &Id| {
            // The record is written last, so its age is that of the end.
            let path = self.store().run_path(id);
            let file =
                std::fs::metadata(path.join("record.json")).or_else(|_| std::fs::metadata(path));
            let age = file.and_then(|meta| meta.modified()).ok();
            age.and_then(|at| now.duration_since(at).ok()).is_some_and(|age| age >= older)
        };
        let mut over: Vec<Id> = self.store().all()?.into_iter().filter(over).collect();
        // Processes live in it, whatever is written down: it is named by `unlisted`.
        let living = self.living_cgroups()?;
        let lives = |id: &Id| living.contains_key(id) && self.of(id).check_cgroup().is_err();
        over.retain(|id| !lives(id));
        over.truncate(over.len().saturating_sub(keep));
        over.retain(aged);
        if dry_run {
            return Ok(Pruned { removed: over, ..Pruned::default() });
        }
        let groups = self.groups()?;
        let mut pruned = Pruned::default();
        for id in over {
            match self.store().remove(&id) {
                Ok(()) => pruned.removed.push(id),
                // It was started again, or removed by somebody else, in this moment.
                Err(StoreError::Live { .. }) => {}
                Err(error) if error.is_missing() => {}
                Err(error) => pruned.runs_left.push((id, error.into())),
            }
        }
        for group in groups.iter().rev() {
            if let Err(error) = group.files().forget_if_empty() {
                pruned.groups_left.push((group.name().to_owned(), error));
            }
        }
        // What a killed one has left of a mark is no group, and is tried again next time.
        let _ = GroupName::tidy(self.store().root());
        Ok(pruned)
    }
}

#[cfg(test)]
mod tests;
