//! The loop of a window: keys to the keeper, bytes to the screen, and whatever
//! happens to either.

use super::errand::Errand;
use super::glass::{Glass, Shown};
use super::pane::Pane;
use super::stopping::Stopping;
use super::tty::{Tty, is_on_terminal, is_ours, size};
use crate::fail::Fail;
use fullstop::front::{AttachRequest, Cause, Origin, Signals, stop_self_by};
use fullstop::{Exit, Reason, Report, Run, Signal, Stream, blocking};
use fullstop_cli::detach::{Detach, HELD_FOR, Keys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// What a terminal types at the end of input.
const END_OF_INPUT: u8 = 0x04;
const CTRL_C: u8 = 0x03;

/// What the window is to the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The run was started from it, and ends with it.
    Owner,
    Guest,
    /// Only looks.
    Viewer,
}

/// Why there is no window any more.
pub enum Left {
    Over(Box<Report>),
    Detached,
    Signal(Signal),
}

pub struct Window<'r> {
    run: &'r Run,
    role: Role,
    glass: Glass,
    pane: Pane,
    tty: Tty,
    keyboard: Keyboard,
    signals: Signals,
    /// Readable when whoever started us is dead, if that matters.
    host: Option<OwnedFd>,
    stopping: Stopping,
    /// Whether a TSTP stops us; else it is the command's.
    may_stop: bool,
    /// The keeper knows that nothing more can be shown.
    refusal_told: bool,
}

struct Keyboard {
    open: bool,
    detach: Detach,
    /// When what is held back is passed on.
    held_until: Option<Instant>,
}

impl<'r> Window<'r> {
    /// Attaches, and takes the terminal. Signals are held back from now on.
    pub fn open(run: &'r Run, role: Role, keys: &Keys) -> Result<Window<'r>, Fail> {
        // An owner that is stopped where nobody continues it would not hear a stop, while
        // the command goes on.
        let may_stop = role != Role::Owner || is_on_terminal();
        let signals = Signals::of(&heard(role, may_stop))?;
        let tty = Tty::find();
        let size = size().filter(|_| role != Role::Viewer);
        let size = size.or_else(|| (role == Role::Owner).then(Default::default));
        let request =
            AttachRequest { size, view: role == Role::Viewer, owner: role == Role::Owner };
        let glass = Glass::open(run, request)?;
        // Keys are for hands; what comes from a pipe is passed on as it is.
        let detach = if tty.is_there() { Detach::new(keys) } else { Detach::none() };
        let open = role != Role::Viewer || tty.is_there();
        let mut window = Window {
            run,
            role,
            glass,
            pane: Pane::new(),
            tty,
            keyboard: Keyboard { open, detach, held_until: None },
            signals,
            host: None,
            stopping: Stopping::No,
            may_stop,
            refusal_told: false,
        };
        window.take_terminal();
        Ok(window)
    }

    /// Stops the run when this becomes readable.
    pub fn watch_host(&mut self, host: Option<OwnedFd>) {
        self.host = host;
    }

    /// Stays until the run is over, or the window is left.
    pub fn stay(mut self) -> Result<Left, Fail> {
        let mut left = self.turns()?;
        if let Left::Over(report) = &mut left {
            self.mark_unshown(report);
        }
        let by_itself = matches!(&left, Left::Over(report) if left_by_itself(report));
        self.give_terminal_back(!by_itself);
        Ok(left)
    }

    fn turns(&mut self) -> Result<Left, Fail> {
        loop {
            if let Some(left) = self.hear_signals()? {
                return Ok(left);
            }
            self.hear_keeper()?;
            self.tell_shown();
            self.stopping.look()?;
            if let Some(report) = self.glass.end().filter(|it| it.reason() != Reason::Exited) {
                self.stopping.is_over(Box::new(report.clone()));
            }
            if let Some(report) = self.is_over() {
                return Ok(Left::Over(report));
            }
            let (typed, room) = self.wait()?;
            if room && self.pane.write() {
                self.stopping.is_read();
            }
            if let Some(signal) = self.pane.gone()
                && let Some(left) = self.lose_window(signal)?
            {
                return Ok(left);
            }
            if typed && let Some(left) = self.read_keys()? {
                return Ok(left);
            }
            self.pass_on_held();
        }
    }

    /// Nothing more is to be shown, or it was shown to nobody for long enough.
    fn is_over(&self) -> Option<Box<Report>> {
        if let Some(report) = self.glass.report().filter(|_| self.pane.is_empty()) {
            return Some(Box::new(report.clone()));
        }
        match &self.stopping {
            Stopping::Over { report, .. }
                if self.stopping.until().is_some_and(|until| until <= Instant::now()) =>
            {
                Some(report.clone())
            }
            _ => None,
        }
    }

    /// Waits until something happens. Returns whether there are keys to be read, and
    /// room on the screen.
    fn wait(&mut self) -> Result<(bool, bool), Fail> {
        let stdin = io::stdin();
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let keyboard = self.wants_keys().then(|| {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
            fds.len() - 1
        });
        let pane = (!self.pane.is_empty()).then(|| {
            fds.push(PollFd::new(&self.pane, PollFlags::OUT));
            fds.len() - 1
        });
        fds.extend(self.glass.interest(self.pane.has_room()));
        if let Some(errand) = self.stopping.descriptor() {
            fds.push(PollFd::from_borrowed_fd(errand, PollFlags::IN));
        }
        let host = self.host.as_ref().map(|host| {
            fds.push(PollFd::new(host, PollFlags::IN));
            fds.len() - 1
        });
        let until = self.keyboard.held_until.into_iter().chain(self.stopping.until()).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        if poll(&mut fds, left.as_ref()).is_err() {
            return Ok((false, false));
        }
        let ready = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        let (typed, room, host) = (ready(keyboard), ready(pane), ready(host));
        drop(fds);
        if host {
            self.host = None;
            self.stopping.ask(self.run, Cause::HostGone)?;
        }
        Ok((typed, room))
    }

    /// What the keeper says, as far as there is room for it, and its last words.
    fn hear_keeper(&mut self) -> Result<(), Fail> {
        self.glass.flush();
        while self.pane.has_room() || self.glass.is_abandoned() {
            match self.glass.next()? {
                Some(Shown::Bytes(bytes)) => self.pane.show(&bytes),
                Some(Shown::Screen(bytes)) => self.pane.show_screen(&bytes),
                None => break,
            }
        }
        Ok(())
    }

    /// What the keeper must know for its report: when all is shown that it has asked
    /// for, and at once when nothing more can be.
    fn tell_shown(&mut self) {
        let refusal = self.pane.refusal().cloned();
        let news = refusal.is_some() && !self.refusal_told;
        if news || (self.glass.is_asked() && self.pane.is_empty()) {
            self.refusal_told = refusal.is_some();
            self.glass.tell_shown(self.pane.shown(), refusal);
        }
    }

    /// A keeper that was killed could not write down what it was told.
    fn mark_unshown(&self, report: &mut Report) {
        let tty = report.output.iter_mut().find(|output| output.stream == Stream::Tty);
        if let (Some(why), Some(tty)) = (self.pane.refusal(), tty)
            && tty.refusal.is_none()
        {
            tty.unshown = tty.bytes.saturating_sub(self.pane.shown());
            tty.refusal = Some(why.clone());
        }
    }

    /// A terminal that is not taken is somebody else's.
    fn wants_keys(&self) -> bool {
        if self.tty.is_there() && !self.tty.is_taken() {
            return false;
        }
        self.keyboard.open && self.glass.takes_keys(self.tty.is_taken())
    }

    fn read_keys(&mut self) -> Result<Option<Left>, Fail> {
        let mut buffer = [0; 4096];
        let length = match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(None),
            read => read.unwrap_or(0),
        };
        if length == 0 {
            self.keyboard.open = false;
            if self.tty.is_there() {
                // A terminal has no end but that it is gone.
                return self.lose_window(Signal::HUP);
            }
            self.glass.type_bytes(&[END_OF_INPUT]);
            return Ok(None);
        }
        let (passed, leave) = self.keyboard.detach.feed(&buffer[..length]);
        let leave = leave || (self.role == Role::Viewer && passed.contains(&CTRL_C));
        self.keyboard.held_until = self.keyboard.detach.holds().then(|| Instant::now() + HELD_FOR);
        self.glass.type_bytes(&passed);
        Ok(if leave { self.detach() } else { None })
    }

    fn pass_on_held(&mut self) {
        if self.keyboard.held_until.is_some_and(|until| until <= Instant::now()) {
            self.keyboard.held_until = None;
            let held = self.keyboard.detach.release();
            self.glass.type_bytes(&held);
        }
    }

    /// The run must know that it may stay before its window is gone.
    fn detach(&mut self) -> Option<Left> {
        self.glass.send_last_keys();
        if self.role == Role::Owner
            && !self.glass.is_over()
            && let Err(error) = blocking::wait(self.run.stay())
        {
            self.pane.show(format!("\r\nfullstop: cannot detach: {error}\r\n").as_bytes());
            return None;
        }
        Some(Left::Detached)
    }

    /// Nobody sees the window any more. A run that was started from it ends.
    fn lose_window(&mut self, signal: Signal) -> Result<Option<Left>, Fail> {
        if self.role != Role::Owner {
            return Ok(Some(Left::Signal(signal)));
        }
        if !self.stopping.is_asked() {
            self.stopping.ask(self.run, Cause::Heard(signal))?;
        }
        Ok(None)
    }

    fn hear_signals(&mut self) -> Result<Option<Left>, Fail> {
        while let Some(heard) = self.signals.next() {
            match heard.signal {
                Signal::PIPE => {}
                Signal::WINCH => self.glass.resize(size()),
                Signal::CONT => self.come_back()?,
                Signal::TSTP if self.may_stop => {
                    self.give_terminal_back(true);
                    stop_self_by(Signal::TSTP);
                    // A group that nobody looks after does not stop, and is not
                    // continued.
                    self.come_back()?;
                }
                Signal::USR1 | Signal::USR2 | Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                    let (run, signal) = (self.run.clone(), heard.signal);
                    Errand::send(move || async move { run.signal(signal).await })?;
                }
                signal if self.role == Role::Owner => {
                    self.stopping.ask(self.run, Cause::Heard(signal))?;
                }
                signal => return Ok(Some(Left::Signal(signal))),
            }
        }
        Ok(None)
    }

    /// Somebody has used the terminal meanwhile. The owner's window gets every byte
    /// and no screen: the command is told the size, and draws anew if it can.
    fn come_back(&mut self) -> Result<(), Fail> {
        self.take_terminal();
        if self.tty.is_taken() && self.role != Role::Owner {
            return self.glass.redraw(size());
        }
        self.glass.resize(size());
        Ok(())
    }

    /// In the background the terminal is not ours, and we stop as any program that
    /// reads from it does, until it is.
    fn take_terminal(&mut self) {
        if !self.tty.is_there() {
            return;
        }
        if is_ours() {
            self.tty.take();
        } else {
            stop_self_by(Signal::TTIN);
        }
    }

    fn give_terminal_back(&mut self, reset: bool) {
        if reset && (self.tty.is_taken() || !self.tty.is_there()) {
            self.pane.reset();
        }
        self.tty.give_back();
    }
}

impl Drop for Window<'_> {
    /// On every way out.
    fn drop(&mut self) {
        if self.tty.is_taken() {
            self.give_terminal_back(true);
        }
    }
}

/// A command that leaves by itself leaves the terminal as it wanted it.
fn left_by_itself(report: &Report) -> bool {
    report.reason() == Reason::Exited && matches!(report.exit, Some(Exit::Code(_)))
}

/// What was ignored at the start stays ignored.
fn heard(role: Role, may_stop: bool) -> Vec<Signal> {
    const ALL: [Signal; 8] = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::TSTP,
        Signal::PIPE,
        Signal::WINCH,
        Signal::CONT,
    ];
    let owners = [Signal::USR1, Signal::USR2].into_iter().filter(|_| role == Role::Owner);
    let stops = [Signal::TTIN, Signal::TTOU].into_iter().filter(|_| !may_stop);
    let origin = Origin::get();
    let ignored = |signal: &Signal| *signal != Signal::CONT && origin.ignored(*signal);
    ALL.into_iter().chain(owners).chain(stops).filter(|signal| !ignored(signal)).collect()
}
