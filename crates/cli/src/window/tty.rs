//! The terminal this process was given: taken for a window, and given back.

use fullstop::Size;
use fullstop_cage::linux::own_group;
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal as _};

/// The terminal on stdin, if the window is on it too.
pub struct Tty {
    found: Option<Termios>,
    taken: bool,
}

impl Tty {
    pub fn find() -> Tty {
        let both = io::stdin().is_terminal() && io::stdout().is_terminal();
        Tty { found: both.then(|| tcgetattr(io::stdin()).ok()).flatten(), taken: false }
    }

    pub fn is_there(&self) -> bool {
        self.found.is_some()
    }

    pub fn is_taken(&self) -> bool {
        self.taken
    }

    /// From now on every key is a byte, and nothing more.
    pub fn take(&mut self) {
        let Some(mut modes) = self.found.clone() else { return };
        modes.make_raw();
        self.taken = tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_ok();
    }

    /// As it was found. In the background it belongs to another job by now.
    pub fn give_back(&mut self) {
        if let Some(found) = self.found.as_ref().filter(|_| self.taken)
            && is_ours()
        {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, found);
        }
        self.taken = false;
    }
}

/// Whether the terminal may be taken. One that is not our session's has no foreground.
pub fn is_ours() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |group| group.as_raw_pid() == own_group())
}

/// Whether this session has a terminal, on which a person continues what has stopped.
pub fn is_on_terminal() -> bool {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open("/dev/tty", flags, Mode::empty()).is_ok()
}

/// How large the window is, if it is one.
pub fn size() -> Option<Size> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    let known = size.ws_row > 0 && size.ws_col > 0;
    known.then(|| Size { rows: size.ws_row, cols: size.ws_col }.clamped())
}
