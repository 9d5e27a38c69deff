//! The terminal of a run: its master, its log, its screen, its windows.
//!
//! It is always read, so that losing the last window blocks nobody.

use super::channel::ChannelProgress;
use super::shown::Shown;
use super::windows::{AttachRequest, Picture, Windows};
use crate::control::Handed;
use crate::ledger::unix_us;
use crate::screen::Screen;
use fullstop_cage::linux::now;
use fullstop_core::words::Moment;
use fullstop_protocol::{CapturedStream, Frame, ResizePolicy, Size};
use fullstop_store::Log;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionread};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A terminal gives no more at once.
const CHUNK: usize = 4096;
/// After so much others get their turn.
const TURN: usize = 256 * 1024;
/// More than the kernel holds of what a terminal was written.
const LAST_WORDS: usize = 128 * 1024;
/// What is kept for the window that starts a run, until it has attached.
const EARLY: usize = 64 * 1024;
/// How long it is waited for.
const EARLY_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Tty {
    /// Nothing, once it has come to its end.
    master: Option<OwnedFd>,
    /// The command's side, held so that nobody who closes and opens it again makes an
    /// end of it; let go when the tree is gone.
    slave: Option<OwnedFd>,
    pub log: Log,
    screen: Screen,
    fit: ResizePolicy,
    resized: Option<Resized>,
    pub windows: Windows,
    shown: Shown,
    early: Option<Early>,
}

/// A client that is no window has given it its size.
#[derive(Debug, PartialEq, Eq)]
struct Resized {
    /// What the windows wanted then.
    windows_wanted: Option<Size>,
}

/// The first output, for the window that is about to attach.
#[derive(Debug)]
struct Early {
    bytes: Vec<u8>,
    until: Moment,
}

impl Tty {
    pub fn new(log: Log, size: Size, fit: ResizePolicy) -> io::Result<Tty> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
        set_size(&master, size)?;
        Ok(Tty {
            master: Some(master),
            slave: Some(slave),
            log,
            screen: Screen::new(size),
            fit,
            resized: None,
            windows: Windows::default(),
            shown: Shown::default(),
            early: None,
        })
    }

    /// The side that the command gets.
    pub fn side(&self) -> io::Result<OwnedFd> {
        let slave = self.slave.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(fcntl_dupfd_cloexec(slave, 3)?)
    }

    /// Where input goes.
    pub fn input(&self) -> io::Result<OwnedFd> {
        let master = self.master.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(fcntl_dupfd_cloexec(master, 3)?)
    }

    /// A window will attach that must miss nothing.
    pub fn await_owner(&mut self) {
        self.early = Some(Early { bytes: Vec::new(), until: now() + EARLY_FOR });
    }

    pub fn forget_owner(&mut self) {
        self.early = None;
    }

    /// Only whoever keeps the run holds the command's side.
    pub fn let_go_of_side(&mut self) {
        self.slave = None;
    }

    pub fn master(&self) -> Option<&OwnedFd> {
        self.master.as_ref()
    }

    pub fn waiting(&self) -> u64 {
        self.master.as_ref().and_then(|fd| ioctl_fionread(fd).ok()).unwrap_or_default()
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        let ours = self.master.iter().chain(&self.slave).map(AsRawFd::as_raw_fd);
        ours.chain(self.log.descriptors()).chain(self.windows.descriptors()).collect()
    }

    pub fn is_over(&self) -> bool {
        self.master.is_none()
    }

    pub fn close(&mut self) {
        self.master = None;
        self.slave = None;
    }

    /// Nobody is waited for any more: what it still holds is in the log at least.
    pub fn finish(&mut self) {
        let mut bytes = 0;
        while bytes < TURN {
            match self.step() {
                0 => break,
                moved => bytes += moved,
            }
        }
        self.close();
    }

    /// It is not read while its screen or its owner has to catch up. Last words are not
    /// lost for a picture of them.
    fn is_held_up(&self) -> bool {
        let early = self.early.as_ref().is_some_and(|early| early.bytes.len() >= EARLY);
        let tree_is_gone = self.slave.is_none();
        let undrawn = self.screen.unfed();
        let drawing = if tree_is_gone { undrawn >= LAST_WORDS } else { undrawn > 0 };
        early || drawing || self.windows.owner_is_behind()
    }

    /// `hears`: there is room for what is typed.
    pub fn interest(&self, hears: bool) -> impl Iterator<Item = PollFd<'_>> {
        // At its end only answers are heard.
        let hears = hears || self.is_over();
        let read = self.master.iter().filter(|_| !self.is_held_up());
        let master = read.map(|master| PollFd::new(master, PollFlags::IN));
        master.chain(self.windows.interest(hears))
    }

    /// When to look again though nothing happens.
    pub fn patience(&self) -> Option<Duration> {
        let fed = self.screen.is_behind().then_some(Duration::ZERO);
        fed.or(self.early.as_ref().map(|early| early.until.since(now())))
    }

    pub fn service(&mut self) -> ChannelProgress {
        let was_over = self.is_over();
        self.screen.catch_up();
        if self.early.as_ref().is_some_and(|early| early.until <= now()) {
            self.early = None;
        }
        let mut bytes = 0;
        while bytes < TURN && !self.is_held_up() {
            match self.step() {
                0 => break,
                moved => bytes += moved,
            }
        }
        self.flush_windows();
        ChannelProgress { bytes, over: !was_over && self.is_over() }
    }

    pub fn flush_windows(&mut self) {
        let (screen, log) = (&self.screen, &self.log);
        self.windows.flush(|| shown(screen, log));
    }

    fn step(&mut self) -> usize {
        let Some(master) = &self.master else { return 0 };
        let mut buffer = [0; CHUNK];
        let length = match rustix::io::read(master, &mut buffer) {
            Ok(length) if length > 0 => length,
            Err(Errno::AGAIN | Errno::INTR) => return 0,
            // EIO: nobody has the other side open any more.
            Ok(_) | Err(_) => {
                self.close();
                self.windows.ask_owner();
                return 0;
            }
        };
        let bytes = &buffer[..length];
        self.log.write(bytes, unix_us());
        self.screen.feed(bytes);
        self.windows.show(bytes);
        if let Some(early) = &mut self.early {
            early.bytes.extend_from_slice(bytes);
        }
        length
    }

    /// What programs have asked the terminal, answered, if nobody else will.
    pub fn answers(&mut self) -> String {
        let answers = self.screen.answers();
        if self.windows.has_terminal() { String::new() } else { answers }
    }

    pub fn attach(&mut self, handed: Handed, request: AttachRequest) {
        let early = self.early.take_if(|_| request.owner);
        // Only who is waited for may hold up the agent.
        let request = AttachRequest { owner: early.is_some(), ..request };
        let first = match early {
            Some(early) => Picture { size: self.screen.size(), frame: Frame::Bytes(early.bytes) },
            None => shown(&self.screen, &self.log),
        };
        self.windows.open(handed, request, &first);
        if self.is_over() {
            self.windows.ask_owner();
        }
        self.fit();
    }

    /// Hears the windows; returns what was typed. At the end nobody reads that any more.
    pub fn hear(&mut self, room: usize) -> Vec<u8> {
        let is_over = self.is_over();
        let mut typed = self.windows.hear(if is_over { usize::MAX } else { room });
        if is_over {
            typed.clear();
        }
        self.fit();
        if self.windows.owner_again() {
            self.nudge();
        }
        if let Some((bytes, why)) = self.windows.refused_now() {
            self.shown.refused(bytes, why);
        }
        self.flush_windows();
        typed
    }

    /// Whether the window it was started from cannot be written, once.
    pub fn refused_now(&mut self) -> bool {
        self.shown.refused_now()
    }

    /// Somebody else who holds it has found that.
    pub fn is_refused(&mut self, captured: &CapturedStream) {
        self.shown = Shown::of(captured);
    }

    /// The window it was started from has not attached yet, or was asked whether all is
    /// shown.
    pub fn owner_is_asked(&self) -> bool {
        self.early.is_some() || self.windows.owner_is_asked()
    }

    pub fn captured(&self) -> CapturedStream {
        self.shown.mark(self.log.captured(), 0)
    }

    /// Has the command draw anew, if it can. The kernel tells a size only if it is another
    /// one: so one that nobody looks at is changed, the width in pixels without a height.
    fn nudge(&self) {
        if let Some(master) = &self.master
            && let Ok(size) = tcgetwinsize(master)
        {
            let _ = tcsetwinsize(master, Winsize { ws_xpixel: size.ws_xpixel ^ 1, ..size });
        }
    }

    /// The terminal is as large as its windows want it.
    fn fit(&mut self) {
        let wanted = self.windows.size(self.fit);
        if self.resized == Some(Resized { windows_wanted: wanted }) {
            return;
        }
        self.resized = None;
        if let Some(size) = wanted {
            self.become_as_large_as(size);
        }
    }

    /// Makes it as large as a client wants that is no window, until a window wants another
    /// size than now. Returns whether it may be.
    pub fn resize(&mut self, size: Size) -> bool {
        if self.fit == ResizePolicy::Fixed {
            return false;
        }
        self.resized = Some(Resized { windows_wanted: self.windows.size(self.fit) });
        self.become_as_large_as(size.clamped());
        true
    }

    fn become_as_large_as(&mut self, size: Size) {
        if let Some(master) = self.master.as_ref().filter(|_| size != self.screen.size())
            && set_size(master, size).is_ok()
        {
            self.screen.resize(size);
            self.windows.tell_size(size);
        }
    }

    pub fn tell_end(&mut self, report: &Frame) {
        let (screen, log) = (&self.screen, &self.log);
        self.windows.tell(report, || shown(screen, log));
    }
}

fn shown(screen: &Screen, log: &Log) -> Picture {
    let frame = Frame::Screen { offset: log.offset(), bytes: screen.shown() };
    Picture { size: screen.size(), frame }
}

fn set_size(master: &OwnedFd, size: Size) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(master, size)?)
}
