//! Going around a keeper that hangs.

use super::Progress;
use super::follow::follow;
use super::look::{Look, look, own_record};
use super::silence::Silence;
use crate::error::{Error, Result};
use crate::run::Run;
use crate::status::members;
use fullstop_cage::linux::Held;
use fullstop_core::identity::Identity;
use fullstop_core::report::Report;
use fullstop_core::signal::Signal;
use fullstop_store::format::RecordFile;
use std::time::Duration;
use tokio::time::Instant;

/// By then a guard has written down that it has taken over, or is not going to.
const SHOWN: Duration = Duration::from_secs(2);

/// A keeper that hangs does not protect its run: it is killed, so that its guard takes
/// over. A guard that does not is killed too, and the cage is swept. By then it is over,
/// or said not to be.
pub(super) async fn go_around(
    run: &Run,
    until: Instant,
    tell: &mut (impl FnMut(Progress) + Send),
) -> Result<Report> {
    if let Look::Settled(settled) = look(run, Some(until)).await? {
        return Ok(settled.report);
    }
    let record = record_or_spec(run)?;
    if !record.world.is_here() {
        return Err(Error::Elsewhere(run.id().to_string()));
    }
    // A guard that has taken over already is the one to wait for.
    let guard = record.guard.or(record.keeper);
    if record.guard.is_some() {
        tell(Progress::GoingAround(if send(record.keeper.as_ref(), Signal::KILL) {
            "the keeper does not answer: it is killed, its guard takes over"
        } else {
            "the keeper does not answer, and is not there to be killed"
        }));
    }
    send(guard.as_ref(), Signal::CONT);
    let mut silence = Silence::of(|| guard.map(|guard| guard.pid));
    let taken_over = silence.wait_for(SHOWN, follow(run, until, tell)).await;
    if let Some(Some(report)) = taken_over.transpose()? {
        return Ok(report);
    }
    let at_work = record_or_spec(run).is_ok_and(|now| now.guard.is_none() && now.keeper == guard);
    if !at_work {
        tell(Progress::GoingAround(if send(guard.as_ref(), Signal::KILL) {
            "the guard does nothing: it is killed, the cage is swept"
        } else {
            "the guard cannot be killed from here"
        }));
    }
    if let Some(report) = follow(run, until, tell).await? {
        return Ok(report);
    }
    Err(still_there(run, &record, at_work))
}

/// A damaged record still has a spec that names the cgroup.
fn record_or_spec(run: &Run) -> Result<RecordFile> {
    match own_record(run) {
        Err(Error::Store(damage)) => run.spec().map(RecordFile::first).map_err(|_| damage.into()),
        other => other,
    }
}

/// What is to be said when all of it has not helped.
fn still_there(run: &Run, record: &RecordFile, at_work: bool) -> Error {
    let id = run.id();
    let why = if at_work {
        let alive = members(record).len();
        format!("its keeper hung and was killed; its guard is ending it, {alive} alive")
    // Whoever holds the lock was never written down. Its members can be killed all the
    // same, if there is a cgroup to do it by.
    } else if fullstop_keeper::sweep::kill_cgroup(record) {
        "its processes were killed, but its keeper can neither be asked nor replaced".to_owned()
    } else {
        "it may live on: its keeper can neither be asked nor replaced".to_owned()
    };
    Error::TimedOut(format!("run {id}: {why}"))
}

/// Lets a keeper go on that somebody has stopped. Returns whether there is one; an error,
/// if its pid means nothing here.
pub(super) fn continue_keeper(run: &Run) -> Result<bool> {
    let record = record_or_spec(run)?;
    if !record.world.is_here() {
        return Err(Error::Elsewhere(run.id().to_string()));
    }
    Ok(send(record.keeper.as_ref(), Signal::CONT))
}

/// Only to the very process that was written down. Without an inode of pidfs that
/// cannot be told here, and nobody is signalled. Returns whether somebody was.
pub(super) fn send(identity: Option<&Identity>, signal: Signal) -> bool {
    let held = identity.and_then(|identity| Held::known(identity, |_| false));
    held.is_some_and(|held| held.send(signal).is_ok())
}
