//! Stopping a run from outside: ask its keeper, follow it to its end, and go around a
//! keeper that hangs.
//!
//! Every wait has an end. A keeper or guard that is killed on the way is known by its identity,
//! on this boot, in this pid namespace, and held while it is signalled.

mod around;
mod ask;
mod follow;
mod look;
mod silence;

pub(crate) use ask::{Accepted, accept, accept_living, tell_own};
pub(crate) use follow::follow_to_end as wait;
pub(crate) use look::glance;
pub(crate) use silence::Silence;

use crate::error::{Error, Result};
use crate::run::Run;
use around::{Woken, go_around, wake_keeper};
use ask::{ANSWER, silent};
use follow::follow;
use fullstop_core::duration;
use fullstop_protocol::{Report, RequestKind, RunState};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long keeper and guard of a run that is over may take to be gone, in time of their own.
const GONE: Duration = Duration::from_millis(500);
/// How long going around may take: what a stop may take beyond its ladder.
const LAST_STEP: Duration = Duration::from_secs(5);
/// The last step, as it is told.
const KILL: &str = "kill";
/// How often a keeper is asked whether it is still at the last step.
const LAST_LOOK: Duration = Duration::from_secs(1);
/// What a healthy keeper may need beyond its deadline.
const SLACK: Duration = Duration::from_millis(500);
/// A stuck run is tried again every second.
const TRIED_AGAIN: Duration = Duration::from_secs(2);

/// How a stop goes.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-progress-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Progress, blocking};
///
/// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// let stop = run.stop_with(|progress| match progress {
///     Progress::Now(state) => println!("{}", state.word()),
///     Progress::GoingAround(what) => println!("{what}"),
/// });
/// blocking::wait(stop)?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum Progress {
    /// It stands like this now.
    Now(RunState),
    /// The keeper is silent, and this is done about it.
    GoingAround(&'static str),
}

/// Gives an order and follows it to the end.
///
/// A keeper that is asked and does not answer is gone around, after its second by a
/// kill. A stop continues it first, and leaves it the time of the whole ladder: the request may
/// have reached it, and then members that save their work have all of their time.
pub(crate) async fn order(
    run: &Run,
    request: &RequestKind,
    mut tell: impl FnMut(Progress) + Send,
) -> Result<Report> {
    let begun = Instant::now();
    let mut ladder_ends = None;
    let mut was_continued = false;
    let mut request = request.clone();
    loop {
        let accepted = match ladder_ends {
            None => accept(run, &request).await,
            Some(ends) => wait_out(run, &request, ends).await,
        };
        request = once_more(request);
        let deadline = match accepted {
            Ok(Accepted::Over(report)) => return Ok(*report),
            Ok(Accepted::By(line, state)) => {
                // The exchange is over: a connection for each of a thousand would be many.
                drop(line);
                if state.is_stuck() {
                    return try_again(run).await;
                }
                deadline(run, &request, &state)
            }
            // One that hangs again, or still, when its ladder is over has had its time.
            Err(Error::KeeperSilent { .. })
                if is_kill(&request)
                    || was_continued && Instant::now() >= begun + patience(run, &request) =>
            {
                return go_around(run, last_deadline(run, begun, &request), &mut tell).await;
            }
            Err(Error::KeeperSilent { .. }) => {
                // One signal is one order: a second would mean more.
                let woken = wake_keeper(run, !was_continued).await?;
                was_continued = true;
                // The ladder of one that is asked now begins now. However short it is, one
                // that is continued has its second.
                let since = if woken == Woken::Signalled { Instant::now() } else { begun };
                ladder_ends = Some((since + patience(run, &request)).max(Instant::now() + ANSWER));
                tell(Progress::GoingAround(woken.told()));
                continue;
            }
            Err(error) => return Err(error),
        };
        ladder_ends = None;
        if let Some(report) = follow(run, deadline, &mut tell).await? {
            return Ok(report);
        }
        // One that answers for ever and never comes to an end is no keeper.
        if begun.elapsed() > patience(run, &request) + LAST_STEP + silence::LONGEST {
            return go_around(run, Instant::now() + LAST_STEP, &mut tell).await;
        }
    }
}

/// When going around a keeper has to be over: five seconds beyond the ladder, and never so
/// soon that it could not be tried.
fn last_deadline(run: &Run, begun: Instant, request: &RequestKind) -> Instant {
    const TO_GO_AROUND: Duration = Duration::from_secs(2);
    (begun + patience(run, request) + LAST_STEP).max(Instant::now() + TO_GO_AROUND)
}

/// A stuck run is being tried again already; it is told once more how that goes.
async fn try_again(run: &Run) -> Result<Report> {
    if let Ok(ended) = timeout(TRIED_AGAIN, wait(run)).await {
        return ended;
    }
    let untold = || Error::Untold { id: run.id().clone(), state: "stuck" };
    glance(run).await?.ok_or_else(untold)
}

/// The same order said again, to hear how it goes: a signal that is repeated would mean
/// more than it did.
fn once_more(request: RequestKind) -> RequestKind {
    match request {
        RequestKind::Stop { reason, within, .. } => {
            RequestKind::Stop { reason, signal: None, within }
        }
        other => other,
    }
}

/// Asks again until the ladder is over. A keeper that does not answer holds up no other order:
/// each time the others are let in.
async fn wait_out(run: &Run, request: &RequestKind, until: Instant) -> Result<Accepted> {
    while Instant::now() < until {
        match timeout_at(until, accept(run, request)).await {
            Ok(Err(Error::KeeperSilent { .. })) => {}
            Ok(done) => return done,
            Err(_) => break,
        }
    }
    Err(silent(run))
}

fn is_kill(request: &RequestKind) -> bool {
    matches!(request, RequestKind::Kill)
}

/// When a keeper that said this must have got further, or said more.
fn deadline(run: &Run, request: &RequestKind, state: &RunState) -> Instant {
    // It has just been said: what is left counts from now.
    let left = match state {
        // In the last step every second counts: one that hangs there is soon found out.
        RunState::Stopping { step, left, .. } if step == KILL => (*left).min(LAST_LOOK),
        RunState::Stopping { left, .. } => *left,
        // It is drained, or its birth is waited for.
        _ => LAST_STEP,
    };
    // Whatever it says, no step is longer than the whole ladder.
    let left = if left > LAST_STEP { left.min(patience(run, request) + LAST_STEP) } else { left };
    Instant::now() + left + SLACK
}

/// What the soft steps may take, all together.
fn patience(run: &Run, request: &RequestKind) -> Duration {
    let within = match request {
        RequestKind::Kill => return Duration::ZERO,
        RequestKind::Stop { within, .. } => within.unwrap_or(duration::LONGEST),
        _ => duration::LONGEST,
    };
    let spec = run.files().spec();
    spec.map(|spec| spec.ladder.total()).unwrap_or_default().min(within).min(duration::LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstop_core::signal::Signal;
    use fullstop_protocol::StopReason;

    /// A second TERM after a second would be an order to kill.
    #[test]
    fn what_is_asked_again_escalates_nothing() {
        let within = Some(Duration::from_secs(1));
        let stop = |signal| RequestKind::Stop { reason: StopReason::Stopped, signal, within };
        assert_eq!(once_more(stop(Some(Signal::TERM))), stop(None));
        assert_eq!(once_more(RequestKind::Kill), RequestKind::Kill);
    }
}
