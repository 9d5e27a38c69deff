//! Following a run to its end: waiting for notices of it, and for the death of its
//! guard, and looking at its files only then.

use super::around::send;
use super::look::{LatestState, Settled, look};
use super::silence::Silence;
use super::{GONE, Progress};
use crate::any_of::{Wait, any_of};
use crate::error::Result;
use crate::readable::readable;
use crate::run::Run;
use crate::shared::{ASKING, WATCHING};
use crate::watcher::Follower;
use fullstop_cage::linux::PinnedProcess;
use fullstop_core::identity::Identity;
use fullstop_core::signal::Signal;
use fullstop_protocol::{Record, Report, RunState};
use fullstop_store::world;
use std::future::pending;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// A notice is lost if its writer is killed between the record and the notice: a run is
/// looked at now and then whatever is told.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);
/// How soon is looked again after a look that failed for want of descriptors or memory.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Follows a run until it is over, or stuck; nothing, if it is not by then.
pub(super) async fn follow(
    run: &Run,
    until: Instant,
    tell: &mut (impl FnMut(Progress) + Send),
) -> Result<Option<Report>> {
    follow_until(run, Some(until), true, tell).await
}

/// Follows a run until it is over, and no longer than that. A stuck one is followed on.
pub(super) async fn follow_over(
    run: &Run,
    until: Instant,
    tell: &mut (impl FnMut(Progress) + Send),
) -> Result<Option<Report>> {
    follow_until(run, Some(until), false, tell).await
}

/// Follows a run to its end. A stuck one is followed on.
pub(crate) async fn follow_to_end(run: &Run) -> Result<Report> {
    loop {
        if let Some(report) = follow_until(run, None, false, &mut |_| ()).await? {
            return Ok(report);
        }
    }
}

async fn follow_until(
    run: &Run,
    until: Option<Instant>,
    stuck_counts: bool,
    tell: &mut (impl FnMut(Progress) + Send),
) -> Result<Option<Report>> {
    // Before the first look: what changes after it is told.
    let mut notices = Follower::of_run(run.runs().store(), run.id());
    let mut told: Option<RunState> = None;
    loop {
        let record = match look(run, until).await {
            Ok(LatestState::Settled(settled)) if stuck_counts || settled.is_over() => {
                settled.let_go().await;
                return Ok(Some(settled.report));
            }
            Ok(LatestState::Settled(settled)) => settled.record.map(Box::new),
            Ok(LatestState::Live(record)) => record,
            // What we lack ourselves says nothing about the run.
            Err(error) if error.is_shortage() => {
                sleep(TRY_AGAIN).await;
                None
            }
            Err(error) => return Err(error),
        };
        if let Some(phase) = record.as_ref().map(|record| &record.state)
            && told.as_ref() != Some(phase)
        {
            tell(Progress::Now(phase.clone()));
            told = Some(phase.clone());
        }
        let late: Wait<'_> = match until {
            Some(until) if until <= Instant::now() => return Ok(None),
            Some(until) => Box::pin(sleep_until(until)),
            None => Box::pin(pending()),
        };
        let dies = death_of_keepers(record.as_deref());
        let changed = Box::pin(notices.changed());
        any_of([changed, Box::pin(dies), Box::pin(sleep(LOOK_ANYWAY)), late]).await;
    }
}

/// Waits for the death of the guard, or of the keeper if the guard is dead already. It
/// needs a descriptor; where there are many runs, some are followed without.
async fn death_of_keepers(record: Option<&Record>) {
    if let Ok(_permit) = WATCHING.try_acquire()
        && let Some(record) = record
        && let Some(pidfd) = [record.guard, record.keeper].iter().flatten().find_map(alive)
    {
        return death(pidfd).await;
    }
    pending::<()>().await;
}

/// A descriptor of the very process that was written down, if it is alive.
pub(super) fn alive(identity: &Identity) -> Option<OwnedFd> {
    let held = PinnedProcess::known(identity, |_| false)?;
    if held.is_dead() { None } else { held.into_pidfd() }
}

/// Never, if it cannot be waited for.
async fn death(pidfd: OwnedFd) {
    if readable(pidfd).await.is_err() {
        pending::<()>().await;
    }
}

impl Settled {
    pub(super) fn is_over(&self) -> bool {
        !self.report.state.is_stuck()
    }

    /// The keeper tells the end a moment before it is gone itself: waits until it and
    /// the guard of a run that is over are dead, so that nothing of ours is left.
    async fn let_go(&self) {
        let Some(record) = self.record.as_ref().filter(|_| self.is_over()) else { return };
        let Ok(_permit) = ASKING.acquire().await else { return };
        for identity in [&record.keeper, &record.guard].into_iter().flatten() {
            // One that somebody has stopped on its way out is let go on.
            for _ in 0..2 {
                let Some(pidfd) = alive(identity) else { break };
                let mut silence = Silence::of(|| Some(identity.pid));
                let died = silence.wait_for(GONE, death(pidfd)).await.is_some();
                if !died && world::is_here(&record.world) {
                    send(Some(identity), Signal::CONT);
                }
            }
        }
    }
}
