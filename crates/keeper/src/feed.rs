//! The leader's input, where somebody stands between: a ladder with `close-stdin` or
//! `input:"…"`, `--stdin pipe`, a terminal of its own.
//!
//! Usually the command keeps the stdin it was given.

use crate::backlog::Backlog;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{SpecialCodeIndex, tcgetattr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// As much as a pipe holds; no more is read before it was written.
const CHUNK: usize = 64 * 1024;
/// What others may send before the command has read it.
pub const MOST_WAITING: usize = 64 * 1024;

#[derive(Debug)]
pub struct Feed {
    source: Option<OwnedFd>,
    sink: Option<OwnedFd>,
    is_terminal: bool,
    waiting: Backlog,
    closing: bool,
}

impl Feed {
    /// Passes on what comes from `source`, and what others send; returns the end the
    /// leader reads from.
    pub fn new(source: Option<OwnedFd>) -> io::Result<(Feed, OwnedFd)> {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok((Feed::with(source, ours, false), theirs))
    }

    /// Types into a terminal.
    pub fn typing(master: OwnedFd) -> Feed {
        Feed::with(None, master, true)
    }

    fn with(source: Option<OwnedFd>, sink: OwnedFd, is_terminal: bool) -> Feed {
        let waiting = Backlog::default();
        Feed { source, sink: Some(sink), is_terminal, waiting, closing: false }
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        [&self.source, &self.sink].into_iter().flatten().map(AsRawFd::as_raw_fd).collect()
    }

    /// What to wait for: room while something waits, otherwise more to pass on.
    pub fn interest(&self) -> Option<PollFd<'_>> {
        match (&self.source, &self.sink) {
            (_, Some(sink)) if !self.waiting.is_empty() => Some(PollFd::new(sink, PollFlags::OUT)),
            (Some(source), Some(_)) => Some(PollFd::new(source, PollFlags::IN)),
            _ => None,
        }
    }

    /// Called when what we waited for has come.
    pub fn service(&mut self) {
        if self.waiting.is_empty() {
            self.read();
        }
        self.write();
    }

    /// How much may be sent now.
    pub fn room(&self) -> usize {
        let open = self.sink.is_some() && !self.closing;
        if open { MOST_WAITING.saturating_sub(self.waiting.len()) } else { 0 }
    }

    pub fn is_closed(&self) -> bool {
        self.sink.is_none() || self.closing
    }

    /// Behind whatever is still on its way.
    pub fn input(&mut self, text: &[u8]) {
        self.waiting.push(text);
        self.write();
    }

    /// The command sees the end of its input once it has read what is on its way. A
    /// terminal has no end; it is told by a key.
    pub fn close(&mut self) {
        if self.is_terminal {
            let end = self.end_key();
            return self.input(&[end]);
        }
        self.source = None;
        self.closing = true;
        self.write();
    }

    /// Ctrl-D, unless the terminal was told otherwise.
    fn end_key(&self) -> u8 {
        const CTRL_D: u8 = 4;
        let settings = self.sink.as_ref().and_then(|sink| tcgetattr(sink).ok());
        settings.map_or(CTRL_D, |settings| settings.special_codes[SpecialCodeIndex::VEOF])
    }

    fn read(&mut self) {
        let Some(source) = &self.source else { return };
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(source, &mut chunk) {
            Ok(0) => self.close(),
            Ok(length) => self.waiting.push(&chunk[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(),
        }
    }

    fn write(&mut self) {
        let Some(sink) = &self.sink else { return };
        // Where nobody reads any more, whoever writes to us should know.
        if self.waiting.write(sink, usize::MAX).is_err() {
            self.closing = true;
        }
        if self.closing && self.waiting.is_empty() {
            self.source = None;
            self.sink = None;
        }
    }
}
