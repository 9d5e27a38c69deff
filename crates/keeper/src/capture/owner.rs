//! Whoever was given to us as stdout or stderr: it gets every byte, in its own time.

use crate::backlog::{Backlog, Refused};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{SpliceFlags, tee};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Where there is room at all, there is room for this much.
const SMALL: usize = 512;

#[derive(Debug)]
pub struct Owner {
    fd: OwnedFd,
    kind: Kind,
    backlog: Backlog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The kernel copies from pipe to pipe, and nothing waits here.
    Pipe,
    Socket,
    /// A file always has room, or says why not.
    File,
    /// A terminal, opened anew so that it never blocks us.
    Opened,
    /// It may block, and is shared with others: it is asked for room.
    Shared,
}

/// Why an owner is shown nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nobody reads any more: whoever writes should know, as without us.
    Left { unwritten: usize },
    /// It cannot be written: its disk is full, or its terminal is gone.
    Refused { why: Errno, unwritten: usize },
}

impl From<Refused> for Lost {
    fn from(Refused { why, unwritten }: Refused) -> Lost {
        match why {
            Errno::PIPE | Errno::CONNRESET => Lost::Left { unwritten },
            _ => Lost::Refused { why, unwritten },
        }
    }
}

/// What came of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// So many bytes were copied; they are still in the pipe.
    Copied(usize),
    /// It must be read and given.
    Give,
    NoRoom,
    /// Nothing is in the pipe.
    Nothing,
    End,
}

impl Owner {
    /// A copy of one of the standard descriptors.
    pub fn of(standard: BorrowedFd<'_>) -> io::Result<Owner> {
        let fd = fcntl_dupfd_cloexec(standard, 3)?;
        let mode = fstat(&fd)?.st_mode;
        let (fd, kind) = match FileType::from_raw_mode(mode) {
            FileType::Fifo => (fd, Kind::Pipe),
            FileType::Socket => (fd, Kind::Socket),
            FileType::RegularFile => (fd, Kind::File),
            _ => match open_anew(&fd) {
                Ok(anew) => (anew, Kind::Opened),
                Err(_) => (fd, Kind::Shared),
            },
        };
        Ok(Owner { fd, kind, backlog: Backlog::default() })
    }

    pub fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Something was read and is not taken yet.
    pub fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// How much that is.
    pub fn unwritten(&self) -> usize {
        self.backlog.len()
    }

    pub fn interest(&self) -> PollFd<'_> {
        PollFd::new(&self.fd, PollFlags::OUT)
    }

    /// Offers what waits in the pipe.
    pub fn offer(&mut self, pipe: BorrowedFd<'_>, most: usize) -> Result<Offered, Lost> {
        if self.kind != Kind::Pipe {
            self.catch_up()?;
            return Ok(if self.is_behind() { Offered::NoRoom } else { Offered::Give });
        }
        loop {
            match tee(pipe, &self.fd, most, SpliceFlags::NONBLOCK) {
                Ok(0) => return Ok(Offered::End),
                Ok(copied) => return Ok(Offered::Copied(copied)),
                Err(Errno::INTR) => {}
                // Either side: no room there, or nothing here.
                Err(Errno::AGAIN) if is_readable(pipe) => return Ok(Offered::NoRoom),
                Err(Errno::AGAIN) => return Ok(Offered::Nothing),
                Err(why) => return Err(Refused { why, unwritten: 0 }.into()),
            }
        }
    }

    pub fn give(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        self.backlog.push(bytes);
        self.catch_up()
    }

    pub fn catch_up(&mut self) -> Result<(), Lost> {
        let fd = self.fd.as_fd();
        let written = match self.kind {
            Kind::Pipe => Ok(()),
            Kind::Socket => self.backlog.try_send(fd),
            Kind::File | Kind::Opened => self.backlog.write(fd, usize::MAX),
            Kind::Shared => self.backlog.write_by(SMALL, |bytes| {
                if has_room(fd) { rustix::io::write(fd, bytes) } else { Err(Errno::AGAIN) }
            }),
        };
        Ok(written?)
    }
}

/// The same terminal by a description of its own, which alone can be told not to block.
fn open_anew(fd: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty())
}

fn has_room(fd: BorrowedFd<'_>) -> bool {
    is(fd, PollFlags::OUT)
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    is(fd, PollFlags::IN)
}

fn is(fd: BorrowedFd<'_>, what: PollFlags) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, what)];
    let _ = poll(&mut fds, Some(&Timespec::default()));
    fds[0].revents().intersects(what | PollFlags::ERR)
}
