//! One pipe of the command's: into the log, and to the owner if there is one.

use super::owner::{Lost, Offered, Owner};
use super::shown::Shown;
use crate::ledger::unix_us;
use fullstop_cage::linux::now;
use fullstop_core::words::{Moment, Stream};
use fullstop_protocol::CapturedStream;
use fullstop_store::{Log, Took};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// What a pipe holds when it is made.
const USUAL: usize = 64 * 1024;
/// What it holds in a flood. It counts against what a user may have in all pipes
/// together, so that it is given back.
const WIDE: usize = 1024 * 1024;
/// So long after a flood.
const CALM: Duration = Duration::from_secs(1);
/// After so much others get their turn.
const TURN: usize = 4 * WIDE;

#[derive(Debug)]
pub struct Channel {
    pub stream: Stream,
    /// Nothing, once it has come to its end.
    pipe: Option<OwnedFd>,
    log: Log,
    owner: Option<Owner>,
    shown: Shown,
    /// The owner has no room.
    blocked: bool,
    /// When the pipe, which is wide since, was last full.
    flood: Option<Moment>,
}

/// What a turn found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelProgress {
    pub bytes: usize,
    /// The stream has just come to its end, or nobody wants it any more.
    pub over: bool,
}

impl Channel {
    /// Returns the command's end as well.
    pub fn new(stream: Stream, log: Log, owner: Option<Owner>) -> io::Result<(Channel, OwnedFd)> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: the command's writes wait as they always did.
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        let pipe = Some(ours);
        let shown = Shown::default();
        let channel = Channel { stream, pipe, log, owner, shown, blocked: false, flood: None };
        Ok((channel, theirs))
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        let owner = self.owner.iter().map(Owner::descriptor);
        let pipe = self.pipe.iter().map(AsRawFd::as_raw_fd);
        pipe.chain(self.log.descriptors()).chain(owner).collect()
    }

    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    pub fn is_over(&self) -> bool {
        self.pipe.is_none() && !self.owner_is_behind()
    }

    pub fn owner_is_behind(&self) -> bool {
        let behind = |owner: &Owner| owner.is_behind() || self.blocked;
        self.owner.as_ref().is_some_and(behind)
    }

    pub fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// How much is in the pipe.
    pub fn waiting(&self) -> u64 {
        self.pipe.as_ref().and_then(|pipe| ioctl_fionread(pipe).ok()).unwrap_or_default()
    }

    pub fn interest(&self) -> Option<PollFd<'_>> {
        match (&self.owner, &self.pipe) {
            (Some(owner), _) if self.owner_is_behind() => Some(owner.interest()),
            (_, Some(pipe)) => Some(PollFd::new(pipe, PollFlags::IN)),
            _ => None,
        }
    }

    /// Moves what there is.
    pub fn service(&mut self) -> ChannelProgress {
        let was_over = self.is_over();
        let mut bytes = 0;
        while bytes < TURN {
            match self.step() {
                Ok(0) => break,
                Ok(moved) => bytes += moved,
                // Whoever writes to an owner that is gone should know, as without us.
                Err(Lost::Left { unwritten }) => {
                    self.lose_owner(unwritten, None);
                    self.consume(usize::try_from(self.waiting()).unwrap_or(WIDE));
                    self.close();
                    break;
                }
                Err(Lost::Refused { why, unwritten }) => self.lose_owner(unwritten, Some(why)),
            }
        }
        self.fit(bytes);
        ChannelProgress { bytes, over: !was_over && self.is_over() }
    }

    /// From here on only the log is written.
    pub fn forget_owner(&mut self) {
        let unwritten = self.owner.as_ref().map(Owner::unwritten);
        if let Some(unwritten) = unwritten {
            self.lose_owner(unwritten, None);
        }
    }

    /// The owner is shown nothing more, and was not shown so much of what was read.
    fn lose_owner(&mut self, unwritten: usize, why: Option<Errno>) {
        self.shown.ends(self.log.captured().bytes.saturating_sub(unwritten as u64), why);
        self.owner = None;
        self.blocked = false;
    }

    /// Somebody else who holds it has found that the owner cannot be written.
    pub fn is_refused(&mut self, captured: &CapturedStream) {
        self.owner = None;
        self.shown = Shown::of(captured);
    }

    /// Whether the owner cannot be written, once.
    pub fn refused_now(&mut self) -> bool {
        self.shown.refused_now()
    }

    /// Nobody waits for more.
    pub fn close(&mut self) {
        self.pipe = None;
        self.owner = None;
        self.blocked = false;
    }

    /// Returns how much was moved.
    fn step(&mut self) -> Result<usize, Lost> {
        let Some(pipe) = &self.pipe else {
            if let Some(owner) = &mut self.owner {
                owner.catch_up()?;
            }
            return Ok(0);
        };
        let Some(owner) = &mut self.owner else {
            return Ok(match self.log.take(pipe.as_fd(), WIDE, unix_us()) {
                Took::Bytes(bytes) => bytes,
                Took::Nothing => 0,
                Took::End => self.end(),
            });
        };
        self.blocked = false;
        match owner.offer(pipe.as_fd(), WIDE)? {
            Offered::Nothing => Ok(0),
            Offered::NoRoom => {
                self.blocked = true;
                Ok(0)
            }
            Offered::End => Ok(self.end()),
            Offered::Copied(bytes) => {
                self.consume(bytes);
                Ok(bytes)
            }
            Offered::Give => self.give(),
        }
    }

    /// Takes out of the pipe what the owner has already.
    fn consume(&mut self, bytes: usize) {
        let Some(pipe) = &self.pipe else { return };
        let mut left = bytes;
        while left > 0 {
            // It is in the pipe, and nobody else takes it.
            let Took::Bytes(taken) = self.log.take(pipe.as_fd(), left, unix_us()) else { return };
            left -= taken;
        }
    }

    /// Reads, and gives to log and owner.
    fn give(&mut self) -> Result<usize, Lost> {
        let (Some(pipe), Some(owner)) = (&self.pipe, &mut self.owner) else { return Ok(0) };
        let mut buffer = vec![0; USUAL];
        let length = match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => return Ok(self.end()),
            Ok(length) => length,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(0),
            Err(_) => return Ok(self.end()),
        };
        self.log.write(&buffer[..length], unix_us());
        owner.give(&buffer[..length])?;
        Ok(length)
    }

    fn end(&mut self) -> usize {
        self.pipe = None;
        if !self.owner_is_behind() {
            self.owner = None;
        }
        0
    }

    /// A pipe that was full is widened; one that is not needed so is made small again.
    fn fit(&mut self, bytes: usize) {
        let Some(pipe) = &self.pipe else { return };
        let now = now();
        match self.flood {
            None if bytes >= USUAL && fcntl_setpipe_size(pipe, WIDE).is_ok() => {
                self.flood = Some(now);
            }
            Some(_) if bytes >= USUAL => self.flood = Some(now),
            Some(at) if now.since(at) >= CALM => {
                // Refused while more than that waits in it; then it is tried again.
                let small = fcntl_setpipe_size(pipe, USUAL).is_ok();
                self.flood = if small { None } else { Some(now) };
            }
            None | Some(_) => {}
        }
    }

    /// When to look again though nothing comes.
    pub fn patience(&self) -> Option<Duration> {
        self.flood.filter(|_| self.pipe.is_some()).map(|at| (at + CALM).since(now()))
    }

    /// The guard begins where the keeper was cut short.
    pub fn resume(&mut self) {
        self.log.resume();
    }

    /// Another stream has written.
    pub fn part(&mut self) {
        self.log.part();
    }

    pub fn failed_now(&mut self) -> Option<String> {
        self.log.failed_now()
    }

    pub fn captured(&self) -> CapturedStream {
        let unwritten = self.owner.as_ref().map_or(0, Owner::unwritten);
        self.shown.mark(self.log.captured(), unwritten)
    }
}
