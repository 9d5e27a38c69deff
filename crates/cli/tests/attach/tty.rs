//! A terminal with `fullstop` on it.

use crate::keeper::{PATIENCE, wait_for};
use fullstop::Signal;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize};
use rustix::termios::{tcgetattr, tcsetattr, tcsetwinsize};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

pub struct Tty {
    master: OwnedFd,
    /// Held, so that the terminal does not end with whoever is on it.
    slave: OwnedFd,
    seen: Vec<u8>,
}

impl Tty {
    pub fn new() -> Tty {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name, flags, Mode::empty()).expect("its other side");
        let tty = Tty { master, slave, seen: Vec::new() };
        tty.resize(24, 80);
        tty
    }

    pub fn resize(&self, rows: u16, cols: u16) {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).expect("a size");
    }

    /// `fullstop` with these words, on this terminal, in a process group of its own
    /// so that it can be stopped.
    pub fn start(&self, dir: &Path, words: &[&str]) -> Started {
        let end = || File::from(self.slave.try_clone().expect("a descriptor"));
        // What was ignored stays ignored, and these tests may run under nohup.
        let child = Command::new("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_fullstop")])
            .args(words)
            .env("FULLSTOP_DIR", dir)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .process_group(0)
            .spawn()
            .expect("fullstop");
        Started(child)
    }

    pub fn type_bytes(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(&self.master, bytes), Ok(bytes.len()));
    }

    /// Reads until the screen has shown this. Returns all that came.
    pub fn expect(&mut self, text: &str) -> Vec<u8> {
        let mut buffer = [0; 4096];
        let holds = |seen: &[u8]| seen.windows(text.len()).any(|part| part == text.as_bytes());
        while !holds(&self.seen) {
            let shown = String::from_utf8_lossy(&self.seen).into_owned();
            wait_for(&self.master, &format!("{text:?} after {shown:?}"));
            let length = rustix::io::read(&self.master, &mut buffer).expect("the screen");
            self.seen.extend_from_slice(&buffer[..length]);
        }
        std::mem::take(&mut self.seen)
    }

    pub fn modes(&self) -> Termios {
        tcgetattr(&self.slave).expect("the modes")
    }

    pub fn is_raw(&self) -> bool {
        !self.modes().local_modes.contains(LocalModes::ICANON)
    }

    /// As a shell does with its own terminal.
    pub fn set(&self, modes: &Termios) {
        tcsetattr(&self.slave, OptionalActions::Now, modes).expect("the modes");
    }
}

pub struct Started(Child);

impl Started {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub fn send(&self, signal: Signal) {
        use rustix::process::Signal as Kernel;
        let signal = Kernel::from_named_raw(signal.number()).expect("a signal");
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// Waits until it has stopped.
    pub fn stopped(&self) {
        let status = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("it is ours");
        let (_, status) = status.expect("it has changed");
        assert!(status.stopped(), "{status:?}");
    }

    pub fn status(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub fn code(&mut self) -> Option<i32> {
        self.status().code()
    }

    pub fn signal(&mut self) -> Option<i32> {
        self.status().signal()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
