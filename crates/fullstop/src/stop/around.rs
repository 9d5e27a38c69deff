//! Going around a keeper that hangs.

use super::Progress;
use super::ask::has_socket;
use super::follow::{alive, follow_over};
use super::look::{LatestState, look, own_record};
use super::silence::Silence;
use crate::error::{Error, Result};
use crate::run::Run;
use crate::status::members;
use fullstop_cage::linux::PinnedProcess;
use fullstop_core::identity::Identity;
use fullstop_core::signal::Signal;
use fullstop_keeper::sweep::keeper_or_guard;
use fullstop_protocol::{Record, Report};
use fullstop_store::format::SpecFile;
use fullstop_store::world;
use std::time::Duration;
use tokio::time::Instant;

/// By then a guard has written down that it has taken over, or is not going to.
const SHOWN: Duration = Duration::from_secs(1);

/// A keeper that hangs does not protect its run: it is killed, so that its guard takes
/// over. A guard that does not is killed too, and the cage is swept. By then it is over,
/// or said not to be.
pub(super) async fn go_around(
    run: &Run,
    until: Instant,
    tell: &mut (impl FnMut(Progress) + Send),
) -> Result<Report> {
    let record = match look(run, Some(until)).await? {
        LatestState::Settled(settled) if settled.is_over() => return Ok(settled.report),
        _ => record_or_spec(run)?,
    };
    if !world::is_here(&record.world) {
        return Err(Error::Elsewhere { id: run.id().clone() });
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
    let taken_over = silence.wait_for(SHOWN, follow_over(run, until, tell)).await;
    if let Some(Some(report)) = taken_over.transpose()? {
        return Ok(report);
    }
    let left = Left::of(run, &record);
    if left == Left::Nobody {
        tell(Progress::GoingAround(if send(guard.as_ref(), Signal::KILL) {
            "the guard does nothing: it is killed, the cage is swept"
        } else {
            "the guard cannot be killed from here"
        }));
    }
    if let Some(report) = follow_over(run, until, tell).await? {
        return Ok(report);
    }
    // It may be stuck, which somebody has written down meanwhile.
    match look(run, Some(until)).await? {
        LatestState::Settled(settled) => Ok(settled.report),
        LatestState::Live(_) => Err(still_there(run, &record, left)),
    }
}

/// Which process is left to end the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// The guard has written down that it has taken over.
    Guard,
    /// The guard will take over when the keeper is dead. That cannot be hastened.
    DyingKeeper,
    Nobody,
}

impl Left {
    fn of(run: &Run, before: &Record) -> Left {
        let guard = before.guard.or(before.keeper);
        let took_over = |now: Record| now.guard.is_none() && now.keeper == guard;
        if guard.is_some() && record_or_spec(run).is_ok_and(took_over) {
            return Left::Guard;
        }
        let keeper = before.keeper.filter(|_| before.guard.is_some());
        let lives = keeper.is_some_and(|keeper| alive(&keeper).is_some());
        if lives { Left::DyingKeeper } else { Left::Nobody }
    }
}

/// A damaged record still has a spec that names the cgroup.
fn record_or_spec(run: &Run) -> Result<Record> {
    match own_record(run) {
        Err(Error::Store(damage)) => {
            let by_spec = run.runs().store().spec(run.id()).map(SpecFile::first_record);
            by_spec.map_err(|_| if damage.is_missing() { out_of_reach(run) } else { damage.into() })
        }
        other => other,
    }
}

fn out_of_reach(run: &Run) -> Error {
    let keeper = keeper_or_guard(run.runs().store(), run.id());
    Error::OutOfReach { id: run.id().clone(), keeper }
}

/// What is to be said when all of it has not helped.
fn still_there(run: &Run, record: &Record, left: Left) -> Error {
    let alive = members(record).len();
    let why = match left {
        Left::Guard => {
            format!("its keeper hung and was killed; its guard is ending it, {alive} alive")
        }
        Left::DyingKeeper => {
            format!(
                "its keeper was killed and cannot die yet; then its guard ends it, {alive} alive"
            )
        }
        // Whoever holds the lock was never written down. Its members can be killed all
        // the same, if there is a cgroup to do it by.
        Left::Nobody if fullstop_keeper::sweep::kill_cgroup(record) => {
            "its processes were killed, but its keeper can neither be asked nor replaced".to_owned()
        }
        Left::Nobody => "it may live on: its keeper can neither be asked nor replaced".to_owned(),
    };
    Error::NotGoneAround { id: run.id().clone(), why }
}

/// What was done so that a silent keeper hears of a stop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// It goes on, if it was stopped (SIGSTOP), and finds at its socket what it was asked.
    Continued,
    /// It cannot be asked at its socket: it was asked by the signal that means the same order.
    Signalled,
    /// There is no keeper of this run.
    Nobody,
}

impl Woken {
    pub(super) fn told(self) -> &'static str {
        match self {
            Woken::Continued => {
                "the keeper does not answer: it is continued, and has the time of its ladder"
            }
            Woken::Signalled => {
                "the keeper does not answer, and has no socket that is its own: it is asked by SIGTERM, and \
                 has the time of its ladder"
            }
            Woken::Nobody => "the keeper does not answer, and is not there to be continued",
        }
    }
}

/// Continues the keeper, if it was stopped (SIGSTOP). If it cannot be asked at its socket, it is
/// asked by SIGTERM, where `may_signal` allows that. An error, if its pid means nothing here.
pub(super) async fn wake_keeper(run: &Run, may_signal: bool) -> Result<Woken> {
    let record = record_or_spec(run)?;
    if !world::is_here(&record.world) {
        return Err(Error::Elsewhere { id: run.id().clone() });
    }
    let keeper = record.keeper.as_ref();
    if !send(keeper, Signal::CONT) {
        return Ok(Woken::Nobody);
    }
    // A guard that has taken over ends the run already, and is told nothing.
    let is_deaf = may_signal && record.guard.is_some() && !has_socket(run).await;
    let is_asked = is_deaf && send(keeper, Signal::TERM);
    Ok(if is_asked { Woken::Signalled } else { Woken::Continued })
}

/// Signals the very process that was written down. Without an inode of pidfs that process cannot
/// be told from another here, and none is signalled. Returns whether it was signalled.
pub(super) fn send(identity: Option<&Identity>, signal: Signal) -> bool {
    let held = identity.and_then(|identity| PinnedProcess::known(identity, |_| false));
    held.is_some_and(|held| held.send(signal).is_ok())
}
