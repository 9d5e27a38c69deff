//! Windows on a run's terminal: any number of them, and none can slow the agent but
//! the one it was started from.

use crate::backlog::{Backlog, Gone};
use crate::control::Handed;
use fullstop_store::{Fit, Frame, Frames, Size};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A window that is this far behind is not told more; it is shown the screen once it
/// has caught up.
const MOST_BEHIND: usize = 1 << 20;
/// The window it was started from misses nothing: with so much to read, the agent waits.
const OWNER_BEHIND: usize = 256 * 1024;
/// What is read of a window's keys at once; what it types beyond waits with it.
const KEYS: usize = 4096;
/// Enough for every screen of one person; each is a descriptor of the keeper's.
const MOST_WINDOWS: usize = 32;
/// No frame of a window's is this long.
const MOST_TYPED: usize = 128 * 1024;

#[derive(Debug, Default)]
pub struct Windows {
    all: Vec<Window>,
    /// Counts what happens, to know the latest.
    clock: u64,
}

#[derive(Debug)]
struct Window {
    stream: OwnedFd,
    frames: Frames,
    backlog: Backlog,
    /// Nothing, if there is no terminal behind it.
    size: Option<Size>,
    role: Role,
    /// It missed something, and is owed the screen.
    behind: bool,
    gone: bool,
    /// When it was last resized, attached, or typed into.
    used: u64,
}

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The one the run was started from: it misses nothing.
    Owner,
    Guest,
    /// Only to look through.
    View,
}

/// What is wanted of a connection that becomes a window.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub size: Option<Size>,
    pub view: bool,
    pub owner: bool,
}

impl Windows {
    pub fn open(&mut self, handed: Handed, wish: Wish, first: &Frame) {
        let Wish { size, view, owner } = wish;
        let role = match (owner, view) {
            (true, _) => Role::Owner,
            (false, false) => Role::Guest,
            (false, true) => Role::View,
        };
        let mut frames = Frames::default();
        frames.feed(&handed.unread);
        let mut backlog = handed.unsent;
        backlog.push(&first.encode());
        self.clock += 1;
        let size = size.map(Size::within_reason);
        let mut window = Window {
            stream: handed.stream,
            frames,
            backlog,
            size,
            role,
            behind: false,
            gone: false,
            used: self.clock,
        };
        window.flush();
        self.all.push(window);
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.all.len() < MOST_WINDOWS
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.all.iter().map(|window| window.stream.as_raw_fd())
    }

    /// Somebody who can answer the questions of a full-screen program.
    pub fn has_terminal(&self) -> bool {
        self.all.iter().any(|window| window.size.is_some() && window.role != Role::View)
    }

    /// The agent must wait for whoever started it.
    pub fn owner_is_behind(&self) -> bool {
        self.all
            .iter()
            .any(|window| window.role == Role::Owner && window.backlog.len() > OWNER_BEHIND)
    }

    pub fn owner_is_owed(&self) -> bool {
        self.all.iter().any(|window| window.role == Role::Owner && !window.backlog.is_empty())
    }

    pub fn interest(&self, hears: bool) -> impl Iterator<Item = PollFd<'_>> {
        // One that is not heard now would say again and again that it has left.
        let asked = move |window: &&Window| hears || !window.backlog.is_empty();
        self.all.iter().filter(asked).map(move |window| {
            let keys = if hears { PollFlags::IN } else { PollFlags::empty() };
            let room = if window.backlog.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&window.stream, keys | room)
        })
    }

    /// Shows everybody what was written.
    pub fn show(&mut self, bytes: &[u8]) {
        let frame = Frame::Bytes(bytes.to_vec()).encode();
        for window in self.all.iter_mut().filter(|window| !window.behind) {
            if window.role != Role::Owner && window.backlog.len() + frame.len() > MOST_BEHIND {
                window.behind = true;
                continue;
            }
            window.backlog.push(&frame);
            window.flush();
        }
        self.all.retain(|window| !window.gone);
    }

    /// Writes what waits, and gives the screen to those who have caught up.
    pub fn flush(&mut self, screen: impl Fn() -> Frame) {
        for window in &mut self.all {
            window.flush();
            if window.behind && window.backlog.is_empty() {
                window.behind = false;
                window.backlog.push(&screen().encode());
                window.flush();
            }
        }
        self.all.retain(|window| !window.gone);
    }

    /// Hears what is typed, as far as `room` goes; the sizes are noted.
    pub fn hear(&mut self, mut room: usize) -> Vec<u8> {
        let mut typed = Vec::new();
        for window in &mut self.all {
            if room == 0 {
                break;
            }
            window.read(room);
            while let Some(frame) = window.frames.next() {
                match frame {
                    Ok(Frame::Bytes(bytes)) if window.role != Role::View => {
                        room = room.saturating_sub(bytes.len());
                        typed.extend(bytes);
                    }
                    Ok(Frame::Resize(size)) => {
                        let size = Some(size.within_reason());
                        // A window that says again how large it is has lost its screen.
                        window.behind |= size == window.size;
                        window.size = size;
                    }
                    Ok(_) => continue,
                    Err(_) => {
                        window.gone = true;
                        break;
                    }
                }
                self.clock += 1;
                window.used = self.clock;
            }
        }
        self.all.retain(|window| !window.gone);
        typed
    }

    /// The size that the terminal should have; nothing, if nobody says.
    pub fn size(&self, fit: Fit) -> Option<Size> {
        let asked = self.all.iter().filter(|window| window.role != Role::View);
        let sized = asked.filter_map(|window| Some((window.used, window.size?)));
        match fit {
            Fit::Fixed => None,
            Fit::Latest => sized.max_by_key(|(used, _)| *used).map(|(_, size)| size),
            Fit::Smallest => sized.map(|(_, size)| size).reduce(|one, other| Size {
                rows: one.rows.min(other.rows),
                cols: one.cols.min(other.cols),
            }),
        }
    }

    /// Tells everybody how it ended. Whoever missed something is shown the last screen.
    pub fn tell(&mut self, report: &Frame, screen: impl Fn() -> Frame) {
        for window in &mut self.all {
            if std::mem::take(&mut window.behind) {
                window.backlog.push(&screen().encode());
            }
            window.backlog.push(&report.encode());
            window.flush();
        }
        self.all.retain(|window| !window.gone);
    }

    pub fn is_told(&self) -> bool {
        self.all.iter().all(|window| window.backlog.is_empty())
    }
}

impl Window {
    fn flush(&mut self) {
        self.gone |= self.backlog.send(&self.stream) == Err(Gone);
    }

    fn read(&mut self, most: usize) {
        let mut buffer = [0; KEYS];
        let most = most.min(KEYS);
        match recv(&self.stream, &mut buffer[..most], RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.gone = true,
            // Nobody types this much in one piece.
            Ok(_) if self.frames.waiting() > MOST_TYPED => self.gone = true,
            Ok((length, _)) => self.frames.feed(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.gone = true,
        }
    }
}
