//! The loop of a window: keys to the keeper, bytes to the screen, and whatever
//! happens to either.

use super::source::{Output, Source};
use super::stopping::Stopping;
use super::terminal_output::TerminalOutput;
use super::tty::{Tty, is_on_terminal, is_ours, size};
use crate::fail::Fail;
use fullstop::blocking::{self, Background};
use fullstop::{AttachOptions, Exit, Reason, Report, Run, Signal, StopCause, Stream};
use fullstop_cage::linux::{Origin, Signals, stop_self_by};
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
pub enum WindowEnd {
    Over(Box<Report>),
    Detached,
    Signal(Signal),
}

pub struct Window<'r> {
    run: &'r Run,
    role: Role,
    source: Source,
    output: TerminalOutput,
    tty: Tty,
    keyboard: Keyboard,
    signals: Signals,
    /// Readable when our parent is dead, if that matters.
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
        let (view, owner) = (role == Role::Viewer, role == Role::Owner);
        let source = Source::open(run, AttachOptions { size, view, owner })?;
        // Keys are for hands; what comes from a pipe is passed on as it is.
        let detach = if tty.is_there() { Detach::new(keys) } else { Detach::none() };
        let open = role != Role::Viewer || tty.is_there();
        let mut window = Window {
            run,
            role,
            source,
            output: TerminalOutput::new(),
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

    /// Shows and types until the run is over, or the window is left.
    pub fn run(mut self) -> Result<WindowEnd, Fail> {
        let mut end = self.serve()?;
        if let WindowEnd::Over(report) = &mut end {
            self.mark_unshown(report);
        }
        let by_itself = matches!(&end, WindowEnd::Over(report) if left_by_itself(report));
        self.give_terminal_back(!by_itself);
        Ok(end)
    }

    fn serve(&mut self) -> Result<WindowEnd, Fail> {
        loop {
            if let Some(end) = self.hear_signals()? {
                return Ok(end);
            }
            self.hear_keeper()?;
            self.tell_shown();
            self.stopping.look()?;
            if let Some(report) = self.source.end().filter(|it| it.reason() != Reason::Exited) {
                self.stopping.is_over(Box::new(report.clone()));
            }
            if let Some(report) = self.is_over() {
                return Ok(WindowEnd::Over(report));
            }
            let (typed, room) = self.wait()?;
            if room && self.output.write() {
                self.stopping.is_read();
            }
            if let Some(signal) = self.output.gone()
                && let Some(end) = self.lose_window(signal)?
            {
                return Ok(end);
            }
            if typed && let Some(end) = self.read_keys()? {
                return Ok(end);
            }
            self.pass_on_held();
        }
    }

    /// Nothing more is to be shown, or no reader has taken it for long enough.
    fn is_over(&self) -> Option<Box<Report>> {
        if let Some(report) = self.source.report().filter(|_| self.output.is_empty()) {
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
        let output = (!self.output.is_empty()).then(|| {
            fds.push(PollFd::new(&self.output, PollFlags::OUT));
            fds.len() - 1
        });
        fds.extend(self.source.interest(self.output.has_room()));
        if let Some(task) = self.stopping.descriptor() {
            fds.push(PollFd::from_borrowed_fd(task, PollFlags::IN));
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
        let (typed, room, host) = (ready(keyboard), ready(output), ready(host));
        drop(fds);
        if host {
            self.host = None;
            self.stopping.ask(self.run, StopCause::HostGone)?;
        }
        Ok((typed, room))
    }

    /// What the keeper says, as far as there is room for it, and its last words.
    fn hear_keeper(&mut self) -> Result<(), Fail> {
        self.source.flush();
        while self.output.has_room() || self.source.is_abandoned() {
            match self.source.next()? {
                Some(Output::Bytes(bytes)) => self.output.show(&bytes),
                Some(Output::Screen(bytes)) => self.output.show_screen(&bytes),
                None => break,
            }
        }
        Ok(())
    }

    /// What the keeper must know for its report: when all is shown that it has asked
    /// for, and at once when nothing more can be.
    fn tell_shown(&mut self) {
        let refusal = self.output.refusal().cloned();
        let news = refusal.is_some() && !self.refusal_told;
        if news || (self.source.awaits_confirmation() && self.output.is_empty()) {
            self.refusal_told = refusal.is_some();
            self.source.confirm(self.output.shown(), refusal);
        }
    }

    /// A keeper that was killed could not write down what it was told.
    fn mark_unshown(&self, report: &mut Report) {
        let tty = report.output.iter_mut().find(|output| output.stream == Stream::Tty);
        if let (Some(why), Some(tty)) = (self.output.refusal(), tty)
            && tty.refusal.is_none()
        {
            tty.unshown = tty.bytes.saturating_sub(self.output.shown());
            tty.refusal = Some(why.clone());
        }
    }

    /// A terminal that is not taken belongs to another job.
    fn wants_keys(&self) -> bool {
        if self.tty.is_there() && !self.tty.is_taken() {
            return false;
        }
        self.keyboard.open && self.source.takes_keys(self.tty.is_taken())
    }

    fn read_keys(&mut self) -> Result<Option<WindowEnd>, Fail> {
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
            self.source.type_bytes(&[END_OF_INPUT]);
            return Ok(None);
        }
        let (passed, leave) = self.keyboard.detach.feed(&buffer[..length]);
        let leave = leave || (self.role == Role::Viewer && passed.contains(&CTRL_C));
        self.keyboard.held_until = self.keyboard.detach.holds().then(|| Instant::now() + HELD_FOR);
        self.source.type_bytes(&passed);
        Ok(if leave { self.detach() } else { None })
    }

    fn pass_on_held(&mut self) {
        if self.keyboard.held_until.is_some_and(|until| until <= Instant::now()) {
            self.keyboard.held_until = None;
            let held = self.keyboard.detach.release();
            self.source.type_bytes(&held);
        }
    }

    /// The run must know that it may stay before its window is gone.
    fn detach(&mut self) -> Option<WindowEnd> {
        self.source.send_last_keys();
        if self.role == Role::Owner
            && self.source.end().is_none()
            && let Err(error) = blocking::wait(self.run.stay())
        {
            self.output.show(format!("\r\nfullstop: cannot detach: {error}\r\n").as_bytes());
            return None;
        }
        Some(WindowEnd::Detached)
    }

    /// The window's terminal is gone. A run that was started from it ends.
    fn lose_window(&mut self, signal: Signal) -> Result<Option<WindowEnd>, Fail> {
        if self.role != Role::Owner {
            return Ok(Some(WindowEnd::Signal(signal)));
        }
        if !self.stopping.is_asked() {
            self.stopping.ask(self.run, StopCause::Signal(signal))?;
        }
        Ok(None)
    }

    fn hear_signals(&mut self) -> Result<Option<WindowEnd>, Fail> {
        while let Some(heard) = self.signals.next() {
            match heard.signal {
                Signal::PIPE => {}
                Signal::WINCH => self.source.resize(size()),
                Signal::CONT => self.come_back(),
                Signal::TSTP if self.may_stop => {
                    self.give_terminal_back(true);
                    stop_self_by(Signal::TSTP);
                    // A group that nobody looks after does not stop, and is not
                    // continued.
                    self.come_back();
                }
                Signal::USR1 | Signal::USR2 | Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                    let (run, signal) = (self.run.clone(), heard.signal);
                    Background::begin(move || async move { run.signal(signal).await })?;
                }
                signal if self.role == Role::Owner => {
                    self.stopping.ask(self.run, StopCause::Signal(signal))?;
                }
                signal => return Ok(Some(WindowEnd::Signal(signal))),
            }
        }
        Ok(None)
    }

    /// Somebody has used the terminal meanwhile. The owner's window gets every byte
    /// and no screen: the command is told the size, and draws anew if it can.
    fn come_back(&mut self) {
        self.take_terminal();
        if self.tty.is_taken() && self.role != Role::Owner {
            self.source.redraw(size());
        } else {
            self.source.resize(size());
        }
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
            self.output.reset();
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
