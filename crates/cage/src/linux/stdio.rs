//! The descriptors a command gets in the places of the inherited ones.

use crate::{Command, Source};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Where the standard descriptors are, which any other must stay clear of.
const FIRST_FREE: RawFd = 3;

/// Ours until the child has its copies.
#[derive(Debug, Default)]
pub struct Stdio {
    standard: [Option<OwnedFd>; 3],
    terminal: Option<OwnedFd>,
}

/// The same by number, as the child reads it.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// What takes the place of each, if anything does.
    pub standard: [Option<RawFd>; 3],
    /// What becomes the controlling terminal.
    pub terminal: Option<RawFd>,
}

impl Stdio {
    /// Takes them out of the command, which outlives us all. A file to be opened by
    /// the child stays in it.
    pub fn take(command: &mut Command) -> io::Result<Stdio> {
        let stdin = match std::mem::replace(&mut command.stdin, Source::Inherit) {
            Source::Descriptor(stdin) => Some(stdin),
            other => {
                command.stdin = other;
                None
            }
        };
        let lifted = |fd: Option<OwnedFd>| -> io::Result<_> {
            let Some(fd) = fd.map(lift).transpose()? else { return Ok(None) };
            // A second number for it in the command would hold it open behind the first.
            fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
            Ok(Some(fd))
        };
        Ok(Stdio {
            standard: [
                lifted(stdin)?,
                lifted(command.stdout.take())?,
                lifted(command.stderr.take())?,
            ],
            terminal: lifted(command.terminal.take())?,
        })
    }

    pub fn places(&self) -> Places {
        let terminal = self.terminal.as_ref().map(AsRawFd::as_raw_fd);
        let standard = match terminal {
            Some(_) => [terminal; 3],
            None => self.standard.each_ref().map(|fd| fd.as_ref().map(AsRawFd::as_raw_fd)),
        };
        Places { standard, terminal }
    }
}

/// The same descriptor, clear of the standard ones: were it one of them itself,
/// putting another in its place would lose it.
pub fn lift(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_FREE {
        return Ok(fd);
    }
    Ok(fcntl_dupfd_cloexec(&fd, FIRST_FREE)?)
}
