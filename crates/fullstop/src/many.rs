//! Stopping many runs at once.

use crate::error::Result;
use crate::run::Run;
use crate::stop::Progress;
use fullstop_core::id::Id;
use fullstop_protocol::Report;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What is ordered.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-order-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Order, Update, blocking, end_all};
///
/// for _ in 0..3 {
///     blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// }
/// let live = blocking::wait(runs.live())?;
/// let mut ended = 0;
/// let all = end_all(live, Order::Kill, |id, update| {
///     if let Update::Done(Ok(report)) = update {
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
pub enum Order {
    /// By the ladder.
    Stop,
    /// The last step, now.
    Kill,
}

/// What is told of one of many.
#[derive(Debug)]
#[non_exhaustive]
pub enum Update {
    /// How its stop goes.
    Progress(Progress),
    /// How it ended, or what went wrong.
    Done(Result<Box<Report>>),
}

/// Ends all of them side by side, telling how each goes and how it ended, as soon as it
/// has. What goes wrong with one holds up no other.
pub async fn end_all(runs: Vec<Run>, order: Order, mut tell: impl FnMut(&Id, Update)) {
    let tell = |news: Option<(&Id, Update)>| {
        if let Some((id, update)) = news {
            tell(id, update);
        }
    };
    end_all_with_clock(runs, order, None, tell).await;
}

/// As [`end_all`], for one who draws a clock meanwhile: it is told nothing whenever
/// nothing has happened for so long.
pub async fn end_all_with_clock(
    runs: Vec<Run>,
    order: Order,
    idle: Option<Duration>,
    mut tell: impl FnMut(Option<(&Id, Update)>),
) {
    let (teller, mut told) = mpsc::unbounded_channel();
    let mut stops = JoinSet::new();
    for run in runs {
        let teller = teller.clone();
        stops.spawn(async move {
            let id = run.id().clone();
            let tell = |progress| drop(teller.send((id.clone(), Update::Progress(progress))));
            let ended = match order {
                Order::Stop => run.stop_with(tell).await,
                Order::Kill => run.kill_with(tell).await,
            };
            let _ = teller.send((id, Update::Done(ended.map(Box::new))));
        });
    }
    drop(teller);
    // It ends when the last of them has dropped its end of the channel.
    loop {
        match timeout(idle.unwrap_or(Duration::MAX), told.recv()).await {
            Ok(Some((id, update))) => tell(Some((&id, update))),
            Ok(None) => break,
            Err(_) => tell(None),
        }
    }
    while let Some(ended) = stops.join_next().await {
        // A task of ours that panicked: said, and not passed over.
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Asks for the end of all of them side by side, telling which were accepted.
pub async fn ask_all(runs: Vec<Run>, order: Order, mut tell: impl FnMut(&Id, Result<()>)) {
    let mut asks = JoinSet::new();
    for run in runs {
        asks.spawn(async move {
            let asked = match order {
                Order::Stop => run.ask_to_stop().await,
                Order::Kill => run.ask_to_kill().await,
            };
            (run.id().clone(), asked)
        });
    }
    while let Some(asked) = asks.join_next().await {
        match asked {
            Ok((id, asked)) => tell(&id, asked),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
