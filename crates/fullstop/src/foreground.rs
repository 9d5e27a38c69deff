//! Stops as they are asked for by a program that stands in front of a run.

use crate::error::Result;
use crate::orders::carry_out;
use crate::run::Run;
use crate::stop;
use fullstop_core::signal::Signal;
use fullstop_protocol::{Report, RequestKind, StopReason};

/// What made a program that stands in front of a run ask for its end.
///
/// ```no_run
/// # async fn example(run: fullstop::Run) -> fullstop::Result<()> {
/// use fullstop::{Signal, StopCause};
///
/// // This program has got an INT that is meant for the run.
/// let report = run.stop_because(StopCause::Signal(Signal::INT)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// It has heard this signal, which the first step of the ladder sends on in place of its own.
    Signal(Signal),
    /// The program that it stands there for is gone.
    HostGone,
}

impl StopCause {
    fn request(self) -> RequestKind {
        let (reason, signal) = match self {
            StopCause::Signal(signal) => (StopReason::Stopped, Some(signal)),
            StopCause::HostGone => (StopReason::HostGone, None),
        };
        RequestKind::Stop { reason, signal, within: None }
    }
}

impl Run {
    /// Stops it as if the run itself had heard that, and returns with the report. A keeper that
    /// hangs is gone around, as by [`Run::stop`].
    pub async fn stop_because(&self, cause: StopCause) -> Result<Report> {
        self.end(cause.request(), |_| ()).await
    }

    /// Says the same again while a stop is under way, which may mean more: a signal that is
    /// repeated after a second escalates to the last step. Returns once that was accepted.
    pub async fn repeat_stop(&self, cause: StopCause) -> Result<()> {
        let run = self.unhosted();
        carry_out(async move { stop::accept(&run, &cause.request()).await.map(drop) }).await
    }
}
