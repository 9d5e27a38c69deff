//! The caller's terminal: given back as it was found, and one line while stopping.

use fullstop_cage::linux::own_group;
use fullstop_core::machine::{Climb, State};
use fullstop_core::words::Moment;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, test_kill_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
    tcsetpgrp,
};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// Leaves the alternate screen. That restores the cursor that was saved for the other
/// one, even if the other one is shown already: so the cursor is saved first. Some
/// terminals (tmux) keep that cursor elsewhere, and move it nevertheless.
pub const LEAVE_OTHER_SCREEN: &[u8] = b"\x1b7\x1b[?1049l";

/// Shows the cursor, ends mouse reports, bracketed paste and application keys, resets
/// colours.
pub const SANE: &[u8] = b"\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\
\x1b[?2004l\x1b[?1l\x1b>\x1b[0m";

#[derive(Debug)]
pub struct Terminal {
    tty: OwnedFd,
    found: Option<Termios>,
    /// Whether we were in the foreground when we began.
    foreground: bool,
    /// Whether the command's output is on it. The settings of a terminal belong to
    /// whoever fills the screen; of a pipeline that is the last (`make | less`).
    fills_screen: bool,
    line_shown: bool,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub fn find() -> Option<Terminal> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let tty = open("/dev/tty", flags, Mode::empty()).ok()?;
        let found = tcgetattr(&tty).ok();
        let foreground = is_in_foreground(&tty);
        let fills_screen = isatty(std::io::stdout().as_fd());
        Some(Terminal { tty, found, foreground, fills_screen, line_shown: false })
    }

    pub fn descriptor(&self) -> RawFd {
        self.tty.as_raw_fd()
    }

    /// The window is closed: nothing can be asked of it any more.
    pub fn is_gone(&self) -> bool {
        tcgetattr(&self.tty).is_err()
    }

    fn in_foreground(&self) -> bool {
        is_in_foreground(&self.tty)
    }

    fn is_raw(&self) -> bool {
        tcgetattr(&self.tty).map_or(true, |now| !now.local_modes.contains(LocalModes::ICANON))
    }

    /// One status line, where it can do no harm: on a terminal, in the foreground,
    /// and not in the middle of somebody's full screen.
    pub fn show(&mut self, state: &State, alive: usize, now: Moment) {
        if !isatty(std::io::stderr().as_fd()) || !self.in_foreground() || self.is_raw() {
            return;
        }
        let Some(text) = describe(state, alive, now) else { return };
        self.write(&format!("\r\x1b[K{}", self.cut(&text)));
        self.line_shown = true;
    }

    pub fn clear(&mut self) {
        if std::mem::take(&mut self.line_shown) && self.in_foreground() {
            self.write("\r\x1b[K");
        }
    }

    /// Never waits: a terminal may be held up by Ctrl-S, and a stop may not.
    fn write(&self, text: &str) {
        let _ = rustix::io::write(&self.tty, text.as_bytes());
    }

    /// A line that is wrapped could not be erased.
    fn cut<'a>(&self, text: &'a str) -> &'a str {
        let columns: usize = tcgetwinsize(&self.tty).map_or(0, |size| size.ws_col.into());
        let end = text.char_indices().nth(columns.saturating_sub(1)).filter(|_| columns > 0);
        end.map_or(text, |(end, _)| &text[..end])
    }

    /// Gives the terminal back as it was found. A program that was killed in the
    /// middle of a full screen has left it otherwise; where nothing is changed,
    /// nothing is written.
    pub fn restore(&mut self) {
        if !self.foreground {
            return;
        }
        // A job-control shell that was killed has left the terminal to its own group;
        // a group of the living has it by right (the shell's, if we are in the
        // background by now). SIGTTOU is held back by the guard while it ends, so
        // this cannot stop it.
        if let Some(group) = Pid::from_raw(own_group()).filter(|_| self.is_left_to_the_dead()) {
            let _ = tcsetpgrp(&self.tty, group);
        }
        let Some(found) = self.found.as_ref().filter(|_| self.fills_screen) else { return };
        let changed = tcgetattr(&self.tty).is_ok_and(|now| {
            now.local_modes != found.local_modes
                || now.input_modes != found.input_modes
                || now.output_modes != found.output_modes
        });
        if changed && self.in_foreground() {
            let _ = tcsetattr(&self.tty, OptionalActions::Now, found);
            // What the command has written was not ours to see.
            let _ = rustix::io::write(&self.tty, &[LEAVE_OTHER_SCREEN, SANE].concat());
        }
    }

    fn is_left_to_the_dead(&self) -> bool {
        tcgetpgrp(&self.tty)
            .is_ok_and(|group| test_kill_process_group(group) == Err(rustix::io::Errno::SRCH))
    }
}

fn is_in_foreground(tty: &OwnedFd) -> bool {
    tcgetpgrp(tty).is_ok_and(|group| group.as_raw_pid() == own_group())
}

fn describe(state: &State, alive: usize, now: Moment) -> Option<String> {
    let State::Stopping(stop) = state else { return None };
    let left = stop.climb.deadline().since(now).as_secs_f64();
    let (step, of) = match &stop.climb {
        Climb::Soft { ladder, step, .. } => {
            let label = ladder.soft().get(*step)?.label();
            (label, format!(" ({} of {})", step + 1, ladder.soft().len() + 1))
        }
        Climb::Kill { .. } => ("kill".to_owned(), String::new()),
    };
    let processes = if alive == 1 { "process" } else { "processes" };
    Some(format!("fullstop: stopping… {step}{of}, {left:.1} s left, {alive} {processes} alive"))
}
