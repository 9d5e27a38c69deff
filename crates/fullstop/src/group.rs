//! Groups: named sets of runs that can be closed as a whole.

use crate::error::Result;
use crate::run::Run;
use crate::runs::Runs;
use fullstop_core::report::{Report, Verdict};
use fullstop_core::words::Reason;
use fullstop_store::{GroupName, Standing};
use serde::Serialize;
use tokio::task::JoinSet;

/// A named set of runs, nested by path: `plan/research`.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-group-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let command = || Command::new("sleep").arg("60").runs(&runs).group("plan/research");
/// let run = blocking::start(command()?)?;
/// let report = blocking::wait(runs.group("plan")?.close())?;
/// assert!(report.is_clean());
/// assert!(blocking::start(command()?).is_err(), "nothing can start in it any more");
/// # drop(run);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    runs: Runs,
    name: GroupName,
}

/// How a group was stopped, as one.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-groupreport-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// blocking::start(Command::new("sleep").arg("60").runs(&runs).group("plan")?)?;
/// let report = blocking::wait(runs.group("plan")?.stop())?;
/// assert_eq!(report.reports.len(), 1);
/// assert!(report.is_clean() && !report.closed);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct GroupReport {
    pub group: String,
    pub closed: bool,
    /// One for each run that was stopped.
    pub reports: Vec<Report>,
    /// What went wrong with others.
    pub errors: Vec<String>,
}

impl GroupReport {
    /// Every member is proven dead.
    pub fn is_clean(&self) -> bool {
        let proven = |report: &Report| report.state != Verdict::Stuck;
        self.errors.is_empty() && self.reports.iter().all(proven)
    }
}

impl Group {
    pub(crate) fn new(runs: Runs, name: GroupName) -> Group {
        Group { runs, name }
    }

    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Whether that group is this one, or in it.
    pub fn contains(&self, other: &str) -> bool {
        self.name.contains(other)
    }

    /// The group in its line that is closed: itself, or one above it.
    pub fn closed_by(&self) -> Result<Option<String>> {
        Ok(self.name.closed_by(self.runs.store().root())?.map(str::to_owned))
    }

    /// Its live members, at any depth.
    pub fn members(&self) -> Result<Vec<Run>> {
        let ids = self.name.members(self.runs.store().root())?;
        let store = self.runs.store();
        let live = ids.into_iter().filter(|id| !matches!(store.standing(id), Ok(Standing::Over)));
        Ok(live.map(|id| self.runs.run(id)).collect())
    }

    /// Stops everything that is in it now, at any depth.
    pub async fn stop(&self) -> Result<GroupReport> {
        self.stop_all(false, Reason::Stopped).await
    }

    /// From here on nothing can start in it; everything in it is stopped.
    pub async fn close(&self) -> Result<GroupReport> {
        // Even if that cannot be written (a full disk), what is in it is stopped.
        let closed = self.name.close(self.runs.store().root());
        let whole = self.stop_all(closed.is_ok(), Reason::GroupClosed).await?;
        closed?;
        Ok(whole)
    }

    /// Lets runs start in it again.
    pub fn open(&self) -> Result<()> {
        Ok(self.name.open(self.runs.store().root())?)
    }

    /// Whoever registered before the close is found by listing; one that registers
    /// while we stop the others sees the close, and leaves by itself. So it is
    /// listed until nobody is left who could be stopped.
    async fn stop_all(&self, closed: bool, reason: Reason) -> Result<GroupReport> {
        let group = self.name.to_string();
        let mut whole = GroupReport { group, closed, reports: Vec::new(), errors: Vec::new() };
        loop {
            let known = |run: &Run| {
                whole.reports.iter().any(|report| {
                    let same = |meant| meant == report.generation;
                    report.id == *run.id() && run.generation().is_none_or(same)
                })
            };
            let members: Vec<Run> = self.members()?.into_iter().filter(|run| !known(run)).collect();
            if members.is_empty() || !whole.errors.is_empty() {
                return Ok(whole);
            }
            let mut stops = JoinSet::new();
            for run in members {
                stops.spawn(async move {
                    match run.stop_for(reason, |_| ()).await {
                        // It saw the close, and left no trace.
                        Err(_) if !run.dir().exists() => Ok(None),
                        Err(error) => Err(format!("{}: {error}", run.id())),
                        Ok(report) => Ok(Some(report)),
                    }
                });
            }
            while let Some(stopped) = stops.join_next().await {
                match stopped {
                    Ok(Ok(report)) => whole.reports.extend(report),
                    Ok(Err(why)) => whole.errors.push(why),
                    Err(error) => whole.errors.push(error.to_string()),
                }
            }
            if !closed {
                return Ok(whole);
            }
        }
    }

    pub(crate) fn forget_if_empty(&self) {
        self.name.forget_if_empty(self.runs.store().root());
    }
}
