//! The connection of a window to a keeper. Nothing here waits, but for opening it.

use super::attachment::AttachOptions;
use super::work::Attached;
use crate::error::{Error, Result};
use crate::orders::await_there;
use crate::run::Run;
use crate::stop::{self, Accepted};
use fullstop_protocol::{Frame, FrameDecoder, RequestKind, Size};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// How much is typed in one frame, and read at once.
const PIECE: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    frames: FrameDecoder,
    unsent: Vec<u8>,
    /// The keeper has hung up: what is sent is lost.
    is_hung_up: bool,
}

impl Link {
    /// Attaches to a run.
    pub async fn open(run: &Run, options: AttachOptions) -> Result<Attached> {
        let run = run.unhosted();
        await_there(async move { Link::open_there(&run, options).await }).await
    }

    async fn open_there(run: &Run, options: AttachOptions) -> Result<Attached> {
        let AttachOptions { size, view, owner } = options;
        let attach = RequestKind::Attach { size, view, owner, sizes: true };
        match stop::accept(run, &attach).await? {
            Accepted::Over(report) => Ok(Attached::Over(report)),
            Accepted::By(line, _) => {
                let fail = Error::io("use the line to the keeper");
                let (stream, beyond) = line.into_parts().map_err(fail)?;
                let mut frames = FrameDecoder::default();
                frames.feed(&beyond);
                Ok(Attached::To(Link { stream, frames, unsent: Vec::new(), is_hung_up: false }))
            }
        }
    }

    /// The next thing said; nothing, once the keeper has hung up.
    pub fn hear(&mut self) -> io::Result<Option<Frame>> {
        let mut buffer = [0; PIECE];
        loop {
            if let Some(frame) = self.frames.next() {
                return frame.map(Some).map_err(io::Error::other);
            }
            match recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(None),
                Ok((length, _)) => self.frames.feed(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::WouldBlock.into()),
                // It died with something unread.
                Err(_) => return Ok(None),
            }
        }
    }

    pub fn type_bytes(&mut self, typed: &[u8]) {
        for piece in typed.chunks(PIECE) {
            self.unsent.extend(Frame::Bytes(piece.to_vec()).encode());
        }
    }

    pub fn resize(&mut self, size: Size) {
        self.unsent.extend(Frame::Resize(size.clamped()).encode());
    }

    pub fn tell_shown(&mut self, bytes: u64, refusal: Option<String>) {
        self.unsent.extend(Frame::Shown { bytes, refusal }.encode());
    }

    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    pub fn is_hung_up(&self) -> bool {
        self.is_hung_up
    }

    /// Sends what can be sent without waiting. What the keeper has said before it hung up is
    /// still to be heard.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match send(&self.stream, &self.unsent, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(_) => {
                    self.unsent.clear();
                    self.is_hung_up = true;
                }
            }
        }
        if self.is_hung_up { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
