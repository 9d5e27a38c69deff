//! Input for a command that reads from a pipe or has a terminal of its own.

use crate::error::{Error, Result};
use crate::helpers::help;
use crate::keys::Key;
use crate::orders::carry_out;
use crate::run::Run;
use crate::stop::accept_living;
use fullstop_protocol::{RefusalCode, RequestKind, Spec, Stdin};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So much in one order. A keeper hears lines of up to 64 KB, in which a byte may take
/// six.
const PIECE: usize = 8 * 1024;
/// How long a command may take to read, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is tried again meanwhile.
const TRY_EVERY: Duration = Duration::from_millis(20);

impl Run {
    /// Sends it input. Returns when all of it waits for the command to be read; one
    /// that reads nothing for five seconds is an error.
    ///
    /// It is sent in pieces of 8 KiB, in order. If the future is dropped, the pieces that were
    /// given by then arrive, each whole, and no more.
    ///
    /// ```no_run
    /// # async fn example(run: fullstop::Run) -> fullstop::Result<()> {
    /// run.send(b"explain this repository\n").await?;
    /// run.close_stdin().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, input: &[u8]) -> Result<()> {
        self.send_within(input, PATIENCE).await
    }

    /// As [`Run::send`], but each time the command does not read, it is waited for so
    /// long.
    pub async fn send_within(&self, input: &[u8], patience: Duration) -> Result<()> {
        Sender::new(self, patience).send(input).await
    }

    /// Types these keys.
    pub async fn send_keys(&self, keys: &[Key], patience: Duration) -> Result<()> {
        Sender::new(self, patience).send_keys(keys).await
    }

    /// The end of its input, behind whatever was sent.
    ///
    /// If the future is dropped after its first poll, its input ends all the same.
    pub async fn close_stdin(&self) -> Result<()> {
        let run = self.unhosted();
        let close = async move {
            run.reads().await?;
            accept_living(&run, &RequestKind::CloseStdin).await
        };
        carry_out(close).await
    }

    /// What it reads from, if anything can be sent there.
    async fn reads(&self) -> Result<Spec> {
        let run = self.unhosted();
        let spec = help(move || run.spec()).await??;
        if spec.stdin == Stdin::Pipe || spec.output.terminal().is_some() {
            return Ok(spec);
        }
        Err(Error::NoInput { id: self.id().clone() })
    }

    async fn give(&self, request: &RequestKind) -> Result<()> {
        self.ask(request.clone()).await
    }
}

/// Sends input that comes in parts, and knows how much of all of it has arrived.
#[derive(Debug)]
pub struct Sender<'r> {
    run: &'r Run,
    patience: Duration,
    /// How much has arrived.
    sent: usize,
    /// How much was to be sent so far.
    given: usize,
}

impl<'r> Sender<'r> {
    pub fn new(run: &'r Run, patience: Duration) -> Sender<'r> {
        Sender { run, patience, sent: 0, given: 0 }
    }

    /// How many bytes have arrived.
    pub fn sent(&self) -> usize {
        self.sent
    }

    pub async fn send(&mut self, input: &[u8]) -> Result<()> {
        self.run.reads().await?;
        self.given += input.len();
        for piece in input.chunks(PIECE) {
            self.send_piece(piece).await?;
            self.sent += piece.len();
        }
        Ok(())
    }

    pub async fn send_keys(&mut self, keys: &[Key]) -> Result<()> {
        let terminal = self.run.reads().await?.output.terminal().is_some();
        let bytes = |key| if terminal { Key::typed(key) } else { Key::piped(key) };
        let input: Vec<u8> = keys.iter().flat_map(bytes).copied().collect();
        self.send(&input).await
    }

    async fn send_piece(&self, piece: &[u8]) -> Result<()> {
        let text = OsStr::from_bytes(piece).to_owned().into();
        let request = RequestKind::Input { text };
        let until = Instant::now() + self.patience;
        while let Err(error) = self.run.give(&request).await {
            let is_full = matches!(&error, Error::Refused(refusal)
                if refusal.code == RefusalCode::InputFull);
            if !is_full {
                return Err(self.with_count(error));
            }
            if Instant::now() >= until {
                let (id, patience) = (self.run.id().clone(), self.patience);
                return Err(self.with_count(Error::NotRead { id, patience }));
            }
            sleep(TRY_EVERY).await;
        }
        Ok(())
    }

    /// Where nothing has arrived, there is nothing to count, unless it was not read.
    fn with_count(&self, why: Error) -> Error {
        let &Sender { sent, given, .. } = self;
        if sent == 0 && !why.is_timeout() {
            return why;
        }
        Error::PartlySent { sent, given, why: Box::new(why) }
    }
}

#[cfg(test)]
mod tests;
