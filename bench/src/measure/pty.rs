//! A terminal of our own, with a command in it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

pub struct Pty {
    master: OwnedFd,
    child: Child,
}

impl Pty {
    /// The command leads a session there, as a shell's commands do in a window.
    pub fn start(program: &str, args: &[&str], env: &[(&str, &str)]) -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, SIZE)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = open(ptsname(&master, Vec::new())?, flags, Mode::empty())?;
        let child = Command::new("setsid")
            .args(["--ctty", program])
            .args(args)
            .envs(env.iter().copied())
            .env("TERM", "xterm")
            .env_remove("TMUX")
            .stdin(side.try_clone()?)
            .stdout(side.try_clone()?)
            .stderr(side)
            .spawn()?;
        Ok(Self { master, child })
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.master, bytes)?;
        Ok(())
    }

    /// Reads until these bytes were seen.
    pub fn read_until(&self, wanted: &[u8], patience: Duration) -> io::Result<()> {
        let deadline = Instant::now() + patience;
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.readable(left)? {
                let shown = String::from_utf8_lossy(&seen).into_owned();
                return Err(io::Error::other(format!("only this was shown: {shown:?}")));
            }
            let count = rustix::io::read(&self.master, &mut buffer)?;
            seen.extend_from_slice(&buffer[..count]);
            if seen.windows(wanted.len()).any(|window| window == wanted) {
                return Ok(());
            }
        }
    }

    /// Throws away what is there to be read.
    pub fn drain(&self) -> io::Result<()> {
        while self.readable(Duration::ZERO)? {
            match rustix::io::read(&self.master, &mut [0; 4096]) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn readable(&self, patience: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        Ok(poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&timeout))? > 0)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It is our child, not reaped yet, so that the number is still its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
