//! Stopping a run from outside: ask its keeper, and if that is silent, go around.
//!
//! Every wait has an end. Whoever is killed on the way is known by its identity, on
//! this boot, in this pid namespace, and held while it is signalled.

use crate::error::{Error, Result};
use crate::line::Line;
use crate::run::Run;
use fullstop_cage::linux::Held;
use fullstop_core::identity::Identity;
use fullstop_core::report::Report;
use fullstop_core::signal::Signal;
use fullstop_keeper::sweep::{Found, Mode, sweep_one};
use fullstop_store::format::{Phase, RecordFile};
use fullstop_store::{Reply, Request, Standing, Watched};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a keeper may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// How long a guard may take to show that it has taken over.
const TAKE_OVER: Duration = Duration::from_secs(1);
/// What a guard that was continued may need for the last step.
const LAST_STEP: Duration = Duration::from_secs(5);
/// What a healthy keeper may need beyond its ladder and its last step.
const SLACK: Duration = Duration::from_millis(500);
/// A stuck run is tried again every second.
const TRIED_AGAIN: Duration = Duration::from_secs(2);
/// How often it is looked at a record that nobody tells of.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How a stop goes.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-progress-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Progress, blocking};
///
/// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// let stop = run.stop_with(|progress| match progress {
///     Progress::Now { phase, alive } => println!("{}: {alive} alive", phase.word()),
///     Progress::GoingAround(what) => println!("{what}"),
/// });
/// blocking::wait(stop)?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum Progress {
    Now {
        phase: Phase,
        alive: usize,
    },
    /// The keeper is silent, and this is done about it.
    GoingAround(&'static str),
}

/// Gives an order and follows it to the end.
pub(crate) async fn order(
    run: &Run,
    request: &Request,
    mut tell: impl FnMut(Progress),
) -> Result<Report> {
    // Looked for while it has a name: the end takes that away.
    let lock = run.runs().store().watch(run.id());
    let report = match accept(run, request).await {
        // It is being tried again already; it is told once more how that goes.
        Ok(Accepted::By(line, Phase::Stuck { .. })) => {
            let until = Instant::now() + TRIED_AGAIN;
            match follow(run, line, until, &mut tell).await? {
                Some(report) => report,
                None => last_word(run, own_record(run)?)?,
            }
        }
        Ok(Accepted::By(line, _)) => {
            let until = Instant::now() + patience(run);
            match follow(run, line, until, &mut tell).await? {
                Some(report) => report,
                None => go_around(run, tell).await?,
            }
        }
        Ok(Accepted::Over(report)) => *report,
        Err(Error::TimedOut(_)) => go_around(run, tell).await?,
        Err(error) => return Err(error),
    };
    let_go_of(lock.as_ref(), &report).await;
    Ok(report)
}

pub(crate) enum Accepted {
    /// By the keeper of a run that stands so.
    By(Line, Phase),
    /// There was nothing left to order.
    Over(Box<Report>),
}

/// Gives an order; returns when it was accepted. A keeper that does not answer
/// within a second is an error of its own.
pub(crate) async fn accept(run: &Run, request: &Request) -> Result<Accepted> {
    let until = Instant::now() + ANSWER;
    loop {
        if let Some(report) = over(run).await? {
            return Ok(Accepted::Over(Box::new(report)));
        }
        match timeout_at(until, ask(run, request)).await {
            Ok(Ok(Some((line, Reply::Refused { why })))) => {
                drop(line);
                return Err(Error::Refused(why));
            }
            Ok(Ok(Some((line, Reply::Accepted { phase, .. })))) => {
                return Ok(Accepted::By(line, phase));
            }
            // Not listening yet, or not any more: look again.
            Ok(_) if Instant::now() < until => sleep(LOOK_EVERY).await,
            _ => {
                let id = run.id();
                return Err(Error::TimedOut(format!("the keeper of run {id} does not answer")));
            }
        }
    }
}

async fn ask(run: &Run, request: &Request) -> std::io::Result<Option<(Line, Reply)>> {
    let mut line = Line::connect(run.runs().store(), run.id()).await?;
    line.say(request).await?;
    Ok(line.hear().await?.map(|reply| (line, reply)))
}

/// The report of a run that is over, or of one that was lost and is swept now.
async fn over(run: &Run) -> Result<Option<Report>> {
    match run.standing()? {
        Standing::Live => Ok(None),
        Standing::Lost => sweep_lost(run).await,
        Standing::Over => last_word(run, own_record(run)?).map(Some),
    }
}

/// The record, if it is of the generation that is meant: nothing that is ordered
/// for one may hit its successor.
fn own_record(run: &Run) -> Result<RecordFile> {
    let record = run.record()?;
    let now = record.generation;
    match run.generation().filter(|meant| *meant != now) {
        None => Ok(record),
        Some(meant) => {
            let why = format!("generation {meant} of run {} is gone; this is {now}", run.id());
            Err(Error::Refused(why))
        }
    }
}

fn last_word(run: &Run, record: RecordFile) -> Result<Report> {
    let none = || Error::Unfit(format!("run {} is over, and nobody wrote how", run.id()));
    record.report.ok_or_else(none)
}

/// It may take seconds, which belong to no async task.
async fn sweep_lost(run: &Run) -> Result<Option<Report>> {
    // A damaged record tells no generation, and is swept by its spec.
    if let Err(refused @ Error::Refused(_)) = own_record(run) {
        return Err(refused);
    }
    let (runs, id) = (run.runs().clone(), run.id().clone());
    let sweep = move || sweep_one(runs.store(), &id, Mode::End);
    let swept = spawn_blocking(sweep).await.map_err(|error| Error::Unfit(error.to_string()))?;
    match swept.map(|swept| swept.found) {
        Some(Found::Ended { report, .. } | Found::Stuck { report }) => Ok(Some(*report)),
        Some(Found::LeftAlone { why }) => {
            Err(Error::Unfit(format!("run {} is lost: {why}", run.id())))
        }
        // Somebody else is at it, or has just been.
        Some(Found::PutAway | Found::WouldEnd { .. }) | None => Ok(None),
    }
}

/// Listens until the report. Nothing, if it does not come in time.
async fn follow(
    run: &Run,
    mut line: Line,
    until: Instant,
    tell: &mut impl FnMut(Progress),
) -> Result<Option<Report>> {
    loop {
        match timeout_at(until, line.hear()).await {
            Ok(Ok(Some(Reply::Report { report }))) => return Ok(Some(*report)),
            Ok(Ok(Some(Reply::Now { phase, alive }))) => tell(Progress::Now { phase, alive }),
            Ok(Ok(Some(_))) => {}
            // The keeper is gone; its guard takes over.
            Ok(Ok(None) | Err(_)) => return watch_record(run, until).await,
            Err(_) => return Ok(None),
        }
    }
}

/// The keeper says so a moment before it is gone itself: waits until it and the guard
/// of a run that is over have let go of its lock.
async fn let_go_of(lock: Option<&Watched>, report: &Report) {
    let until = Instant::now() + TAKE_OVER;
    let held = || lock.is_some_and(Watched::is_held);
    while report.proof.is_some() && held() && Instant::now() < until {
        sleep(LOOK_EVERY / 10).await;
    }
}

/// Looks at the record until it says how the run ended, or that it is stuck.
async fn watch_record(run: &Run, until: Instant) -> Result<Option<Report>> {
    loop {
        if let Some(report) = over(run).await? {
            return Ok(Some(report));
        }
        if let Ok(RecordFile { state: Phase::Stuck { .. }, report: Some(report), .. }) =
            own_record(run)
        {
            return Ok(Some(report));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        sleep(LOOK_EVERY).await;
    }
}

/// What became of a run whose keeper has hung up: how it ended, or that it is stuck.
/// Nothing, if that cannot be told yet.
pub(crate) async fn glance(run: &Run) -> Result<Option<Report>> {
    watch_record(run, Instant::now()).await
}

/// A keeper that is stopped, or spins, does not protect its run: it is killed, so
/// that its guard takes over; a guard that is silent is continued; if that fails it
/// is killed too, and the cage is swept.
async fn go_around(run: &Run, mut tell: impl FnMut(Progress)) -> Result<Report> {
    if let Some(report) = watch_record(run, Instant::now()).await? {
        return Ok(report);
    }
    // A damaged record still has a spec that names the cgroup.
    let record = match own_record(run) {
        Err(Error::Store(damage)) => run.spec().map(RecordFile::first).map_err(|_| damage)?,
        other => other?,
    };
    if !record.world.is_here() {
        return Err(Error::Elsewhere(run.id().to_string()));
    }
    tell(Progress::GoingAround(if send(record.keeper.as_ref(), Signal::KILL) {
        "the keeper does not answer: it is killed, its guard takes over"
    } else {
        "the keeper does not answer, and is not there to be killed"
    }));
    if let Some(report) = watch_record(run, Instant::now() + TAKE_OVER).await? {
        return Ok(report);
    }
    tell(Progress::GoingAround(if send(record.guard.as_ref(), Signal::CONT) {
        "the guard is silent: it is continued"
    } else {
        "the guard is silent, and is not there to be continued"
    }));
    if let Some(report) = watch_record(run, Instant::now() + LAST_STEP).await? {
        return Ok(report);
    }
    tell(Progress::GoingAround(if send(record.guard.as_ref(), Signal::KILL) {
        "the guard does nothing: it is killed, the cage is swept"
    } else {
        "the guard cannot be killed from here"
    }));
    if let Some(report) = watch_record(run, Instant::now() + LAST_STEP).await? {
        return Ok(report);
    }
    // Whoever holds the lock was never written down. Its members can be killed all
    // the same, if there is a cgroup to do it by.
    let killed = fullstop_keeper::sweep::kill_cgroup(&record);
    let what = if killed { "its processes were killed, but" } else { "it may live on:" };
    let id = run.id();
    Err(Error::TimedOut(format!("run {id}: {what} its keeper can neither be asked nor replaced")))
}

/// Only to the very process that was written down. Without an inode of pidfs that
/// cannot be told here, and nobody is signalled. Returns whether somebody was.
fn send(identity: Option<&Identity>, signal: Signal) -> bool {
    let held = identity.and_then(|identity| Held::known(identity, |_| false));
    held.is_some_and(|held| held.send(signal).is_ok())
}

/// How long a stop may take: its ladder, its last step or its drain, and a little.
fn patience(run: &Run) -> Duration {
    let spec = run.spec().ok();
    let ladder = spec.as_ref().map(|spec| spec.plan.ladder.clone()).unwrap_or_default();
    let streams = spec.map(|spec| spec.streams).unwrap_or_default();
    let last = streams.with_last_step(ladder.kill_patience());
    ladder.total().saturating_add(last).saturating_add(SLACK)
}

/// Waits for the end.
pub(crate) async fn wait(run: &Run) -> Result<Report> {
    loop {
        let lock = run.runs().store().watch(run.id());
        let watch = Request::Watch { generation: run.generation() };
        let mut line = match accept(run, &watch).await {
            Ok(Accepted::Over(report)) => {
                let_go_of(lock.as_ref(), &report).await;
                return Ok(*report);
            }
            Ok(Accepted::By(line, _)) => line,
            // A keeper that hangs may come back; whoever waits only waits.
            Err(Error::TimedOut(_)) => continue,
            Err(error) => return Err(error),
        };
        while let Ok(Some(reply)) = line.hear().await {
            match reply {
                Reply::Report { report } if report.proof.is_some() || !is_stuck(&report) => {
                    let_go_of(lock.as_ref(), &report).await;
                    return Ok(*report);
                }
                _ => {}
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

fn is_stuck(report: &Report) -> bool {
    report.state == fullstop_core::report::Verdict::Stuck
}
