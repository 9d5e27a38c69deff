//! A window's connection to a keeper, and what becomes of it when the keeper dies.
//!
//! Nothing here waits, so that whoever shows a window can wait for its terminal and
//! for signals at the same time, with a runtime or without.

use crate::error::{Error, Result};
use crate::orders::await_there;
use crate::run::Run;
use crate::stop::{self, Accepted};
use fullstop_core::words::Stream;
use fullstop_protocol::Report;
use fullstop_protocol::Size;
use fullstop_protocol::{Frame, Frames, RequestKind};
use fullstop_store::{LogReader, Piece};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// How much is typed in one piece.
const PIECE: usize = 16 * 1024;

/// What is wanted of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttachRequest {
    pub size: Option<Size>,
    pub view: bool,
    pub owner: bool,
}

/// What attaching came to.
#[derive(Debug)]
pub enum Attached {
    To(Link),
    /// It is over, or stuck: there is no keeper, or none that shows anything.
    Over(Box<Report>),
}

/// The connection itself.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    frames: Frames,
    unsent: Vec<u8>,
}

impl Link {
    /// Attaches to a run.
    pub async fn open(run: &Run, request: AttachRequest) -> Result<Attached> {
        let run = run.unhosted();
        await_there(async move { Link::open_there(&run, request).await }).await
    }

    async fn open_there(run: &Run, request: AttachRequest) -> Result<Attached> {
        let AttachRequest { size, view, owner } = request;
        let attach = RequestKind::Attach { size, view, owner };
        match stop::accept(run, &attach).await? {
            Accepted::Over(report) => Ok(Attached::Over(report)),
            Accepted::By(line, _) => {
                let fail = Error::io("use the line to the keeper");
                let (stream, beyond) = line.into_parts().map_err(fail)?;
                let mut frames = Frames::default();
                frames.feed(&beyond);
                Ok(Attached::To(Link { stream, frames, unsent: Vec::new() }))
            }
        }
    }

    /// The keeper has hung up without a report. If it was killed, its guard ends the
    /// run, and the report is waited for; if it lives, it is asked again. A window
    /// that was the owner's gets the screen like any other.
    pub async fn open_again(run: &Run, request: AttachRequest) -> Result<Attached> {
        loop {
            match Link::open(run, AttachRequest { owner: false, ..request }).await {
                Err(Error::KeeperSilent { .. }) => {}
                done => return done,
            }
            let theirs = run.unhosted();
            if let Some(report) = await_there(async move { stop::glance(&theirs).await }).await? {
                return Ok(Attached::Over(Box::new(report)));
            }
        }
    }

    /// What has come already.
    pub fn heard(&mut self) -> Option<io::Result<Frame>> {
        self.frames.next().map(|frame| frame.map_err(io::Error::other))
    }

    /// The next thing said; nothing, once the keeper has hung up. Does not wait.
    pub fn hear(&mut self) -> io::Result<Option<Frame>> {
        let mut buffer = [0; PIECE];
        loop {
            if let Some(frame) = self.heard() {
                return frame.map(Some);
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

    /// To be sent with the next [`Link::flush`].
    pub fn type_bytes(&mut self, typed: &[u8]) {
        for piece in typed.chunks(PIECE) {
            self.unsent.extend(Frame::Bytes(piece.to_vec()).encode());
        }
    }

    pub fn resize(&mut self, size: Size) {
        self.unsent.extend(Frame::Resize(size.within_reason()).encode());
    }

    /// How much was shown, and why it cannot be more.
    pub fn tell_shown(&mut self, bytes: u64, refusal: Option<String>) {
        self.unsent.extend(Frame::Shown { bytes, refusal }.encode());
    }

    /// How much waits to be sent.
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Sends what can be sent without waiting. That nobody is there any more is told
    /// by [`Link::hear`], behind what was said before.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match send(&self.stream, &self.unsent, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(_) => self.unsent.clear(),
            }
        }
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// What the log holds beyond what a window has shown.
#[derive(Debug)]
pub struct Tail {
    log: Option<LogReader>,
}

impl Tail {
    /// Of a run that is over.
    pub fn of(run: &Run, shown: u64) -> Tail {
        let log = run.runs().store().log(run.id(), Stream::Tty).ok().flatten();
        Tail {
            log: log.map(|mut log| {
                log.go_to(shown);
                log
            }),
        }
    }

    /// The next of it; nothing at its end. A log that cannot be read has none.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        let log = self.log.as_mut()?;
        loop {
            match log.next().ok()?? {
                Piece::Bytes { bytes, .. } => return Some(bytes),
                // The cap of the log has taken it.
                Piece::Cut { .. } => {}
            }
        }
    }
}
