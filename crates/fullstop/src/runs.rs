//! All runs of one user.

use crate::command::Command;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::host::own_executable;
use crate::run::Run;
use crate::status::{Status, Usage};
use fullstop_core::id::Id;
use fullstop_keeper::sweep::{self, Elsewhere, Mode, Swept};
use fullstop_protocol::{Event, LONGEST_BY, Whereabouts};
use fullstop_store::{GroupName, Standing, Store, StoreError};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The runs that are written down in one directory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-runs-{}", std::process::id()));
/// let runs = fullstop::Runs::at(&dir)?;
/// assert!(runs.list(true)?.is_empty());
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Runs {
    store: Arc<Store>,
    keeper: Option<PathBuf>,
    /// On whose behalf requests come through these.
    by: Option<Arc<str>>,
}

impl Runs {
    /// Where they usually are: $FULLSTOP_DIR, or below $XDG_STATE_HOME.
    pub fn open() -> Result<Runs> {
        Ok(Runs::of(Store::open()?))
    }

    /// In this directory, which is made if need be.
    pub fn at(path: &Path) -> Result<Runs> {
        Ok(Runs::of(Store::at(path)?))
    }

    fn of(store: Store) -> Runs {
        Runs { store: Arc::new(store), keeper: None, by: None }
    }

    /// The executable to be the keeper of runs that are begun here: a `fullstop`
    /// binary, or any program that calls [`crate::init`].
    #[must_use]
    pub fn with_keeper(mut self, executable: &Path) -> Runs {
        self.keeper = Some(executable.to_owned());
        self
    }

    /// The same runs, for somebody else: every request through them, and through what is found
    /// or begun with them, says that it comes on behalf of `whom` (a user of a dashboard, an
    /// agent). Record and report of a run show who asked for its end by it, beside what the
    /// kernel tells of this process; it is not verified. At most its first 256 bytes are said.
    ///
    /// ```standalone_crate
    /// # fullstop::init();
    /// # let dir = std::env::temp_dir().join(format!("fullstop-doc-by-{}", std::process::id()));
    /// # let runs = fullstop::Runs::at(&dir)?;
    /// use fullstop::{Command, blocking};
    ///
    /// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs.on_behalf_of("ann")))?;
    /// let report = blocking::wait(run.stop())?;
    /// assert_eq!(report.asked.and_then(|asker| asker.by).as_deref(), Some("ann"));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_behalf_of(&self, whom: &str) -> Runs {
        let whom = &whom[..whom.floor_char_boundary(LONGEST_BY)];
        Runs { by: Some(whom.into()), ..self.clone() }
    }

    pub(crate) fn by(&self) -> Option<&str> {
        self.by.as_deref()
    }

    pub(crate) fn keeper(&self) -> Result<PathBuf> {
        self.keeper.clone().map_or_else(own_executable, Ok)
    }

    /// A command whose run is written down here.
    pub fn command(&self, program: impl Into<OsString>) -> Command {
        Command::new(program).runs(self)
    }

    pub fn path(&self) -> &Path {
        self.store.path()
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How the unfinished ones stand, or all of them, oldest first. A record that
    /// cannot be read is listed as that, and hides no other.
    pub fn list(&self, all: bool) -> Result<Vec<Status>> {
        self.list_among(&self.unfinished()?, all)
    }

    /// As [`Runs::list`], after a sweep in passing. Each run is looked at once, and again
    /// only if nobody looks after it.
    pub fn list_swept(&self, all: bool) -> Result<Vec<Status>> {
        let unfinished = self.unfinished()?;
        let listed = self.list_among(&unfinished, all)?;
        let is_lost = |status: &&Status| !status.live && unfinished.contains(&status.id);
        let lost: Vec<Id> = listed.iter().filter(is_lost).map(|status| status.id.clone()).collect();
        sweep::sweep_before_list(&self.store, &lost);
        let lost: BTreeSet<Id> = lost.into_iter().collect();
        let look_again = |status: Status| {
            if !lost.contains(&status.id) {
                return Some(status);
            }
            let over = matches!(self.store.standing(&status.id), Ok(Standing::Over));
            if over && !all { None } else { Status::of(&self.store, &status.id) }
        };
        Ok(listed.into_iter().filter_map(look_again).collect())
    }

    fn unfinished(&self) -> Result<BTreeSet<Id>> {
        Ok(self.store.live()?.into_iter().collect())
    }

    /// The directory of an unfinished run may have been removed: it is listed all the same.
    fn list_among(&self, unfinished: &BTreeSet<Id>, all: bool) -> Result<Vec<Status>> {
        let over = if all { self.store.all()? } else { Vec::new() };
        let mut ids: Vec<&Id> = over.iter().filter(|id| !unfinished.contains(id)).collect();
        ids.extend(unfinished);
        ids.sort_unstable();
        Ok(ids.into_iter().filter_map(|id| Status::of(&self.store, id)).collect())
    }

    /// The unfinished ones.
    pub fn live(&self) -> Result<Vec<Run>> {
        Ok(self.store.live()?.into_iter().map(|id| self.run(id)).collect())
    }

    /// What a run uses now.
    pub fn usage(&self, id: &Id) -> Result<Usage> {
        Ok(Usage::of(&self.store, id)?)
    }

    /// The ids of all runs there are, oldest first.
    pub fn ids(&self) -> Result<Vec<Id>> {
        Ok(self.store.all()?)
    }

    /// The ids of the unfinished ones, oldest first.
    pub fn live_ids(&self) -> Result<Vec<Id>> {
        Ok(self.store.live()?)
    }

    /// The events of a run from an offset on, and the offset to go on from.
    pub fn events(&self, id: &Id, from: u64) -> Result<(Vec<Event>, u64)> {
        Ok(self.store.events(id, from)?)
    }

    /// The run meant by an id, the beginning of one, or a name.
    pub fn find(&self, word: &str) -> Result<Run> {
        Ok(self.run(self.store.find(word)?))
    }

    /// The run as it is now: whatever is ordered is meant for this generation.
    pub(crate) fn run(&self, id: Id) -> Run {
        let known = self.store.record(&id).map(|record| record.generation);
        Run::new(self.clone(), id, known.ok())
    }

    /// Ends every run whose keeper and guard are gone.
    pub fn sweep(&self) -> Result<Vec<Swept>> {
        // It lists those again that were taken off the list. What is not tidied now is the
        // next time.
        let _ = self.store.tidy();
        Ok(sweep::sweep(&self.store, Mode::End)?)
    }

    /// As [`Runs::sweep`], on the way to something else: no more than 32 unfinished runs
    /// are looked at, others each time, what does not die at once is left for later, and
    /// nothing is said.
    pub fn sweep_in_passing(&self) {
        sweep::sweep_in_passing(&self.store);
    }

    /// The lost runs that belong to another machine or pid namespace, usually of a
    /// container that is gone: they cannot be judged from here. [`Run::forget`] removes
    /// their records.
    pub fn elsewhere(&self) -> Result<Vec<Elsewhere>> {
        let lost = sweep::lost(&self.store)?;
        let lost = lost.iter().filter_map(|id| Elsewhere::look(&self.store, id));
        Ok(lost.filter(|lost| !lost.is_provable()).collect())
    }

    /// [`Run::forget`], or in a dry run [`Run::is_forgettable`], of a run that
    /// [`Runs::elsewhere`] has listed. Nothing, if it was removed since: another prune may
    /// be under way.
    pub fn forget(&self, lost: &Id, dry_run: bool) -> Result<Option<Whereabouts>> {
        let run = self.run(lost.clone());
        match if dry_run { run.is_forgettable() } else { run.forget() } {
            Err(_) if run.is_gone().unwrap_or(false) => Ok(None),
            done => done.map(Some),
        }
    }

    /// What a sweep would do.
    pub fn sweep_dry(&self) -> Result<Vec<Swept>> {
        Ok(sweep::sweep(&self.store, Mode::DryRun)?)
    }

    pub fn group(&self, name: &str) -> Result<Group> {
        Ok(Group::new(self.clone(), name.parse()?))
    }

    pub fn groups(&self) -> Result<Vec<Group>> {
        let names = GroupName::all(self.store.root())?;
        Ok(names.into_iter().map(|name| Group::new(self.clone(), name)).collect())
    }

    /// Removes what is over: all but the last `keep`, and only what ended longer ago
    /// than `older`; and groups that are open and empty.
    pub fn prune(&self, older: Duration, keep: usize, dry_run: bool) -> Result<Pruned> {
        let now = std::time::SystemTime::now();
        let over = |id: &Id| matches!(self.store.standing(id), Ok(Standing::Over));
        let aged = |id: &Id| {
            // The record is written last, so its age is that of the end.
            let path = self.store.run_path(id);
            let file =
                std::fs::metadata(path.join("record.json")).or_else(|_| std::fs::metadata(path));
            let age = file.and_then(|meta| meta.modified()).ok();
            age.and_then(|at| now.duration_since(at).ok()).is_some_and(|age| age >= older)
        };
        let mut over: Vec<Id> = self.store.all()?.into_iter().filter(over).collect();
        // Processes live in it, whatever is written down: it is named by `unlisted`.
        let living = self.living_cgroups()?;
        let lives =
            |id: &Id| living.contains_key(id) && self.run(id.clone()).check_cgroup().is_err();
        over.retain(|id| !lives(id));
        over.truncate(over.len().saturating_sub(keep));
        over.retain(aged);
        if dry_run {
            return Ok(Pruned { removed: over, ..Pruned::default() });
        }
        let groups = self.groups()?;
        let mut pruned = Pruned::default();
        for id in over {
            match self.store.remove(&id) {
                Ok(()) => pruned.removed.push(id),
                // It was started again, or removed by somebody else, in this moment.
                Err(StoreError::Live { .. }) => {}
                Err(error) if error.is_missing() => {}
                Err(error) => pruned.runs_left.push((id, error.into())),
            }
        }
        for group in groups.iter().rev() {
            if let Err(error) = group.forget_if_empty() {
                pruned.groups_left.push((group.name().to_owned(), error));
            }
        }
        // What a killed one has left of a mark is no group, and is tried again next time.
        let _ = GroupName::tidy(self.store.root());
        Ok(pruned)
    }
}

/// What a prune has removed, and what it could not.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-pruned-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// let pruned = runs.prune(std::time::Duration::ZERO, 0, false)?;
/// assert!(pruned.removed.is_empty() && pruned.is_whole());
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Pruned {
    /// In a dry run, what would be removed.
    pub removed: Vec<Id>,
    /// Runs that are over and could not be removed.
    pub runs_left: Vec<(Id, Error)>,
    /// Groups that are open and empty and could not be removed.
    pub groups_left: Vec<(String, Error)>,
}

impl Pruned {
    /// Nothing is left that should have been removed.
    pub fn is_whole(&self) -> bool {
        self.runs_left.is_empty() && self.groups_left.is_empty()
    }
}

/// Ends every run of this user whose keeper and guard are gone.
///
/// ```standalone_crate
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-sweep-{}", std::process::id()));
/// # fullstop::Runs::at(&dir)?;
/// # // SAFETY: there is one thread.
/// # unsafe { std::env::set_var("FULLSTOP_DIR", &dir) };
/// for swept in fullstop::sweep()? {
///     println!("{}: {:?}", swept.id, swept.found);
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sweep() -> Result<Vec<Swept>> {
    Runs::open()?.sweep()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_forget_what_was_removed_meanwhile_is_no_failure() {
        let path = std::env::temp_dir().join(format!("fullstop-forget-{}", std::process::id()));
        let runs = Runs::at(&path).expect("a directory");
        let id: Id = "0tewhm6000001".parse().expect("an id");
        assert!(runs.run(id.clone()).forget().is_err(), "there is such a run");
        for dry_run in [false, true] {
            assert!(matches!(runs.forget(&id, dry_run), Ok(None)), "dry run: {dry_run}");
        }
        std::fs::create_dir_all(path.join(format!("runs/{id}"))).expect("a directory");
        assert!(runs.forget(&id, false).is_err(), "what is there, and no lost run, is forgotten");
        std::fs::remove_dir_all(&path).expect("removed");
    }
}
