//! The two sides of a window. They share the attachment, which neither holds while it waits.

use crate::any_of::any_of;
use crate::attach::{Attachment, Finished, Next, WindowEvent};
use crate::error::{Error, Result};
use crate::keys::Key;
use fullstop_protocol::Size;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::Notify;

/// The side of a [`Window`](crate::Window) that shows.
///
/// [`Window::split`](crate::Window::split) has an example.
pub struct WindowReader {
    shared: Arc<Shared>,
    /// Kept here, so that a call that is dropped does not drop what the window waits for.
    work: Option<Pin<Box<dyn Future<Output = Finished> + Send + Sync>>>,
}

/// The side of a [`Window`](crate::Window) that types.
///
/// [`Window::split`](crate::Window::split) has an example.
#[derive(Debug)]
pub struct WindowWriter {
    shared: Arc<Shared>,
    typed: u64,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// Something is unsent that the reading half may have to send.
    unsent: Notify,
}

#[derive(Debug)]
struct Inner {
    attachment: Attachment,
    /// A second descriptor of its connection, by which the runtime waits.
    ready: Option<Arc<UnixStream>>,
}

/// What the runtime is to wait for.
type Wait = (Arc<UnixStream>, Interest);

pub(super) fn of(attachment: Attachment) -> (WindowReader, WindowWriter) {
    let inner = Mutex::new(Inner { attachment, ready: None });
    let shared = Arc::new(Shared { inner, unsent: Notify::new() });
    (WindowReader { shared: Arc::clone(&shared), work: None }, WindowWriter { shared, typed: 0 })
}

impl WindowReader {
    /// What is to be shown next. Meanwhile, what is still unsent is sent.
    ///
    /// If the keeper is killed, what the terminal's log holds beyond what was shown
    /// follows, and then the report of the guard.
    ///
    /// If the future is dropped, nothing is lost: the next call goes on where it was.
    pub async fn next(&mut self) -> Result<WindowEvent> {
        loop {
            if let Some(work) = &mut self.work {
                let finished = work.as_mut().await;
                self.work = None;
                self.shared.lock().attachment.finish(finished)?;
            }
            let (next, wait) = self.shared.lock().next()?;
            match next {
                Next::Show(shown) => return Ok(shown),
                Next::Work(work) => self.work = Some(Box::pin(work.run())),
                Next::Wait => {
                    let unsent = self.shared.unsent.notified();
                    match wait {
                        Some((ready, interest)) => {
                            let ready = async { drop(ready.ready(interest).await) };
                            any_of([Box::pin(ready), Box::pin(unsent)]).await;
                        }
                        None => unsent.await,
                    }
                }
            }
        }
    }
}

impl WindowWriter {
    /// Types this. Returns once the keeper has it, or its socket: it waits where the command does
    /// not read.
    ///
    /// If the future is dropped, either nothing of it is typed, or all of it is, by whatever is
    /// done next on either side: [`WindowWriter::typed`] counts what was taken. What was taken
    /// is lost only with the keeper.
    pub async fn type_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.flush().await?;
        self.shared.lock().attachment.type_bytes(bytes)?;
        self.typed += bytes.len() as u64;
        self.flush().await
    }

    /// Types these keys, as [`WindowWriter::type_bytes`] does.
    pub async fn type_keys(&mut self, keys: &[Key]) -> Result<()> {
        let bytes: Vec<u8> = keys.iter().flat_map(Key::typed).copied().collect();
        self.type_bytes(&bytes).await
    }

    /// Tells how large the window is now. If the future is dropped, it is told with whatever is
    /// done next.
    pub async fn resize(&mut self, size: Size) -> Result<()> {
        self.shared.lock().resize(size)?;
        self.flush().await
    }

    /// How many bytes were taken to be typed.
    pub fn typed(&self) -> u64 {
        self.typed
    }

    /// Waits until nothing is unsent.
    async fn flush(&self) -> Result<()> {
        loop {
            let ready = {
                let mut inner = self.shared.lock();
                match inner.flush() {
                    Ok(()) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => inner.ready()?,
                    Err(_) => return Err(inner.closed()),
                }
            };
            // If this is dropped, the other side sends the rest.
            self.shared.unsent.notify_one();
            let Some(ready) = ready else { return Ok(()) };
            ready.writable().await.map_err(Error::io("type"))?;
        }
    }
}

impl Shared {
    /// Never held over an await.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// What is to be done next, and what to wait for if that is to wait.
    fn next(&mut self) -> Result<(Next, Option<Wait>)> {
        let _ = self.flush();
        let found = self.look();
        // What comes next may have another connection, or none.
        if self.attachment.descriptor().is_none() {
            self.ready = None;
        }
        found
    }

    fn look(&mut self) -> Result<(Next, Option<Wait>)> {
        let mut next = self.attachment.advance()?;
        // Whatever an owner was given before, it has shown by now: it asks for more.
        if matches!(next, Next::Wait) && self.attachment.awaits_confirmation() {
            self.attachment.confirm(self.attachment.shown(), None);
            let _ = self.flush();
        }
        if !matches!(next, Next::Wait) {
            return Ok((next, None));
        }
        let Some(ready) = self.ready()? else { return Ok((next, None)) };
        // Once more, so that the runtime knows that nothing was there.
        let looked = ready.try_io(Interest::READABLE, || match self.attachment.advance() {
            Ok(Next::Wait) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other),
        });
        if let Ok(found) = looked {
            next = found?;
        }
        let is_unsent = self.attachment.unsent() > 0;
        let write = is_unsent.then_some(Interest::WRITABLE);
        let interest = write.map_or(Interest::READABLE, |write| Interest::READABLE | write);
        Ok((next, Some((ready, interest))))
    }

    /// An error is one of [`Attachment::flush`].
    fn flush(&mut self) -> io::Result<()> {
        match self.attachment.flush() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            flushed => return flushed,
        }
        let Ok(Some(ready)) = self.ready() else { return Err(io::ErrorKind::WouldBlock.into()) };
        // Once more, so that the runtime knows that there was no room.
        ready.try_io(Interest::WRITABLE, || self.attachment.flush())
    }

    fn resize(&mut self, size: Size) -> Result<()> {
        self.attachment.resize(size);
        if self.attachment.descriptor().is_some() { Ok(()) } else { Err(self.closed()) }
    }

    fn closed(&self) -> Error {
        Error::WindowClosed { id: self.attachment.run().id().clone() }
    }

    /// By which the runtime waits, if there is a connection.
    fn ready(&mut self) -> Result<Option<Arc<UnixStream>>> {
        let Some(descriptor) = self.attachment.descriptor() else {
            self.ready = None;
            return Ok(None);
        };
        if self.ready.is_none() {
            let fail = |error| Error::io("wait for the keeper")(error);
            let second = StdStream::from(descriptor.try_clone_to_owned().map_err(fail)?);
            second.set_nonblocking(true).map_err(fail)?;
            self.ready = Some(Arc::new(UnixStream::from_std(second).map_err(fail)?));
        }
        Ok(self.ready.clone())
    }
}

impl fmt::Debug for WindowReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowReader").field("shared", &self.shared).finish_non_exhaustive()
    }
}
