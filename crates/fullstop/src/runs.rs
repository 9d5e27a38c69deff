//! All runs of one user.

use crate::command::Command;
use crate::error::{Error, Result};
use crate::files::{RunFiles, StateFiles};
use crate::group::Group;
use crate::helpers::{help, help_long, help_with};
use crate::host::default_keeper;
use crate::run::Run;
use crate::status::{Status, Usage};
use fullstop_core::id::Id;
use fullstop_keeper::sweep::{self, LostElsewhere, Swept};
use fullstop_protocol::{Event, Host, LONGEST_BY, Whereabouts};
use fullstop_store::Store;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The runs that are written down in one directory.
///
/// ```
/// # fullstop::blocking::wait(async {
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-runs-{}", std::process::id()));
/// let runs = fullstop::Runs::at(&dir)?;
/// assert!(runs.list(true).await?.is_empty());
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok(())
/// # })?;
/// # Ok::<(), fullstop::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Runs {
    store: Arc<Store>,
    keeper: Option<PathBuf>,
    app: Option<String>,
    /// On whose behalf requests come through these.
    by: Option<Arc<str>>,
}

impl Runs {
    /// Where they usually are: $FULLSTOP_DIR, or below $XDG_STATE_HOME.
    pub fn open() -> Result<Runs> {
        Ok(Runs::in_store(Store::open()?))
    }

    /// In this directory, which is made if need be.
    pub fn at(path: &Path) -> Result<Runs> {
        Ok(Runs::in_store(Store::at(path)?))
    }

    fn in_store(store: Store) -> Runs {
        Runs { store: Arc::new(store), keeper: None, app: None, by: None }
    }

    /// The executable to be the keeper of runs that are begun here: a `fullstop`
    /// binary, or any program that links this library.
    #[must_use]
    pub fn with_keeper(mut self, executable: &Path) -> Runs {
        self.keeper = Some(executable.to_owned());
        self
    }

    /// Runs that are begun or adopted here carry the name of this application, by which
    /// [`Runs::of`] finds them again: letters, digits, `.`, `_`, `-` and `/`.
    pub fn with_app(mut self, name: impl Into<String>) -> Result<Runs> {
        let name = name.into();
        Host::check_app(&name)?;
        self.app = Some(name);
        Ok(self)
    }

    /// The application whose name they carry.
    pub fn app(&self) -> Option<&str> {
        self.app.as_deref()
    }

    /// The same runs, on behalf of `whom`, a user of a dashboard or an agent: every request through
    /// them, and through what is found or begun with them, says so. Where it asks for the end of a
    /// run, record and report show `whom` beside what the kernel tells of this process. It is not
    /// verified. At most its first 256 bytes are said.
    ///
    /// ```
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
        self.keeper.clone().map_or_else(default_keeper, Ok)
    }

    /// A command whose run is written down here.
    pub fn command(&self, program: impl Into<OsString>) -> Command {
        Command::new(program).runs(self)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How the unfinished ones stand, or all of them, oldest first. Records are read, and
    /// nothing else: what they use is asked for with [`Runs::usage`], their processes with
    /// [`Run::processes`]. A record that cannot be read is listed as that, and hides no other.
    pub async fn list(&self, all: bool) -> Result<Vec<Status>> {
        help_with(self.files(), move |files| files.list(all)).await
    }

    /// As [`Runs::list`], after a sweep in passing. Each run is looked at once, and again
    /// only if it has neither keeper nor guard.
    pub async fn sweep_and_list(&self, all: bool) -> Result<Vec<Status>> {
        help_long(self.files(), move |files| files.sweep_and_list(all)).await
    }

    /// The unfinished ones.
    pub async fn live(&self) -> Result<Vec<Run>> {
        help_with(self.files(), StateFiles::live).await
    }

    /// What a run uses now.
    pub async fn usage(&self, id: &Id) -> Result<Usage> {
        help_with(self.files().of(id), RunFiles::usage).await
    }

    /// The ids of all runs there are, oldest first.
    pub async fn ids(&self) -> Result<Vec<Id>> {
        help_with(self.files(), StateFiles::ids).await
    }

    /// The ids of the unfinished ones, oldest first.
    pub async fn live_ids(&self) -> Result<Vec<Id>> {
        help_with(self.files(), StateFiles::live_ids).await
    }

    /// The events of a run from an offset on, and the offset to go on from.
    pub async fn events(&self, id: &Id, from: u64) -> Result<(Vec<Event>, u64)> {
        let id = id.clone();
        help_with(self.files(), move |files| files.events(&id, from)).await
    }

    /// The run meant by an id, the beginning of one, or a name.
    pub async fn find(&self, word: &str) -> Result<Run> {
        let word = word.to_owned();
        help_with(self.files(), move |files| files.find(&word)).await
    }

    /// The run as it is now: whatever is ordered is meant for this generation. It reads the
    /// record in place.
    pub(crate) fn run(&self, id: Id) -> Run {
        let known = self.store.record(&id).map(|record| record.generation);
        Run::new(self.clone(), id, known.ok())
    }

    /// Ends every run whose keeper and guard are gone. If the future is dropped, the sweep goes
    /// on.
    pub async fn sweep(&self) -> Result<Vec<Swept>> {
        help_long(self.files(), StateFiles::sweep).await
    }

    /// As [`Runs::sweep`], on the way to something else: no more than 32 unfinished runs
    /// are looked at, others each time, what does not die at once is left for later, and
    /// nothing is said.
    pub async fn sweep_in_passing(&self) {
        let sweep = |files: &StateFiles| {
            sweep::sweep_in_passing(files.store());
            Ok(())
        };
        // What was not swept now is left for later.
        let _ = help_long(self.files(), sweep).await;
    }

    /// The lost runs that belong to another machine or pid namespace, usually of a
    /// container that is gone: they cannot be judged from here. [`Run::forget`] removes
    /// their records.
    pub async fn lost_elsewhere(&self) -> Result<Vec<LostElsewhere>> {
        help_long(self.files(), StateFiles::lost_elsewhere).await
    }

    /// [`Run::forget`], or in a dry run [`Run::is_forgettable`], of a run that
    /// [`Runs::lost_elsewhere`] has listed. Nothing, if it was removed since: another prune may
    /// be under way.
    pub async fn forget(&self, lost: &Id, dry_run: bool) -> Result<Option<Whereabouts>> {
        let lost = lost.clone();
        help_long(self.files(), move |files| files.forget(&lost, dry_run)).await
    }

    /// What a sweep would do.
    pub async fn sweep_dry(&self) -> Result<Vec<Swept>> {
        help_long(self.files(), StateFiles::sweep_dry).await
    }

    /// The group of this name, whether or not there are runs in it; an error, if it cannot be
    /// the name of one.
    pub fn group(&self, name: &str) -> Result<Group> {
        Ok(Group::new(self.clone(), name.parse()?))
    }

    /// All groups that are written down, in order of their names.
    pub async fn groups(&self) -> Result<Vec<Group>> {
        help_with(self.files(), StateFiles::groups).await
    }

    /// Removes what is over: all but the last `keep`, and only what ended longer ago
    /// than `older`; and groups that are open and empty. If the future is dropped, the removal
    /// goes on.
    pub async fn prune(&self, older: Duration, keep: usize, dry_run: bool) -> Result<Pruned> {
        help_long(self.files(), move |files| files.prune(older, keep, dry_run)).await
    }
}

/// What a prune has removed, and what it could not.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-pruned-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// let prune = runs.prune(std::time::Duration::ZERO, 0, false);
/// let pruned = fullstop::blocking::wait(prune)?;
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
/// for swept in fullstop::blocking::wait(fullstop::sweep())? {
///     println!("{}: {:?}", swept.id, swept.found);
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn sweep() -> Result<Vec<Swept>> {
    help(Runs::open).await??.sweep().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::wait;

    #[test]
    fn to_forget_what_was_removed_meanwhile_is_no_failure() {
        let path = std::env::temp_dir().join(format!("fullstop-forget-{}", std::process::id()));
        let runs = Runs::at(&path).expect("a directory");
        let id: Id = "0tewhm6000001".parse().expect("an id");
        assert!(wait(runs.run(id.clone()).forget()).is_err(), "there is such a run");
        for dry_run in [false, true] {
            assert!(matches!(wait(runs.forget(&id, dry_run)), Ok(None)), "dry run: {dry_run}");
        }
        std::fs::create_dir_all(path.join(format!("runs/{id}"))).expect("a directory");
        assert!(
            wait(runs.forget(&id, false)).is_err(),
            "what is there, and no lost run, is forgotten"
        );
        std::fs::remove_dir_all(&path).expect("removed");
    }
}
