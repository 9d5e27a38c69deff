//! A started contender, watched through a pidfd.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, wait};

use crate::proof::Proof;

pub struct Watched {
    child: Child,
    pidfd: OwnedFd,
}

impl Watched {
    pub fn spawn(words: &[String], env: &[(String, String)]) -> io::Result<Self> {
        Self::start(command(words, env)?)
    }

    pub fn start(mut command: Command) -> io::Result<Self> {
        let child = command.spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, pidfd })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.pidfd, signal)?)
    }

    /// Whether it exited within the patience. It is not reaped here: what is
    /// timed ends with the exit.
    pub fn exited_within(&self, patience: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&timeout))? > 0)
    }

    /// As [`Watched::exited_within`], and when a proof was seen meanwhile.
    pub fn proven_and_exited_within(
        &self,
        proof: &Proof,
        patience: Duration,
    ) -> io::Result<(Option<u64>, bool)> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN), proof.interest()];
        if poll(&mut fds, Some(&timeout))? == 0 {
            return Ok((None, false));
        }
        let proven = proof.seen();
        Ok((proven, self.exited_within(patience)?))
    }

    pub fn reap(mut self) -> io::Result<std::process::ExitStatus> {
        self.child.wait()
    }
}

/// The command of these words. std starts it by `posix_spawn`, since nothing is
/// asked of it that needs more.
pub fn command(words: &[String], env: &[(String, String)]) -> io::Result<Command> {
    let (program, args) =
        words.split_first().ok_or_else(|| io::Error::other("no command to run"))?;
    let mut command = Command::new(program);
    command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// As `command`, deaf and dumb: for trees that talk.
pub fn quiet_command(words: &[String], env: &[(String, String)]) -> io::Result<Command> {
    let mut command = command(words, env)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Reaps every child that is dead already.
pub fn reap_the_dead() {
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
}

/// Reaps until there is no child at all.
pub fn reap_all() {
    while wait(WaitOptions::empty()).is_ok() {}
}
