//! The leader's stdin, where the ladder has a step that needs it.
//!
//! Usually the command keeps the stdin it was given. A ladder with `close-stdin`
//! or `input:"…"` puts a pipe in between, through which we pass everything on.

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// As much as a pipe holds; no more is read before it was written.
const CHUNK: usize = 64 * 1024;

#[derive(Debug)]
pub struct Feed {
    source: Option<OwnedFd>,
    sink: Option<OwnedFd>,
    waiting: Vec<u8>,
    closing: bool,
}

impl Feed {
    /// Takes a copy of our stdin; returns the end the leader reads from.
    pub fn new() -> io::Result<(Feed, OwnedFd)> {
        let source = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3).ok();
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok((Feed { source, sink: Some(ours), waiting: Vec::new(), closing: false }, theirs))
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
    pub fn turn(&mut self) {
        if self.waiting.is_empty() {
            self.read();
        }
        self.write();
    }

    /// Behind whatever is still on its way.
    pub fn input(&mut self, text: &str) {
        self.waiting.extend_from_slice(text.as_bytes());
        self.write();
    }

    /// The command sees the end of its input once it has read what is on its way.
    pub fn close(&mut self) {
        self.source = None;
        self.closing = true;
        self.write();
    }

    fn read(&mut self) {
        let Some(source) = &self.source else { return };
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(source, &mut chunk) {
            Ok(0) => self.close(),
            Ok(length) => {
                chunk.truncate(length);
                self.waiting = chunk;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(),
        }
    }

    fn write(&mut self) {
        let Some(sink) = &self.sink else { return };
        while !self.waiting.is_empty() {
            match rustix::io::write(sink, &self.waiting) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // Nobody reads any more; whoever writes to us should know.
                Err(_) => {
                    self.waiting.clear();
                    self.closing = true;
                }
            }
        }
        if self.closing {
            self.source = None;
            self.sink = None;
        }
    }
}
