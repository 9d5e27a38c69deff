//! Those that leave: another process group, another session, another parent.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, chdir, setpgid, setsid, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::Life;
use crate::raw::{self, fork};
use crate::roll::{Place, Roll};
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

/// What `daemon-bare-env` execs itself as.
pub const BARE_ENV_DAEMON: &str = "bare-env-daemon";

/// Children in process groups of their own.
pub fn own_group(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    for _ in 0..2 {
        if fork()?.is_none() {
            setpgid(None, None).doing("setpgid")?;
            roll.stand();
            live();
        }
    }
    roll.all(2)?;
    stage.announce(3)?;
    live()
}

/// Children in sessions of their own.
pub fn own_session(stage: &Stage) -> Life {
    two_sessions()?;
    stage.announce(3)?;
    live()
}

/// A leader that is done, and leaves work behind.
pub fn leftovers(stage: &Stage) -> Life {
    two_sessions()?;
    stage.announce(3)?;
    exit(0)
}

fn two_sessions() -> Result<(), Trouble> {
    let roll = Roll::call()?;
    for _ in 0..2 {
        if fork()?.is_none() {
            setsid().doing("setsid")?;
            roll.stand();
            live();
        }
    }
    roll.all(2)
}

/// Deaf to SIGHUP and out of the caller's group, with a child in yet another.
pub fn nohup(stage: &Stage) -> Life {
    raw::ignore(&[Signal::HUP]);
    // A session leader cannot change its group, and has its own already.
    match setpgid(None, None) {
        Err(Errno::PERM) => {}
        done => done.doing("setpgid")?,
    }
    let roll = Roll::call()?;
    if fork()?.is_none() {
        setpgid(None, None).doing("setpgid")?;
        roll.stand();
        live();
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}

/// The classic daemon beside a leader that lives on.
pub fn daemon(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if is_daemon()? {
        chdir("/").doing("chdir /")?;
        null_stdio()?;
        roll.stand();
        live();
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}

/// A daemon without any variable in its environment, so that no marker is in it.
pub fn daemon_bare_env(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if is_daemon()? {
        null_stdio()?;
        let place = roll.place().carry()?.to_string();
        let failed = Command::new("/proc/self/exe")
            .arg0("zoo")
            .args([BARE_ENV_DAEMON, &place])
            .env_clear()
            .exec();
        return Err(failed).doing("exec of /proc/self/exe");
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}

pub fn bare_env_daemon(stage: &Stage) -> Life {
    let number = i32::try_from(stage.number(0)?).unwrap_or(0);
    Place::carried(number)?.stand();
    live()
}

/// A daemon that holds no descriptor at all, so that no pipe tells of it.
pub fn daemon_no_fds(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if is_daemon()? {
        let place = roll.place();
        raw::close_all_but(place.number())?;
        place.stand();
        live();
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}

/// The leader is done, and a daemon keeps its stdout and stderr open.
pub fn hold_stdout(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if is_daemon()? {
        roll.stand();
        live();
    }
    roll.all(1)?;
    stage.announce(2)?;
    exit(0)
}

/// Fork, setsid, fork. When this returns to the leader, the process in between is dead
/// and buried, and the daemon has its new parent.
pub fn is_daemon() -> Result<bool, Trouble> {
    if let Some(between) = fork()? {
        waitpid(Some(between), WaitOptions::empty()).doing("waitpid")?;
        return Ok(false);
    }
    setsid().doing("setsid")?;
    if fork()?.is_some() {
        exit(0);
    }
    Ok(true)
}

fn null_stdio() -> Result<(), Trouble> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").doing("/dev/null")?;
    dup2_stdin(&null).doing("stdin")?;
    dup2_stdout(&null).doing("stdout")?;
    dup2_stderr(&null).doing("stderr")
}
