//! Stopping many runs at once.

use crate::error::Result;
use crate::orders;
use crate::run::Run;
use crate::stop::{self, Progress};
use fullstop_core::id::Id;
use fullstop_protocol::{Report, RequestKind, StopReason};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// What is ordered.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-order-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Order, EndUpdate, blocking, end_all};
///
/// for _ in 0..3 {
///     blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// }
/// let live = blocking::wait(runs.live())?;
/// let mut ended = 0;
/// let all = end_all(live, Order::Kill, |id, update| {
///     if let EndUpdate::Done(Ok(report)) = update {
///         println!("{id}: {}", report.state.word());
///         ended += 1;
///     }
/// });
/// blocking::wait(async { Ok(all.await) })?;
/// assert_eq!(ended, 3);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// By the ladder.
    Stop,
    /// By the ladder, which is cut short when this time is over.
    StopWithin(Duration),
    /// The last step, now.
    Kill,
}

impl Order {
    pub(crate) fn request(self) -> RequestKind {
        let stop = |within| {
            let reason = StopReason::Stopped;
            RequestKind::Stop { reason, signal: None, within }
        };
        match self {
            Order::Stop => stop(None),
            Order::StopWithin(total) => stop(Some(total)),
            Order::Kill => RequestKind::Kill,
        }
    }
}

/// What [`end_all`] tells of one of its runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum EndUpdate {
    /// How its stop goes.
    Progress(Progress),
    /// How it ended, or what went wrong.
    Done(Result<Box<Report>>),
}

/// Ends all of them side by side, telling how each goes and how it ended, as soon as it
/// has. What goes wrong with one holds up no other.
///
/// The first poll gives all the orders: if the future is dropped then, all of them are carried
/// out all the same. If it is dropped before, none was given.
pub async fn end_all(runs: Vec<Run>, order: Order, mut tell: impl FnMut(&Id, EndUpdate)) {
    let tell = |news: Option<(&Id, EndUpdate)>| {
        if let Some((id, update)) = news {
            tell(id, update);
        }
    };
    end_all_with_ticks(runs, order, None, tell).await;
}

/// As [`end_all`], for a caller that draws a clock meanwhile: `tell` gets `None` whenever
/// nothing has happened for the time of `idle`.
pub async fn end_all_with_ticks(
    runs: Vec<Run>,
    order: Order,
    idle: Option<Duration>,
    mut tell: impl FnMut(Option<(&Id, EndUpdate)>),
) {
    let (sender, mut told) = mpsc::unbounded_channel();
    let end = |run: &Run| {
        let (sender, run) = (sender.clone(), run.unhosted());
        async move {
            let tell =
                |progress| drop(sender.send((run.id().clone(), EndUpdate::Progress(progress))));
            let ended = stop::order(&run, &order.request(), tell).await;
            let _ = sender.send((run.id().clone(), EndUpdate::Done(ended.map(Box::new))));
            Ok(())
        }
    };
    let given: Vec<_> = runs.iter().map(|run| (run.id(), orders::give(end(run)))).collect();
    drop(sender);
    // It ends when the last of them has dropped its end of the channel.
    loop {
        match next_or_idle(told.recv(), idle).await {
            Some(Some((id, update))) => tell(Some((&id, update))),
            Some(None) => break,
            None => tell(None),
        }
    }
    for (id, given) in given {
        // A panic of ours is said, and not passed over.
        if let Err(error) = async { given?.await }.await {
            tell(Some((id, EndUpdate::Done(Err(error)))));
        }
    }
}

/// What comes next; nothing, if that takes so long. The caller's executor may have no timer.
async fn next_or_idle<T>(next: impl Future<Output = T>, idle: Option<Duration>) -> Option<T> {
    let Some(idle) = idle else { return Some(next.await) };
    let mut next = pin!(next);
    let mut clock = pin!(orders::await_there(async move {
        sleep(idle).await;
        Ok(())
    }));
    let mut has_clock = true;
    poll_fn(|context| {
        if let Poll::Ready(next) = next.as_mut().poll(context) {
            return Poll::Ready(Some(next));
        }
        if has_clock && let Poll::Ready(passed) = clock.as_mut().poll(context) {
            // Where no clock can be had, the next news is waited for.
            has_clock = false;
            if passed.is_ok() {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    })
    .await
}

/// Asks for the end of all of them side by side, telling which were accepted.
///
/// The first poll asks all of them: if the future is dropped then, all are asked all the same. If
/// it is dropped before, none is.
pub async fn ask_all(runs: Vec<Run>, order: Order, mut tell: impl FnMut(&Id, Result<()>)) {
    let (sender, mut told) = mpsc::unbounded_channel();
    let ask = |run: &Run| {
        let (sender, run) = (sender.clone(), run.unhosted());
        async move {
            let asked = stop::accept_living(&run, &order.request()).await;
            let _ = sender.send((run.id().clone(), asked));
            Ok(())
        }
    };
    let given: Vec<_> = runs.iter().map(|run| (run.id(), orders::give(ask(run)))).collect();
    drop(sender);
    while let Some((id, asked)) = told.recv().await {
        tell(&id, asked);
    }
    for (id, given) in given {
        if let Err(error) = async { given?.await }.await {
            tell(id, Err(error));
        }
    }
}
