//! A terminal: the master side of a pty, with somebody who types and reads.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use arena::{Context, Deadline, Outcome, Process, World, ensure, millis, seconds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};

/// Nothing that is waited for here takes this long, even on a busy machine.
pub const PATIENCE: Duration = seconds(20);

/// How often a condition of which no event is sent is looked at.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// How much of what came instead of the expected a failure shows.
const SHOWN: usize = 600;

/// Wide enough that no line a test types or expects is wrapped.
const SIZE: (u16, u16) = (24, 200);

pub struct Tty {
    master: OwnedFd,
    /// All that was ever written to the screen.
    seen: Vec<u8>,
    /// How much of it has been expected.
    passed: usize,
    /// The same in a file, which a failure shows.
    copy: File,
}

/// Which of several texts came first, and what came in front of it.
pub struct Came<'a> {
    pub which: &'a str,
    pub before: String,
}

impl Tty {
    pub fn open(world: &mut World) -> Outcome<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).context("no pty to be had")?;
        grantpt(&master).context("grantpt")?;
        unlockpt(&master).context("unlockpt")?;
        let path = world.out().join(format!("screen-{}", name_of(&master)?.replace('/', "-")));
        let copy = File::create(&path).context("the copy of the screen")?;
        world.attach("the screen", path);
        let tty = Self { master, seen: Vec::new(), passed: 0, copy };
        tty.resize(SIZE.0, SIZE.1)?;
        Ok(tty)
    }

    /// Gives a command this terminal as its standard streams. It becomes the
    /// controlling one when it is started through `setsid --ctty`.
    pub fn connect(&self, command: &mut Command) -> Outcome {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name_of(&self.master)?, flags, Mode::empty())
            .context("the side of the command")?;
        let again = |fd: &OwnedFd| fd.try_clone().context("another descriptor of the terminal");
        command.stdin(Stdio::from(again(&slave)?));
        command.stdout(Stdio::from(again(&slave)?));
        command.stderr(Stdio::from(slave));
        Ok(())
    }

    // ---- the person in front of it ----------------------------------------

    pub fn type_keys(&self, keys: &str) -> Outcome {
        let mut rest = keys.as_bytes();
        while !rest.is_empty() {
            let n = rustix::io::write(&self.master, rest).context("typing")?;
            rest = &rest[n..];
        }
        Ok(())
    }

    pub fn resize(&self, rows: u16, columns: u16) -> Outcome {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).context("resizing the window")
    }

    /// Waits until `text` is on the screen, behind what was expected before.
    /// Returns what came in front of it.
    pub fn expect(&mut self, text: &str) -> Outcome<String> {
        self.expect_within(PATIENCE, text)
    }

    pub fn expect_within(&mut self, patience: Duration, text: &str) -> Outcome<String> {
        let deadline = Deadline::after(patience);
        loop {
            self.read_what_is_there();
            if let Some(at) = find(&self.seen[self.passed..], text.as_bytes()) {
                let before = self.seen[self.passed..self.passed + at].to_vec();
                self.passed += at + text.len();
                return Ok(String::from_utf8_lossy(&before).into_owned());
            }
            if deadline.passed() {
                let from = self.passed.max(self.seen.len().saturating_sub(SHOWN));
                let rest = String::from_utf8_lossy(&self.seen[from..]);
                let who = self.describe();
                return Err(deadline.missed(format!(
                    "no {text:?} within {patience:?}; there was {rest:?}\n{who}"
                )));
            }
            self.wait_for_output(deadline.left());
        }
    }

    /// Waits for whichever of these comes first.
    pub fn expect_one_of<'a>(&mut self, texts: &[&'a str]) -> Outcome<Came<'a>> {
        let deadline = Deadline::after(PATIENCE);
        loop {
            self.read_what_is_there();
            let rest = &self.seen[self.passed..];
            let found = texts.iter().filter_map(|text| Some((find(rest, text.as_bytes())?, *text)));
            if let Some((at, which)) = found.min() {
                let before = String::from_utf8_lossy(&rest[..at]).into_owned();
                self.passed += at + which.len();
                return Ok(Came { which, before });
            }
            ensure!(
                deadline.stands(),
                "none of {texts:?} within {PATIENCE:?}\n{}",
                self.describe()
            );
            self.wait_for_output(deadline.left());
        }
    }

    /// Waits for a condition, reading the screen meanwhile: a terminal that
    /// nobody reads holds up whoever writes to it.
    pub fn until(&mut self, what: &str, condition: impl FnMut() -> bool) -> Outcome {
        self.until_within(PATIENCE, what, condition)
    }

    pub fn until_within(
        &mut self,
        patience: Duration,
        what: &str,
        mut condition: impl FnMut() -> bool,
    ) -> Outcome {
        let deadline = Deadline::after(patience);
        loop {
            self.read_what_is_there();
            if condition() {
                return Ok(());
            }
            ensure!(deadline.stands(), "after {patience:?} still not: {what}\n{}", self.describe());
            self.wait_for_output(millis(2));
        }
    }

    /// For conditions that need the terminal themselves: one look's pause.
    pub fn breathe(&mut self) {
        self.read_what_is_there();
        self.wait_for_output(millis(2));
    }

    /// All that has been on the screen so far.
    pub fn seen(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The same, byte by byte.
    pub fn bytes(&mut self) -> &[u8] {
        self.read_what_is_there();
        &self.seen
    }

    /// What has come behind what was expected, so far.
    pub fn rest(&mut self) -> String {
        self.read_what_is_there();
        String::from_utf8_lossy(&self.seen[self.passed..]).into_owned()
    }

    fn wait_for_output(&self, at_most: Duration) {
        let wait = Timespec::try_from(at_most).unwrap_or(LOOK_EVERY);
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&wait));
        // When no process has the terminal open there is nothing to wait for,
        // though it says it is ready: it may be opened again.
        if fds[0].revents() == PollFlags::HUP {
            let _ = poll(&mut [], Some(&LOOK_EVERY));
        }
    }

    fn read_what_is_there(&mut self) {
        let mut chunk = [0; 4096];
        loop {
            let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut fds, Some(&now)) != Ok(1) || !fds[0].revents().contains(PollFlags::IN) {
                return;
            }
            match rustix::io::read(&self.master, &mut chunk) {
                Ok(n) if n > 0 => {
                    self.seen.extend_from_slice(&chunk[..n]);
                    let _ = self.copy.write_all(&chunk[..n]);
                }
                Err(Errno::INTR) => {}
                _ => return,
            }
        }
    }

    // ---- what the kernel knows about it ------------------------------------

    /// The process group in the foreground.
    pub fn foreground(&self) -> Option<i32> {
        tcgetpgrp(&self.master).ok().map(rustix::process::Pid::as_raw_pid)
    }

    /// Who was there when a wait was given up; a moment later the window is
    /// closed, and that changes everybody.
    pub fn describe(&self) -> String {
        let all = Process::all().into_iter().filter(|process| process.pid != 1);
        let lines: Vec<String> = all.map(|process| process.to_string()).collect();
        format!("foreground {:?} of\n{}", self.foreground(), lines.join("\n"))
    }

    pub fn settings(&self) -> Outcome<Termios> {
        tcgetattr(&self.master).context("the settings of the terminal")
    }
}

fn name_of(master: &OwnedFd) -> Outcome<String> {
    let name = ptsname(master, Vec::new()).context("the name of the terminal")?;
    name.into_string().context("the name of the terminal")
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
