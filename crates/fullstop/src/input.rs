//! Input for a command that reads from a pipe or has a terminal of its own.

mod exchange;

use crate::error::{Error, Result};
use crate::keys::Key;
use crate::orders::carry_out;
use crate::run::Run;
use exchange::{Done, exchange};
use fullstop_protocol::RequestKind;
use std::ffi::OsStr;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;

/// So much in one request. A keeper hears lines of up to 64 KiB, in which a byte may take six.
const PIECE: usize = 8 * 1024;
/// How long a command may take to read, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

impl Run {
    /// A way to send it input, by one connection to its keeper for as long as it is held.
    /// Nothing is done before the first call.
    pub fn input(&self) -> Input {
        Input {
            // What is sent to a run does not keep it alive.
            run: self.unhosted(),
            patience: PATIENCE,
            sent: 0,
            given: 0,
            is_closed: false,
            state: State::Idle(None),
        }
    }

    /// Sends it input. Returns when all of it waits for the command to be read; one
    /// that reads nothing for five seconds is an error. For more than one piece of input, or to
    /// know what has arrived if this is dropped, take an [`Input`].
    ///
    /// If the future is dropped, any part of the input may have been sent, from its beginning
    /// on.
    ///
    /// ```no_run
    /// # async fn example(run: fullstop::Run) -> fullstop::Result<()> {
    /// run.send(b"explain this repository\n").await?;
    /// run.close_stdin().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, input: &[u8]) -> Result<()> {
        self.input().send(input).await
    }

    /// As [`Run::send`], but each time the command does not read, it is waited for so
    /// long.
    pub async fn send_within(&self, input: &[u8], patience: Duration) -> Result<()> {
        self.input().with_patience(patience).send(input).await
    }

    /// Types these keys. If the future is dropped, the first of them may have been typed.
    pub async fn send_keys(&self, keys: &[Key], patience: Duration) -> Result<()> {
        self.input().with_patience(patience).send_keys(keys).await
    }

    /// The end of its input, behind whatever was sent; on a terminal, the key that means it. If
    /// the future is dropped, the end may have been sent or not.
    pub async fn close_stdin(&self) -> Result<()> {
        self.input().close().await
    }
}

/// Sends input to a run, in order, each byte once, and knows how much has arrived.
///
/// All of it goes by one connection to the keeper. Where the command does not read, the keeper
/// holds 64 KiB for it, and then each call waits until there is room; for five seconds, or as
/// [`Input::with_patience`] says, and then it is an error that tells how much has arrived
/// ([`Error::PartlySent`]).
///
/// **If a call is dropped**, at most 8 KiB are on their way, and nothing else of its input is
/// sent. What is on its way is not sent twice: the next call first waits for what becomes of it,
/// and [`Input::flush`] does nothing else. [`Input::sent`] is exact from then on.
///
/// As an [`AsyncWrite`], a write has taken up to 8 KiB and does not wait for them: the next one
/// does, and `flush` and `shutdown` do, of which the latter is [`Input::close`]. So an error may
/// belong to the write before.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-input-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Stdin, blocking};
///
/// let report = blocking::wait(async {
///     let run = Command::new("cat").stdin(Stdin::Pipe).runs(&runs).start().await?;
///     let mut input = run.input();
///     input.send(b"one\n").await?;
///     input.send(b"two\n").await?;
///     assert_eq!(input.sent(), 8);
///     input.close().await?;
///     run.wait().await
/// })?;
/// assert_eq!(report.exit, Some(fullstop::Exit::Code(0)));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Input {
    run: Run,
    patience: Duration,
    /// How much has arrived.
    sent: usize,
    /// How much was to be sent so far.
    given: usize,
    /// The end of the input was sent.
    is_closed: bool,
    state: State,
}

enum State {
    /// The connection, if there is one. It needs no runtime while nothing is asked on it.
    Idle(Option<UnixStream>),
    /// One request, until it is obeyed. It is kept here, so that a call that is dropped does not
    /// drop the answer.
    Busy(Pin<Box<dyn Future<Output = Done> + Send + Sync>>),
}

impl Input {
    /// Waits so long, each time the command does not read.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Input {
        self.patience = patience;
        self
    }

    /// How many bytes have arrived: they wait for the command, or it has read them.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Sends this, and returns when all of it has arrived.
    pub async fn send(&mut self, input: &[u8]) -> Result<()> {
        self.flush().await?;
        if input.is_empty() {
            // Whether anything could be sent is told all the same.
            self.begin(input_request(input), 0);
            return self.flush().await;
        }
        self.given += input.len();
        for piece in input.chunks(PIECE) {
            self.begin(input_request(piece), piece.len());
            self.flush().await?;
        }
        Ok(())
    }

    /// Types these keys: as a terminal sends them, or as a command means them that reads from a
    /// pipe.
    pub async fn send_keys(&mut self, keys: &[Key]) -> Result<()> {
        let is_terminal = self.run.spec().await?.output.terminal().is_some();
        let bytes = |key| if is_terminal { Key::typed(key) } else { Key::piped(key) };
        let input: Vec<u8> = keys.iter().flat_map(bytes).copied().collect();
        self.send(&input).await
    }

    /// Sends the end of the input, behind whatever was sent; on a terminal, the key that means
    /// it.
    pub async fn close(&mut self) -> Result<()> {
        poll_fn(|context| self.poll_close(context)).await
    }

    /// Waits until it is known what has become of everything that is on its way.
    pub async fn flush(&mut self) -> Result<()> {
        poll_fn(|context| self.poll_done(context)).await
    }

    /// Must not be called while something is on its way.
    fn begin(&mut self, request: RequestKind, length: usize) {
        let State::Idle(connection) = &mut self.state else { return };
        let connection = connection.take();
        let exchange = exchange(self.run.clone(), connection, request, length, self.patience);
        self.state = State::Busy(Box::pin(async move {
            let done = carry_out(async move { Ok(exchange.await) }).await;
            done.unwrap_or_else(|why| Done { connection: None, length, result: Err(why) })
        }));
    }

    fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let State::Busy(exchange) = &mut self.state else { return Poll::Ready(Ok(())) };
        let Done { connection, length, result } = ready!(exchange.as_mut().poll(context));
        self.state = State::Idle(connection);
        Poll::Ready(match result {
            Ok(()) => {
                self.sent += length;
                Ok(())
            }
            Err(why) => Err(self.with_count(why)),
        })
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_done(context))?;
        if !std::mem::replace(&mut self.is_closed, true) {
            self.begin(RequestKind::CloseStdin, 0);
            let closed = self.poll_done(context);
            return closed;
        }
        Poll::Ready(Ok(()))
    }

    /// Where nothing has arrived, there is nothing to count, unless it was not read.
    fn with_count(&self, why: Error) -> Error {
        let &Input { sent, given, .. } = self;
        if sent == 0 && !why.is_timeout() {
            return why;
        }
        Error::PartlySent { sent, given, why: Box::new(why) }
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_done(context))?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        if !piece.is_empty() {
            self.given += piece.len();
            self.begin(input_request(piece), piece.len());
            // Begun at once: nobody may ever wait for it.
            if let Poll::Ready(done) = self.poll_done(context) {
                done?;
            }
        }
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_done(context).map_err(io::Error::from)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close(context).map_err(io::Error::from)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("run", self.run.id())
            .field("sent", &self.sent)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

fn input_request(piece: &[u8]) -> RequestKind {
    RequestKind::Input { text: OsStr::from_bytes(piece).to_owned().into() }
}

#[cfg(test)]
mod tests;
