//! A start whose caller knows no id of its run yet. If it is dropped, the run is stopped.

use crate::error::{Error, Result};
use crate::line::Line;
use crate::run::Run;
use fullstop_protocol::{Reply, RequestKind, StopReason};

fn take_back() -> RequestKind {
    RequestKind::Stop { reason: StopReason::Stopped, signal: None, within: None }
}

/// The line to a keeper that was handed a start and has not said yet what became of it.
pub(crate) struct Unanswered {
    line: Option<Line>,
    by: Option<String>,
}

impl Unanswered {
    pub fn new(line: Line, by: Option<&str>) -> Unanswered {
        Unanswered { line: Some(line), by: by.map(str::to_owned) }
    }

    /// What the keeper says first; nothing, if it has hung up.
    pub async fn answer(mut self) -> Result<(Option<Reply>, Line)> {
        let untold = || Error::not_started("the line to the keeper was used twice");
        let line = self.line.as_mut().ok_or_else(untold)?;
        let reply = line.hear().await.map_err(Error::io("hear the keeper"))?;
        Ok((reply, self.line.take().ok_or_else(untold)?))
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.say_last(self.by.as_deref(), take_back());
        }
    }
}

/// A run that has begun, on its way to the caller.
pub(crate) struct Undelivered(Option<Run>);

impl Undelivered {
    pub fn new(run: Run) -> Undelivered {
        Undelivered(Some(run))
    }

    pub fn deliver(mut self) -> Result<Run> {
        self.0.take().ok_or(Error::Unfinished)
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(run) = &self.0 {
            run.say_as_host(take_back());
        }
    }
}
