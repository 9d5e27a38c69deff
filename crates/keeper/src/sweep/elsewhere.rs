//! Lost runs of another machine or pid namespace: known by their record alone, and
//! forgotten only if that is asked for.
//!
//! The pids of such a run mean nothing here, so that no process is signalled, and only an
//! empty cgroup that can be seen from here proves that it has ended. Usually its container is
//! gone. But its processes may live on in a container that is not, so that no sweep forgets
//! the run by itself.

use super::{living_cgroup, own_cgroup, read_record_or_spec};
use fullstop_cage::linux::probe::is_populated;
use fullstop_cage::linux::{LostCage, MemberEvidence};
use fullstop_core::id::Id;
use fullstop_protocol::{Record, Whereabouts, World};
use fullstop_store::format::SpecFile;
use fullstop_store::{RunDir, Standing, Store, StoreError, world};
use std::fmt;
use std::path::PathBuf;

/// A lost run that cannot be judged from here.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-elsewhere-{}", std::process::id()));
/// # let store = fullstop_store::Store::at(&dir)?;
/// use fullstop_keeper::sweep::{LostElsewhere, lost};
///
/// for id in lost(&store)? {
///     if let Some(LostElsewhere { whereabouts, .. }) = LostElsewhere::look(&store, &id) {
///         println!("{id}: {whereabouts}");
///     }
/// }
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LostElsewhere {
    /// The id of the run.
    pub id: Id,
    /// The name that it was given.
    pub name: Option<String>,
    /// The machine and the namespaces in which it was written.
    pub world: World,
    /// Where that is, as far as can be told from here.
    pub whereabouts: Whereabouts,
    /// Its cgroup, if that can be seen from here.
    pub cgroup: Option<PathBuf>,
}

impl LostElsewhere {
    /// `None` if the run belongs here, or is over. Of an intact run only the record is read,
    /// since every command that meets a lost run asks this.
    #[doc(hidden)]
    pub fn look(store: &Store, id: &Id) -> Option<LostElsewhere> {
        let record = match store.last_record(id) {
            Err(StoreError::Newer { .. }) => return None,
            Err(_) => SpecFile::first_record(store.spec(id).ok()?),
            Ok(record) => record,
        };
        LostElsewhere::of(store, id, &record)
    }

    fn of(store: &Store, id: &Id, record: &Record) -> Option<LostElsewhere> {
        let whereabouts = world::whereabouts(&record.world);
        if record.id != *id || record.state.is_over() || !whereabouts.is_elsewhere() {
            return None;
        }
        let recorded = || own_cgroup(record).filter(|path| path.exists()).map(ToOwned::to_owned);
        let cgroup = living_cgroup(store, id).or_else(recorded);
        let (id, name, world) = (record.id.clone(), record.name.clone(), record.world.clone());
        Some(LostElsewhere { id, name, world, whereabouts, cgroup })
    }

    /// Whether its cgroup may prove its end. The same path means the same cgroup only if
    /// the record names this machine.
    pub(super) fn may_be_proven(&self) -> bool {
        self.cgroup.is_some() && self.world.machine == world::here().machine
    }

    /// Whether a sweep would prove that it has ended: its cgroup is empty.
    pub fn is_provable(&self) -> bool {
        let lost_cage = || LostCage::new(self.cgroup.as_deref(), MemberEvidence::default());
        self.may_be_proven() && lost_cage().cgroup_is_empty()
    }
}

/// Why a run is not forgotten.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-forget-{}", std::process::id()));
/// # let store = fullstop_store::Store::at(&dir)?;
/// use fullstop_keeper::sweep::{ForgetError, forget};
///
/// let id = "0tewhm6000001".parse().expect("an id");
/// assert!(matches!(forget(&store, &id), Err(ForgetError::Store(_))));
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ForgetError {
    /// Its keeper or its guard lives, here or elsewhere, or a sweep is at it.
    Live,
    /// It has ended, and its record says how.
    Over,
    /// A sweep can find out what is left of it.
    Judgeable(Whereabouts),
    /// Processes live in its cgroup.
    Populated(PathBuf),
    /// It could not be read.
    Store(StoreError),
}

impl fmt::Display for ForgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForgetError::Live => f.write_str("its keeper or its guard lives"),
            ForgetError::Over => f.write_str("it is over"),
            ForgetError::Judgeable(Whereabouts::Unseen) => {
                f.write_str("without /proc it cannot be told whether it belongs here")
            }
            ForgetError::Judgeable(_) => f.write_str("it can be judged from here"),
            ForgetError::Populated(path) => {
                write!(f, "processes live in its cgroup {}", path.display())
            }
            ForgetError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ForgetError {}

impl From<StoreError> for ForgetError {
    fn from(error: StoreError) -> ForgetError {
        ForgetError::Store(error)
    }
}

/// Removes the directory of a lost run that cannot be judged from here, and leaves its group.
/// No process is signalled: one that is left of the run lives on, unknown.
pub fn forget(store: &Store, id: &Id) -> Result<Whereabouts, ForgetError> {
    let whereabouts = check(store, id, |mut run, record| {
        run.rejoin(record);
        run.finish()
    })?;
    store.remove(id)?;
    Ok(whereabouts)
}

/// Whether [`forget`] would.
pub fn is_forgettable(store: &Store, id: &Id) -> Result<Whereabouts, ForgetError> {
    check(store, id, |_, _| Ok(()))
}

/// Acts on a run if it may be forgotten, while its lock keeps sweeps and restarts away.
fn check(
    store: &Store,
    id: &Id,
    act: impl FnOnce(RunDir, &Record) -> fullstop_store::Result<()>,
) -> Result<Whereabouts, ForgetError> {
    let Some(run) = store.take_over(id)? else {
        let is_over = store.standing(id)? == Standing::Over;
        return Err(if is_over { ForgetError::Over } else { ForgetError::Live });
    };
    let record = read_record_or_spec(&run)?;
    let whereabouts = world::whereabouts(&record.world);
    if record.state.is_over() {
        return Err(ForgetError::Over);
    }
    let lost = LostElsewhere::of(store, id, &record).ok_or(ForgetError::Judgeable(whereabouts))?;
    if let Some(path) = lost.cgroup.as_ref().filter(|path| is_populated(path)) {
        return Err(ForgetError::Populated(path.clone()));
    }
    if lost.is_provable() {
        return Err(ForgetError::Judgeable(whereabouts));
    }
    act(run, &record)?;
    Ok(whereabouts)
}

#[cfg(test)]
mod tests;
