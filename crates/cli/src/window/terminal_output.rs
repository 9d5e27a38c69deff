//! Where a window shows things: stdout, which may be slow, or not read at all.

use super::other_screen::OtherScreen;
use fullstop::Signal;
use fullstop_cage::plain;
use fullstop_keeper::{LEAVE_OTHER_SCREEN, SANE};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// More than this is not taken from the keeper before some of it was shown.
const ENOUGH: usize = 256 * 1024;
/// Where there is room at all, a pipe has room for this much.
const CHUNK: usize = 4096;
/// So has a terminal for this much that we could not open anew.
const SMALL_CHUNK: usize = 512;
/// In place of whatever was shown before.
const CLEAR: &[u8] = b"\x1b[0m\x1b[H\x1b[2J";

pub struct TerminalOutput {
    /// A terminal may have less room than it says, and stdout is shared with others,
    /// so that it cannot be made non-blocking: it is opened anew.
    own: Option<OwnedFd>,
    is_terminal: bool,
    unwritten: VecDeque<u8>,
    /// How much was written.
    shown: u64,
    /// The terminal is gone, or its reader.
    lost: Option<Lost>,
    other_screen: OtherScreen,
}

/// Why nothing more can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The terminal is gone, or the reader of the pipe, and the signal that says so.
    Gone(Signal),
    /// It cannot be written, as a file on a full disk: here is why.
    Refused(String),
}

impl TerminalOutput {
    pub fn new() -> TerminalOutput {
        let is_terminal = io::stdout().is_terminal();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let own = is_terminal.then(|| open("/proc/self/fd/1", flags, Mode::empty()).ok()).flatten();
        TerminalOutput {
            own,
            is_terminal,
            unwritten: VecDeque::new(),
            shown: 0,
            lost: None,
            other_screen: OtherScreen::default(),
        }
    }

    pub fn gone(&self) -> Option<Signal> {
        match self.lost {
            Some(Lost::Gone(signal)) => Some(signal),
            _ => None,
        }
    }

    pub fn refusal(&self) -> Option<&String> {
        match &self.lost {
            Some(Lost::Refused(why)) => Some(why),
            _ => None,
        }
    }

    pub fn shown(&self) -> u64 {
        self.shown
    }

    pub fn is_empty(&self) -> bool {
        self.unwritten.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.unwritten.len() < ENOUGH
    }

    pub fn show(&mut self, bytes: &[u8]) {
        if self.lost.is_none() {
            self.unwritten.extend(bytes);
        }
    }

    pub fn show_screen(&mut self, bytes: &[u8]) {
        self.show(CLEAR);
        self.show(bytes);
    }

    /// Writes what there is room for; to be called when there is some. Returns
    /// whether anything was written.
    pub fn write(&mut self) -> bool {
        let chunk = match (&self.own, self.is_terminal) {
            (None, true) => SMALL_CHUNK,
            _ => CHUNK,
        };
        let (next, _) = self.unwritten.as_slices();
        match write(self.as_fd(), &next[..next.len().min(chunk)]) {
            Ok(written) => {
                self.other_screen.pass(&next[..written]);
                self.unwritten.drain(..written);
                self.shown += written as u64;
                written > 0
            }
            Err(Errno::INTR | Errno::AGAIN) => false,
            Err(errno) => {
                self.lost = Some(match errno {
                    Errno::PIPE | Errno::CONNRESET => Lost::Gone(Signal::PIPE),
                    _ if self.is_terminal => Lost::Gone(Signal::HUP),
                    _ => Lost::Refused(plain(&errno.into())),
                });
                self.unwritten.clear();
                false
            }
        }
    }

    /// Whatever was going on, the terminal is fit for a shell again. Not waited for.
    pub fn reset(&mut self) {
        if !self.is_terminal || self.lost.is_some() {
            return;
        }
        // A terminal that does not show it may put its cursor where it was when it last did.
        let leave = std::mem::take(&mut self.other_screen).is_shown();
        let leave = if leave { LEAVE_OTHER_SCREEN } else { b"" };
        let _ = write(self.as_fd(), &[leave, SANE].concat());
    }
}

impl AsFd for TerminalOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.own {
            Some(own) => own.as_fd(),
            // Always there: whatever was closed at the start was filled.
            None => rustix::stdio::stdout(),
        }
    }
}
