//! A start that was handed to a keeper, which has not said yet what became of it.

use crate::error::{Error, Result};
use crate::line::Line;
use fullstop_protocol::{Reply, RequestKind, StopReason};

/// The line to that keeper. Until it has answered, the caller knows no id of the run: if this
/// is dropped before, the run is stopped.
pub(crate) struct Unanswered(Option<Line>);

impl Unanswered {
    pub fn new(line: Line) -> Unanswered {
        Unanswered(Some(line))
    }

    /// What the keeper says first; nothing, if it has hung up.
    pub async fn answer(mut self) -> Result<(Option<Reply>, Line)> {
        let untold = || Error::not_started("the line to the keeper was used twice");
        let line = self.0.as_mut().ok_or_else(untold)?;
        let reply = line.hear().await.map_err(Error::io("hear the keeper"))?;
        Ok((reply, self.0.take().ok_or_else(untold)?))
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.say_last(RequestKind::Stop { reason: StopReason::Stopped, signal: None });
        }
    }
}
