//! The leader's birth: from clone to exec, as its keeper sees it.
//!
//! The child shares the keeper's memory until it executes the command (`newborn.rs`):
//! copying it is a twelfth of the whole `run true`. It is not a vfork: an exec that
//! hangs on a dead file server must not hang its keeper. Where that way is refused
//! it is a plain copy, which goes the same way. A failure is told through a pipe
//! that exec closes.

use super::cgroup::Cgroup;
use super::fork::{Fork, clone_sharing, fork_unchecked, is_refusal};
use super::newborn::{Gate, MESSAGE, Plan, Stage, become_leader, enter};
use super::pinned_process::PinnedProcess;
use super::program::why_not;
use super::signals::Mask;
use super::stdio::{Stdio, lift};
use crate::{Command, Source, SpawnError};
use fullstop_core::signal::Signal;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A leader on its way.
#[derive(Debug)]
pub struct Birth {
    pub leader: PinnedProcess,
    news: OwnedFd,
    plan: &'static Plan,
}

/// Starts the leader. Returns whether it is inside the cgroup; if it cannot be,
/// and `must`, there is no leader.
pub fn bear(
    mut command: Command,
    mask: &Mask,
    cgroup: Option<&Cgroup>,
    must: bool,
) -> Result<(Birth, bool), SpawnError> {
    let no_pipe = |error| os("make a pipe", error);
    let pipe = || -> io::Result<_> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((lift(from)?, lift(to)?))
    };
    let (news, teller) = pipe().map_err(no_pipe)?;
    fcntl_setfl(&news, OFlags::NONBLOCK).map_err(|errno| no_pipe(errno.into()))?;
    // Closed on our side when this returns; the child has its copies.
    let stdio = Stdio::take(&mut command).map_err(|error| os("keep its stdio", error))?;
    let places = stdio.places();
    let mask = if places.terminal.is_some() { Mask::empty() } else { *mask };
    let plan = Plan::new(command, mask, places, teller.as_raw_fd());
    // For ever, since the child reads it until it has executed the command or is
    // dead, whatever becomes of us. A keeper bears one leader in its life.
    let plan: &Plan = Box::leak(Box::new(plan));
    if let Some(dir) = cgroup.and_then(Cgroup::dir) {
        // Old kernels, emulators, seccomp, a cgroup closed to us: another way.
        if let Ok(leader) = start(plan, Some(dir)) {
            return Ok((Birth { leader, news, plan }, true));
        }
    }
    let pipe = cgroup.map(|_| pipe()).transpose().map_err(no_pipe)?;
    // Nobody has been born who could be reading it.
    let ends =
        |(gate, key): &(OwnedFd, OwnedFd)| Gate { gate: gate.as_raw_fd(), key: key.as_raw_fd() };
    plan.gate.set(pipe.as_ref().map(ends));
    let leader = start(plan, None).map_err(|error| os("make a process", error))?;
    let inside = match (cgroup, pipe) {
        (Some(cgroup), Some((_, key))) => let_in(cgroup, &leader, &key, must)?,
        _ => false,
    };
    Ok((Birth { leader, news, plan }, inside))
}

fn start(plan: &'static Plan, into: Option<BorrowedFd<'_>>) -> io::Result<PinnedProcess> {
    // SAFETY: `enter` takes a plan, and keeps to what a child of this kind may do.
    match unsafe { clone_sharing(Signal::CHLD, into, enter, (&raw const *plan).cast()) } {
        Err(error) if is_refusal(&error) => {}
        other => return other,
    }
    // SAFETY: the child only runs `become_leader`, which is async-signal-safe.
    match unsafe { fork_unchecked(Signal::CHLD, into) }? {
        Fork::Parent(leader) => Ok(leader),
        Fork::Child => become_leader(plan),
    }
}

/// The leader waits behind its gate until it is where it belongs.
fn let_in(
    cgroup: &Cgroup,
    leader: &PinnedProcess,
    key: &OwnedFd,
    must: bool,
) -> Result<bool, SpawnError> {
    let entered = match cgroup.take_in(leader.pid()) {
        Err(error) if must => return Err(os("enter the cgroup", error)),
        entered => entered.is_ok(),
    };
    rustix::io::write(key, b"g").map_err(|errno| os("let the command go", errno.into()))?;
    Ok(entered)
}

fn os(what: &'static str, source: io::Error) -> SpawnError {
    SpawnError::Os { what, source }
}

impl Birth {
    pub fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Nothing yet, the command, or why not.
    pub fn outcome(&self) -> Option<Result<(), SpawnError>> {
        let mut message = [0; MESSAGE];
        match rustix::io::read(&self.news, &mut message) {
            Ok(0) => Some(Ok(())),
            Ok(_) => Some(Err(self.failure(message))),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => None,
            Err(errno) => {
                Some(Err(SpawnError::Os { what: "hear from the command", source: errno.into() }))
            }
        }
    }

    fn failure(&self, message: [u8; MESSAGE]) -> SpawnError {
        let [stage, errno, which] = words(message);
        let source = io::Error::from_raw_os_error(errno);
        let which = usize::try_from(which).ok();
        if stage == Stage::Gate as i32 {
            return os("let the command go", source);
        }
        if stage == Stage::Cwd as i32 {
            let cwd = self.plan.command.cwd.as_deref().unwrap_or_default();
            return SpawnError::Cwd { path: cwd.to_string_lossy().into_owned(), source };
        }
        if stage == Stage::Stdin as i32 {
            let path = match &self.plan.command.stdin {
                Source::File(path) => path.to_string_lossy().into_owned(),
                Source::Inherit | Source::Descriptor(_) => String::new(),
            };
            return SpawnError::Stdin { path, source };
        }
        if stage == Stage::Terminal as i32 {
            return os("make the terminal its own", source);
        }
        if stage == Stage::Stdio as i32 {
            return os("give the command its stdio", source);
        }
        let there = which.filter(|_| stage == Stage::Exec as i32);
        why_not(&self.plan.command, there, source)
    }
}

fn words(message: [u8; MESSAGE]) -> [i32; 3] {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&message[at..at + 4]);
        i32::from_ne_bytes(bytes)
    };
    [word(0), word(4), word(8)]
}

#[cfg(test)]
#[path = "birth_tests.rs"]
mod tests;
