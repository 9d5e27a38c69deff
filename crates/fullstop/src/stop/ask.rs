//! An order: connect, ask, be acknowledged. What comes of it is told by the journal.

use super::look::settled;
use super::silence::{LONGEST, Silence};
use crate::error::{Error, Result};
use crate::line::Line;
use crate::run::Run;
use crate::shared::ASKING;
use fullstop_protocol::{
    RECORD_VERSION, Refusal, RefusalCode, ReplyKind, Report, RequestKind, RunState,
};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep};

/// How long a keeper may be silent.
pub(super) const ANSWER: Duration = Duration::from_secs(1);
/// How soon a keeper that does not listen is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(10);

pub(crate) enum Accepted {
    /// By the keeper of a run that stands so.
    By(Line, RunState),
    /// There was nothing left to order.
    Over(Box<Report>),
}

/// Gives an order to a keeper that must be there; a run that is over is an error.
pub(crate) async fn accept_living(run: &Run, request: &RequestKind) -> Result<()> {
    match accept(run, request).await? {
        Accepted::By(..) => Ok(()),
        Accepted::Over(report) => Err(Error::Ended(report)),
    }
}

/// Tells the keeper of a run of ours, on the line that we have had to it from the beginning.
pub(crate) async fn tell_own(run: &Run, line: &UnixStream, request: &RequestKind) -> Result<()> {
    let fail = |error| Error::io("use the line to the keeper")(error);
    let mut line = Line::new(line.try_clone().map_err(fail)?)?;
    let keeper = || run.runs().store().last_record(run.id()).ok()?.keeper.map(|keeper| keeper.pid);
    let asked = Silence::of(keeper).wait_for(ANSWER, line.ask(run, request)).await;
    match asked.ok_or_else(|| silent(run))?.map_err(fail)? {
        Some(ReplyKind::Accepted { .. }) => Ok(()),
        Some(ReplyKind::Refused(refusal)) => Err(refused(run, refusal)),
        _ => Err(match settled(run).await? {
            Some(report) => Error::Ended(Box::new(report)),
            None => silent(run),
        }),
    }
}

/// The keeper has been silent for a second of its own time, or for longer than we wait.
pub(super) fn silent(run: &Run) -> Error {
    Error::KeeperSilent { id: run.id().clone() }
}

/// Gives an order; returns when it was accepted. A keeper that is silent for a second
/// of its own time is an error of its own.
pub(crate) async fn accept(run: &Run, request: &RequestKind) -> Result<Accepted> {
    check_version(run, request)?;
    let silent = || silent(run);
    let keeper = || run.runs().store().last_record(run.id()).ok()?.keeper.map(|keeper| keeper.pid);
    let mut silence = Silence::of(keeper);
    let begun = Instant::now();
    loop {
        let permit = permit(&mut silence).await;
        let asked = match settled(run).await {
            Ok(Some(report)) => return Ok(Accepted::Over(Box::new(report))),
            Ok(None) => silence.wait_for(ANSWER, ask(run, request)).await.ok_or_else(silent)?,
            Err(error) => Err(error),
        };
        drop(permit);
        match asked {
            Ok(Some((_, ReplyKind::Refused(refusal)))) => return Err(refused(run, refusal)),
            Ok(Some((line, ReplyKind::Accepted { state, .. }))) => {
                return Ok(Accepted::By(line, state));
            }
            // It does not listen yet, or has just hung up.
            Ok(_) => {}
            // What we lack ourselves is not the keeper's silence.
            Err(error) if error.is_shortage() && begun.elapsed() < LONGEST => silence.forget(),
            Err(error) => return Err(error),
        }
        silence.wait_for(ANSWER, sleep(TRY_AGAIN)).await.ok_or_else(silent)?;
    }
}

/// A keeper of an earlier version can be stopped and killed, by signals, and nothing else.
fn check_version(run: &Run, request: &RequestKind) -> Result<()> {
    let is_end = matches!(request, RequestKind::Stop { .. } | RequestKind::Kill);
    let is_earlier = || {
        let record = run.runs().store().last_record(run.id());
        record.is_ok_and(|record| record.version < RECORD_VERSION && !record.state.is_over())
    };
    if is_end || !is_earlier() {
        return Ok(());
    }
    Err(Error::EarlierKeeper { id: run.id().clone() })
}

/// A request that the keeper has refused.
fn refused(run: &Run, refusal: Refusal) -> Error {
    match run.generation() {
        Some(meant) if refusal.code == RefusalCode::Superseded => {
            Error::Superseded { id: run.id().clone(), meant }
        }
        _ => Error::Refused(refusal),
    }
}

/// Leave to ask. A wait for it is a wait for other orders of this process, and not for the keeper.
async fn permit<W: Fn() -> Option<i32>>(
    silence: &mut Silence<W>,
) -> Option<SemaphorePermit<'static>> {
    if let Ok(permit) = ASKING.try_acquire() {
        return Some(permit);
    }
    let permit = ASKING.acquire().await.ok();
    silence.look_away();
    permit
}

/// Whether there is a socket to ask at. A keeper that hangs has one, whose queue may be full. A
/// keeper whose socket was removed or replaced does not hear what it is asked there.
pub(super) async fn has_socket(run: &Run) -> bool {
    match Line::connect(run.runs().store(), run.id()).await {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
        Err(error) => Error::io("ask the keeper")(error).is_shortage(),
    }
}

/// One exchange; nothing, if there is no answer.
async fn ask(run: &Run, request: &RequestKind) -> Result<Option<(Line, ReplyKind)>> {
    let exchange = async {
        let mut line = Line::connect(run.runs().store(), run.id()).await?;
        let reply = line.ask(run, request).await?;
        Ok(reply.map(|reply| (line, reply)))
    };
    exchange.await.or_else(|error: io::Error| {
        let error = Error::io("ask the keeper")(error);
        if error.is_shortage() { Err(error) } else { Ok(None) }
    })
}
