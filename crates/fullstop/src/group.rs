//! Groups: named sets of runs that can be closed as a whole.

use crate::error::Result;
use crate::files::GroupFiles;
use crate::helpers::{help, help_with};
use crate::orders::{ProgressSender, carry_out_telling};
use crate::run::Run;
use crate::runs::Runs;
use crate::stop::{self, Progress};
use fullstop_core::id::Id;
use fullstop_protocol::{Report, RequestKind, StopReason};
use fullstop_store::GroupName;
use serde::Serialize;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use tokio::task::JoinSet;

/// A named set of runs, nested by path: `plan/research`.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-group-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let command = || Command::new("sleep").arg("60").runs(&runs).group("plan/research");
/// let run = blocking::start(command())?;
/// let report = blocking::wait(runs.group("plan")?.close())?;
/// assert!(report.is_clean());
/// assert!(blocking::start(command()).is_err(), "nothing can start in it any more");
/// # drop(run);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) runs: Runs,
    pub(crate) name: GroupName,
}

/// How a group was stopped, as one.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-groupreport-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// blocking::start(Command::new("sleep").arg("60").runs(&runs).group("plan"))?;
/// let report = blocking::wait(runs.group("plan")?.stop())?;
/// assert_eq!(report.reports.len(), 1);
/// assert!(report.is_clean() && !report.closed);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct GroupReport {
    /// Its name.
    pub group: String,
    /// Nothing can start in it any more.
    pub closed: bool,
    /// One for each run that was stopped.
    pub reports: Vec<Report>,
    /// What went wrong with others, or with the group itself.
    pub errors: Vec<String>,
    /// Those among the others that may live on: nothing is proven of them.
    pub may_live_on: Vec<Id>,
}

impl GroupReport {
    /// Every member that was met is proven dead. One that is stuck, or was released, is not, nor
    /// is one whose stop has failed.
    ///
    /// ```
    /// use fullstop::{GroupReport, Report, RunState};
    ///
    /// let report: Report = serde_json::from_str(r#"{
    ///     "version": 2, "id": "0r3v8x2k7m4pq", "generation": 1, "command": ["true"],
    ///     "cage": "tree", "state": "ended", "reason": "group-closed", "exit": {"code": 0},
    ///     "at": "2027-01-15T08:00:00.003Z", "proof": "no-children",
    ///     "started_at": "2027-01-15T08:00:00.000Z", "elapsed_ms": 3
    /// }"#)?;
    /// let mut whole = GroupReport { reports: vec![report], ..GroupReport::default() };
    /// assert!(whole.is_proven() && whole.is_clean());
    /// whole.errors.push("cannot close group plan".to_owned());
    /// assert!(whole.is_proven() && !whole.is_clean());
    /// (whole.reports[0].state, whole.reports[0].proof) = (RunState::Released, None);
    /// assert!(!whole.is_proven() && !whole.is_clean());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn is_proven(&self) -> bool {
        self.may_live_on.is_empty() && self.reports.iter().all(Report::is_proven)
    }

    /// Every member is proven dead, and nothing else went wrong.
    pub fn is_clean(&self) -> bool {
        self.is_proven() && self.errors.is_empty()
    }
}

impl Group {
    pub(crate) fn new(runs: Runs, name: GroupName) -> Group {
        Group { runs, name }
    }

    /// Its path, such as `plan/research`.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Whether that group is this one, or in it.
    pub fn contains(&self, other: &str) -> bool {
        self.name.contains(other)
    }

    /// The group in its line that is closed: itself, or one above it.
    pub async fn closed_by(&self) -> Result<Option<String>> {
        help_with(self.files(), GroupFiles::closed_by).await
    }

    /// Its live members, at any depth. If none is registered, all unfinished runs are asked
    /// by their records: the entries of the group may have been removed under them.
    pub async fn members(&self) -> Result<Vec<Run>> {
        help_with(self.files(), GroupFiles::members).await
    }

    /// Those of its live members that are registered in it.
    pub async fn registered(&self) -> Result<Vec<Run>> {
        help_with(self.files(), GroupFiles::registered).await
    }

    /// Stops everything that is in it now, at any depth.
    ///
    /// The first poll gives the order, for all of them: if the future is dropped then, all are
    /// stopped all the same. If it is dropped before, nothing was ordered.
    pub async fn stop(&self) -> Result<GroupReport> {
        self.stop_with(|_, _| ()).await
    }

    /// As [`Group::stop`], telling how it goes with each: in the polls of the caller, and so only
    /// for as long as the future is polled.
    pub async fn stop_with(&self, tell: impl FnMut(&Id, Progress)) -> Result<GroupReport> {
        self.end(StopReason::Stopped, tell).await
    }

    /// From here on nothing can start in it; everything in it is stopped.
    ///
    /// The first poll gives the order, whole: if the future is dropped then, the group is closed
    /// and all in it are stopped all the same. If it is dropped before, the group is open and
    /// nothing was ordered.
    pub async fn close(&self) -> Result<GroupReport> {
        self.close_with(|_, _| ()).await
    }

    /// As [`Group::close`], telling how it goes with each: in the polls of the caller, and so only
    /// for as long as the future is polled. Also if the group itself cannot be
    /// closed everything in it is stopped, and the report says both.
    pub async fn close_with(&self, tell: impl FnMut(&Id, Progress)) -> Result<GroupReport> {
        self.end(StopReason::GroupClosed, tell).await
    }

    async fn end(
        &self,
        reason: StopReason,
        mut tell: impl FnMut(&Id, Progress),
    ) -> Result<GroupReport> {
        let group = self.clone();
        let order = |sender| async move { group.carry_out(reason, sender).await };
        carry_out_telling(order, |(id, progress): (Id, Progress)| tell(&id, progress)).await
    }

    async fn carry_out(
        self,
        reason: StopReason,
        sender: ProgressSender<(Id, Progress)>,
    ) -> Result<GroupReport> {
        let mut whole = GroupReport { group: self.name.to_string(), ..GroupReport::default() };
        let mut failed = None;
        if reason == StopReason::GroupClosed {
            let theirs = self.clone();
            match help(move || theirs.name.close(theirs.runs.store().root())).await? {
                Ok(()) => whole.closed = true,
                Err(why) => failed = Some(format!("cannot close group {}: {why}", self.name)),
            }
        }
        self.stop_all(&mut whole, reason, &sender).await?;
        whole.errors.extend(failed);
        Ok(whole)
    }

    /// Lets runs start in it again.
    pub async fn open(&self) -> Result<()> {
        help_with(self.files(), GroupFiles::open).await
    }

    /// A run that registered before the close is found by listing. A run that registers while the
    /// others are stopped sees the close, and leaves by itself. So the group is listed until no run
    /// is left that could be stopped. What is known by then is told, whatever goes wrong later.
    async fn stop_all(
        &self,
        whole: &mut GroupReport,
        reason: StopReason,
        sender: &ProgressSender<(Id, Progress)>,
    ) -> Result<()> {
        loop {
            let known = |run: &Run| {
                whole.reports.iter().any(|report| {
                    let same = |meant| meant == report.generation;
                    report.id == *run.id() && run.generation().is_none_or(same)
                })
            };
            let members: Vec<Run> = match self.members().await {
                Ok(members) => members.into_iter().filter(|run| !known(run)).collect(),
                Err(why) => {
                    whole.errors.push(format!("group {} cannot be listed: {why}", self.name));
                    return Ok(());
                }
            };
            if members.is_empty() {
                return Ok(());
            }
            stop_members(members, whole, reason, sender).await;
            if !whole.closed || !whole.errors.is_empty() {
                return Ok(());
            }
        }
    }
}

/// All side by side. A member counts as living until its own stop has said otherwise.
async fn stop_members(
    members: Vec<Run>,
    whole: &mut GroupReport,
    reason: StopReason,
    sender: &ProgressSender<(Id, Progress)>,
) {
    let mut stops = JoinSet::new();
    let mut unproven: BTreeSet<Id> = members.iter().map(|run| run.id().clone()).collect();
    for run in members {
        let sender = sender.clone();
        stops.spawn(async move {
            let id = run.id().clone();
            let tell = |progress| sender.send((id.clone(), progress));
            let request = RequestKind::Stop { reason, signal: None, within: None };
            let stopped = match stop::order(&run, &request, tell).await {
                // It saw the close, and left no trace.
                Err(_) if run.is_gone().await.unwrap_or(false) => Ok(None),
                stopped => stopped.map(Some),
            };
            (id, stopped)
        });
    }
    let mut panic = None;
    while let Some(stopped) = stops.join_next().await {
        match stopped {
            Ok((id, Ok(report))) => {
                unproven.remove(&id);
                whole.reports.extend(report);
            }
            Ok((id, Err(why))) => whole.errors.push(format!("{id}: {why}")),
            Err(error) => panic = Some(error.into_panic()),
        }
    }
    // A panic of ours is the caller's to hear, and harms no other's stop.
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    whole.may_live_on.extend(unproven);
}

#[cfg(test)]
mod tests;
