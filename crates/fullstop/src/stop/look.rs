//! How a run stands, for a caller that follows it.

use crate::error::{Error, Result};
use crate::helpers::help;
use crate::offload::offload;
use crate::run::Run;
use crate::shared::SWEEPING;
use fullstop_keeper::sweep::{Mode, SweepFinding, sweep_one};
use fullstop_protocol::{Record, Report};
use fullstop_store::{Standing, StoreError};
use tokio::time::Instant;

/// How a run stands, as far as its lock and its files tell.
pub(super) enum LatestState {
    /// Its keeper or its guard lives, and has written this so far.
    Live(Option<Box<Record>>),
    /// Nothing more will be done about it, or nothing could be.
    Settled(Box<Settled>),
}

/// It is over, or stuck.
pub(super) struct Settled {
    pub report: Report,
    /// Written by a keeper or a guard that may not be gone yet.
    pub record: Option<Record>,
}

/// Looks at the lock, and at what was written last. A run that has neither keeper nor guard is
/// swept, by then if it can be.
pub(super) async fn look(run: &Run, until: Option<Instant>) -> Result<LatestState> {
    let swept = |report| LatestState::Settled(Box::new(Settled { report, record: None }));
    let theirs = run.clone();
    match help(move || look_at_files(&theirs)).await?? {
        Some(look) => Ok(look),
        None => Ok(sweep_lost(run, until).await?.map_or(LatestState::Live(None), swept)),
    }
}

/// Nothing, if it has to be swept.
fn look_at_files(run: &Run) -> Result<Option<LatestState>> {
    match run.standing()? {
        Standing::Live => look_at_record(run).map(Some),
        Standing::Over if !run.runs().store().list_lost(run.id()).unwrap_or(false) => {
            run.check_cgroup()?;
            let mut record = own_record(run)?;
            let none = || Error::Untold { id: run.id().clone(), state: "over" };
            let report = record.report.take().ok_or_else(none)?;
            Ok(Some(LatestState::Settled(Box::new(Settled { report, record: Some(record) }))))
        }
        // Or it was taken off the list, and is listed again.
        Standing::Lost | Standing::Over => Ok(None),
    }
}

fn look_at_record(run: &Run) -> Result<LatestState> {
    let record = match run.runs().store().last_record(run.id()) {
        // The generation that is meant has a record, or none yet.
        Ok(record) => meant(run, record, |now, meant| now <= meant)?,
        // None yet, or one that cannot be read: its keeper will write another. A later
        // fullstop may mean other things by the same words.
        Err(error) => {
            let (is_newer, error) = (matches!(error, StoreError::Newer { .. }), Error::from(error));
            let is_told = is_newer || error.is_shortage();
            return if is_told { Err(error) } else { Ok(LatestState::Live(None)) };
        }
    };
    let own = run.generation().is_none_or(|meant| record.generation == meant);
    let settled = record.state.is_over() || record.state.is_stuck();
    match record.report.clone().filter(|_| own && settled) {
        Some(report) => {
            Ok(LatestState::Settled(Box::new(Settled { report, record: Some(record) })))
        }
        None => Ok(LatestState::Live(own.then(|| Box::new(record)))),
    }
}

/// How a run ended, or that it is stuck. Nothing, if that cannot be told yet.
pub(crate) async fn glance(run: &Run) -> Result<Option<Report>> {
    match look(run, None).await? {
        LatestState::Settled(settled) => Ok(Some(settled.report)),
        LatestState::Live(_) => Ok(None),
    }
}

/// The report of a run that is over, or that was lost and is swept now. A stuck run is still to
/// be asked.
pub(super) async fn settled(run: &Run) -> Result<Option<Report>> {
    if run.standing()? == Standing::Live { Ok(None) } else { glance(run).await }
}

/// The record, if it is of the generation that is meant: nothing that is ordered
/// for one may hit its successor.
pub(super) fn own_record(run: &Run) -> Result<Record> {
    meant(run, run.files().record()?, |now, meant| now == meant)
}

fn meant(run: &Run, record: Record, fits: fn(u32, u32) -> bool) -> Result<Record> {
    match run.generation().filter(|meant| !fits(record.generation, *meant)) {
        None => Ok(record),
        Some(meant) => Err(Error::Superseded { id: run.id().clone(), meant }),
    }
}

/// Ends a run that has neither keeper nor guard; nothing, if another sweep is at it. It may take
/// seconds, which belong to no async task.
async fn sweep_lost(run: &Run, until: Option<Instant>) -> Result<Option<Report>> {
    // A damaged record tells no generation, and is swept by its spec.
    if let Err(superseded @ Error::Superseded { .. }) = own_record(run) {
        return Err(superseded);
    }
    let _permit = SWEEPING.acquire().await.ok();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let mode = left.map_or(Mode::End, Mode::Within);
    let (runs, id) = (run.runs().clone(), run.id().clone());
    let sweep = move || sweep_one(runs.store(), &id, mode);
    let swept = offload(sweep).await?;
    match swept.map(|swept| swept.found) {
        Some(SweepFinding::Ended { report, .. } | SweepFinding::Stuck { report }) => {
            Ok(Some(*report))
        }
        Some(SweepFinding::LeftAlone { elsewhere: Some(whereabouts), .. }) => {
            Err(Error::LostElsewhere { id: run.id().clone(), whereabouts })
        }
        Some(SweepFinding::LeftAlone { why, .. }) => {
            Err(Error::NotSwept { id: run.id().clone(), why })
        }
        // Somebody else is at it, or has just been.
        Some(SweepFinding::PutAway | SweepFinding::WouldEnd { .. }) | None => Ok(None),
    }
}
