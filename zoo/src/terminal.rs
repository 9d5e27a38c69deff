//! A program that brings its own terminal.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Signal, ioctl_tiocsctty, setpgid, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::Life;
use crate::raw::{self, fork};
use crate::roll::Roll;
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

/// A child is session leader on a terminal of the leader's making, and a job in its
/// background shrugs at the hang-up that ends the terminal.
pub fn own_pty(stage: &Stage) -> Life {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .map_err(|error| Trouble::Cannot(format!("no terminal can be had here: {error}")))?;
    grantpt(&master).doing("grantpt")?;
    unlockpt(&master).doing("unlockpt")?;
    let roll = Roll::call()?;
    if fork()?.is_none() {
        sit_down_at(master)?;
        if fork()?.is_none() {
            raw::ignore(&[Signal::HUP]);
            setpgid(None, None).doing("setpgid")?;
        }
        roll.stand();
        live();
    }
    roll.all(2)?;
    stage.announce(3)?;
    // The leader still holds the master: closing it would hang up.
    live()
}

fn sit_down_at(master: OwnedFd) -> Result<(), Trouble> {
    setsid().doing("setsid")?;
    let name = ptsname(&master, Vec::new()).doing("ptsname")?;
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let slave = OpenOptions::new().read(true).write(true).open(path).doing("the terminal")?;
    // Opening it has done this already, unless some other terminal came first.
    ioctl_tiocsctty(&slave).doing("TIOCSCTTY")?;
    drop(master);
    dup2_stdin(&slave).doing("stdin")?;
    dup2_stdout(&slave).doing("stdout")?;
    dup2_stderr(&slave).doing("stderr")
}
