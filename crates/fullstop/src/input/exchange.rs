//! One request about a command's input, brought to its end on a connection that is kept.

use crate::error::{Error, Result};
use crate::line::Line;
use crate::run::Run;
use crate::stop::{Accepted, Silence, accept};
use fullstop_core::duration;
use fullstop_protocol::{Refusal, RefusalCode, ReplyKind, RequestKind, Word};
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a keeper may be silent.
const ANSWER: Duration = Duration::from_secs(1);
/// How often it is tried again where the keeper, of an earlier build, cannot tell of room.
const TRY_EVERY: Duration = Duration::from_millis(20);

pub struct Done {
    /// To be asked on again, if it still can be.
    pub connection: Option<UnixStream>,
    /// How many bytes the request was about.
    pub length: usize,
    pub result: Result<()>,
}

/// Has the request obeyed, once. It waits for a keeper that has no room, and connects again to
/// a keeper that has hung up.
pub async fn exchange(
    run: Run,
    connection: Option<UnixStream>,
    request: RequestKind,
    length: usize,
    patience: Duration,
) -> Done {
    let until = Instant::now() + patience.min(duration::LONGEST);
    let mut exchange = Exchange { run, line: None, until };
    // A connection that cannot be used any more is as good as none.
    exchange.line = connection.and_then(|stream| Line::new(stream).ok());
    let result = exchange.obeyed(&request, length, patience).await;
    let connection = exchange.line.and_then(|line| line.into_std().ok());
    Done { connection, length, result }
}

struct Exchange {
    run: Run,
    line: Option<Line>,
    until: Instant,
}

impl Exchange {
    async fn obeyed(
        &mut self,
        request: &RequestKind,
        length: usize,
        patience: Duration,
    ) -> Result<()> {
        loop {
            let line = match self.line.take() {
                Some(line) => line,
                None => open(&self.run).await?,
            };
            match self.ask(line, request).await? {
                Some(ReplyKind::Refused(refusal)) if is(&refusal, RefusalCode::InputFull) => {
                    let is_timely = self.await_room(length).await?;
                    if !is_timely {
                        return Err(Error::NotRead { id: self.run.id().clone(), patience });
                    }
                }
                Some(ReplyKind::Refused(refusal)) => return Err(refused(&self.run, refusal)),
                Some(_) => return Ok(()),
                // The keeper answers what it obeys. One that has hung up has not obeyed, or is
                // dead: to connect again tells. A keeper that only hangs up is not for ever.
                None if Instant::now() >= self.until + ANSWER => return Err(self.silent()),
                None => {}
            }
        }
    }

    /// Returns whether there is room now, or may be: false, if there was none in time.
    async fn await_room(&mut self, bytes: usize) -> Result<bool> {
        // Behind a hang-up the request is simply tried again.
        let Some(mut line) = self.line.take() else { return Ok(true) };
        let request = RequestKind::AwaitRoom { bytes };
        let room = timeout_at(self.until, line.ask(&self.run, &request)).await;
        // Without an answer the line has a request on it that nobody waits for: it is left.
        let Ok(room) = room else { return Ok(false) };
        match hung_up(room)? {
            None => {}
            Some(ReplyKind::Refused(refusal)) if is(&refusal, RefusalCode::UnknownRequest) => {
                if Instant::now() >= self.until {
                    return Ok(false);
                }
                sleep(TRY_EVERY).await;
                self.line = Some(line);
            }
            // If nothing can be sent any more, the request itself is told why.
            Some(_) => self.line = Some(line),
        }
        Ok(true)
    }

    /// The answer; nothing, if the keeper has hung up.
    async fn ask(&mut self, mut line: Line, request: &RequestKind) -> Result<Option<ReplyKind>> {
        let run = &self.run;
        let keeper =
            || run.runs().store().last_record(run.id()).ok()?.keeper.map(|keeper| keeper.pid);
        let asked = line.ask(run, request);
        let answer = Silence::of(keeper).wait_for(ANSWER, asked).await;
        let reply = hung_up(answer.ok_or_else(|| self.silent())?)?;
        if reply.is_some() {
            self.line = Some(line);
        }
        Ok(reply)
    }

    fn silent(&self) -> Error {
        Error::KeeperSilent { id: self.run.id().clone() }
    }
}

/// Connects. Input without a byte is accepted wherever input can be sent, also by a keeper that
/// is full, and changes nothing.
async fn open(run: &Run) -> Result<Line> {
    let nothing = RequestKind::Input { text: OsString::new().into() };
    match accept(run, &nothing).await {
        Ok(Accepted::By(line, _)) => Ok(line),
        Ok(Accepted::Over(report)) => Err(Error::Ended(report)),
        Err(Error::Refused(refusal)) => Err(refused(run, refusal)),
        Err(error) => Err(error),
    }
}

/// Nothing, if the other end is gone. Whatever else went wrong tells nothing of what the keeper
/// has heard.
fn hung_up(answer: io::Result<Option<ReplyKind>>) -> Result<Option<ReplyKind>> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    match answer {
        Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => Ok(None),
        answer => answer.map_err(Error::io("send input")),
    }
}

fn refused(run: &Run, refusal: Refusal) -> Error {
    match run.generation() {
        Some(meant) if is(&refusal, RefusalCode::Superseded) => {
            Error::Superseded { id: run.id().clone(), meant }
        }
        _ if is(&refusal, RefusalCode::NoStdin) => Error::NoInput { id: run.id().clone() },
        _ => Error::Refused(refusal),
    }
}

fn is(refusal: &Refusal, code: RefusalCode) -> bool {
    refusal.code == Word::Known(code)
}
