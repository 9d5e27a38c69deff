//! Stopping many runs at once.

use crate::error::Result;
use crate::run::Run;
use crate::stop::Progress;
use fullstop_core::id::Id;
use fullstop_core::report::Report;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What is ordered.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-order-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Order, blocking, end_all};
///
/// for _ in 0..3 {
///     blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// }
/// let live = runs.live()?;
/// let ended = blocking::wait(async { Ok(end_all(live, Order::Kill, |_, _| ()).await) })?;
/// assert!(ended.len() == 3 && ended.into_iter().all(|(_, report)| report.is_ok()));
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

/// Ends all of them side by side, telling how each goes. Returns in the order in
/// which they ended; what goes wrong with one holds up no other.
pub async fn end_all(
    runs: Vec<Run>,
    order: Order,
    mut tell: impl FnMut(&Id, Progress),
) -> Vec<(Id, Result<Report>)> {
    let (teller, mut told) = mpsc::unbounded_channel();
    let mut stops = JoinSet::new();
    for run in runs {
        let teller = teller.clone();
        stops.spawn(async move {
            let id = run.id().clone();
            let tell = |progress| drop(teller.send((id.clone(), progress)));
            let ended = match order {
                Order::Stop => run.stop_with(tell).await,
                Order::Kill => run.kill_with(tell).await,
            };
            (id, ended)
        });
    }
    drop(teller);
    let mut all = Vec::new();
    // It ends when the last of them has dropped its end of the channel.
    while let Some((id, progress)) = told.recv().await {
        tell(&id, progress);
    }
    while let Some(ended) = stops.join_next().await {
        match ended {
            Ok(ended) => all.push(ended),
            // A task of ours that panicked: said, and not passed over.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    all
}

impl Order {
    /// Asks for it, and returns once that was accepted.
    pub async fn ask(self, run: &Run) -> Result<()> {
        match self {
            Order::Stop => run.ask_to_stop().await,
            Order::Kill => run.ask_to_kill().await,
        }
    }
}
