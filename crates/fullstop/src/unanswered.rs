//! A start whose caller knows no id of its run yet. If it is dropped, the run is stopped.

use crate::error::{Error, Result};
use crate::line::Line;
use crate::run::Run;
use crate::stop::Silence;
use fullstop_protocol::{Reply, RequestKind, StopReason};
use std::time::Duration;

/// A keeper says within milliseconds whether the command runs; on a machine that stalls, or where
/// a thousand are started at once, within a minute. What only holds the line never says it: a
/// program that is no keeper may have left it to a child.
const PATIENCE: Duration = Duration::from_mins(5);

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
    pub async fn answer(self) -> Result<(Option<Reply>, Line)> {
        self.answer_within(PATIENCE).await
    }

    async fn answer_within(mut self, patience: Duration) -> Result<(Option<Reply>, Line)> {
        let untold = || Error::not_started("the line to the keeper was used twice");
        let line = self.line.as_mut().ok_or_else(untold)?;
        // Whose time it would be is not known yet.
        let heard = Silence::of(|| None).wait_for(patience, line.hear()).await;
        let deaf = || Error::not_started("what was started does not say whether the command runs");
        let reply = heard.ok_or_else(deaf)?.map_err(Error::io("hear the keeper"))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::wait;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixStream;

    #[test]
    fn one_that_never_answers_is_not_waited_for_and_the_start_is_taken_back() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let answer = wait(async {
            let unanswered = Unanswered::new(Line::new(ours)?, None);
            unanswered.answer_within(Duration::from_millis(300)).await.map(|_| ())
        });
        assert!(matches!(answer, Err(Error::NotStarted(_))), "{answer:?}");
        let said = BufReader::new(theirs).lines().next().expect("a line").expect("read");
        assert!(said.contains(r#""type":"stop""#), "{said}");
    }
}
