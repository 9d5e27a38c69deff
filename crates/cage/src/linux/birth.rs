//! The leader's birth: from clone to exec.
//!
//! The child tells a failure through a pipe that exec closes. It is a plain copy,
//! not a vfork: an exec that hangs on a dead file server must not hang its keeper.

use super::cgroup::Cgroup;
use super::fork::{Fork, fork_unchecked};
use super::held::Held;
use super::origin::Origin;
use super::program::why_not;
use super::signals::{Mask, set_disposition};
use crate::{Command, SpawnError};
use fullstop_core::signal::Signal;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::null;

/// A leader on its way.
#[derive(Debug)]
pub struct Birth {
    pub leader: Held,
    news: OwnedFd,
    command: Command,
}

/// Which part of the child's way failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its keeper died, or gave up, before it was let through.
    Gate = 1,
    Cwd = 2,
    /// No candidate was there.
    NotFound = 3,
    /// One was, and could not be executed.
    Exec = 4,
}

/// Starts the leader. Returns whether it is inside the cgroup; if it cannot be,
/// and `must`, there is no leader.
pub fn bear(
    mut command: Command,
    mask: &Mask,
    cgroup: Option<&Cgroup>,
    must: bool,
) -> Result<(Birth, bool), SpawnError> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| os("make a pipe", errno.into()));
    let (news, teller) = pipe()?;
    fcntl_setfl(&news, OFlags::NONBLOCK).map_err(|errno| os("make a pipe", errno.into()))?;
    let mut exec = Exec::new(&command);
    if let Some(cgroup) = cgroup.filter(|cgroup| cgroup.dir().is_some()) {
        // SAFETY: the child only runs `become_leader`, which is async-signal-safe.
        match unsafe { fork_unchecked(Signal::CHLD, cgroup.dir()) } {
            Ok(Fork::Parent(leader)) => {
                // The leader has its copy.
                command.stdin = None;
                return Ok((Birth { leader, news, command }, true));
            }
            Ok(Fork::Child) => become_leader(&mut exec, &command, mask, None, teller.as_raw_fd()),
            // Old kernels, emulators, seccomp, a cgroup closed to us: another way.
            Err(_) => {}
        }
    }
    let gate = cgroup.map(|_| pipe()).transpose()?;
    // SAFETY: as above.
    let forked = unsafe { fork_unchecked(Signal::CHLD, None) };
    let leader = match forked.map_err(|error| os("make a process", error))? {
        Fork::Parent(leader) => leader,
        Fork::Child => {
            let gate = gate.map(|(gate, _key)| gate.into_raw_fd());
            become_leader(&mut exec, &command, mask, gate, teller.as_raw_fd())
        }
    };
    let inside = match (cgroup, gate) {
        (Some(cgroup), Some((_, key))) => let_in(cgroup, &leader, &key, must)?,
        _ => false,
    };
    command.stdin = None;
    Ok((Birth { leader, news, command }, inside))
}

/// The leader waits behind its gate until it is where it belongs.
fn let_in(cgroup: &Cgroup, leader: &Held, key: &OwnedFd, must: bool) -> Result<bool, SpawnError> {
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
        let mut message = [0_u8; 12];
        match rustix::io::read(&self.news, &mut message) {
            Ok(0) => Some(Ok(())),
            Ok(_) => Some(Err(self.failure(message))),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => None,
            Err(errno) => {
                Some(Err(SpawnError::Os { what: "hear from the command", source: errno.into() }))
            }
        }
    }

    fn failure(&self, message: [u8; 12]) -> SpawnError {
        let [stage, errno, which] = words(message);
        let source = io::Error::from_raw_os_error(errno);
        let which = usize::try_from(which).ok();
        if stage == Stage::Gate as i32 {
            return os("let the command go", source);
        }
        if stage == Stage::Cwd as i32 {
            let cwd = self.command.cwd.as_deref().unwrap_or_default();
            return SpawnError::Cwd { path: cwd.to_string_lossy().into_owned(), source };
        }
        let there = which.filter(|_| stage == Stage::Exec as i32);
        why_not(&self.command, there, source)
    }
}

fn words(message: [u8; 12]) -> [i32; 3] {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&message[at..at + 4]);
        i32::from_ne_bytes(bytes)
    };
    [word(0), word(4), word(8)]
}

/// Pointers for execve, laid out before the fork.
struct Exec {
    argv: Vec<*const libc::c_char>,
    /// `sh FILE ARGS`, for a text without `#!`, as shells and execvp do.
    script: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
}

const SHELL: &CStr = c"/bin/sh";

impl Exec {
    fn new(command: &Command) -> Exec {
        let list = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
        };
        let mut script = list(&command.argv);
        script.splice(0..1, [SHELL.as_ptr(), null()]);
        Exec { argv: list(&command.argv), script, env: list(&command.env) }
    }
}

/// The child's way to the command. Allocates nothing, never returns.
fn become_leader(
    exec: &mut Exec,
    command: &Command,
    mask: &Mask,
    gate: Option<RawFd>,
    teller: RawFd,
) -> ! {
    let (stage, which) = match prepare(command, mask, gate) {
        Err(stage) => (stage, 0),
        Ok(()) => execute(exec, command),
    };
    // SAFETY: writes 12 bytes of this frame and leaves, without running anything
    // that belongs to the parent.
    unsafe {
        let message = [stage as i32, *libc::__errno_location(), which];
        libc::write(teller, message.as_ptr().cast(), size_of_val(&message));
        libc::_exit(127)
    }
}

fn prepare(command: &Command, mask: &Mask, gate: Option<RawFd>) -> Result<(), Stage> {
    // SAFETY: async-signal-safe calls with pointers to strings that live on.
    unsafe {
        if let Some(gate) = gate
            && libc::read(gate, [0_u8; 1].as_mut_ptr().cast(), 1) != 1
        {
            return Err(Stage::Gate);
        }
        if command.own_session {
            libc::setsid();
        }
        let origin = Origin::get();
        for fd in origin.closed() {
            libc::close(fd);
        }
        if let Some(stdin) = &command.stdin {
            libc::dup2(stdin.as_raw_fd(), 0);
        }
        if let Some(cwd) = &command.cwd
            && libc::chdir(cwd.as_ptr()) != 0
        {
            return Err(Stage::Cwd);
        }
        for signal in [Signal::PIPE, Signal::CHLD] {
            let ignored = origin.ignored(signal);
            set_disposition(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
        }
        mask.restore();
    }
    Ok(())
}

/// Tries each candidate. Returns only if none could be executed, with errno set.
fn execute(exec: &mut Exec, command: &Command) -> (Stage, i32) {
    let mut refused = None;
    for (which, file) in (0..).zip(&command.candidates) {
        // SAFETY: all pointers are to strings of this process, in lists that end
        // with null.
        unsafe {
            libc::execve(file.as_ptr(), exec.argv.as_ptr(), exec.env.as_ptr());
            let errno = *libc::__errno_location();
            match errno {
                libc::ENOEXEC => {
                    exec.script[1] = file.as_ptr();
                    libc::execve(SHELL.as_ptr(), exec.script.as_ptr(), exec.env.as_ptr());
                    return (Stage::Exec, which);
                }
                libc::EACCES => {
                    // A file that is there; a directory of PATH we may not enter is not.
                    let there = libc::access(file.as_ptr(), libc::F_OK) == 0;
                    if there && refused.is_none() {
                        refused = Some(which);
                    }
                }
                libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG => {
                    // The file is there, so it is its interpreter that is not.
                    if libc::access(file.as_ptr(), libc::F_OK) == 0 {
                        *libc::__errno_location() = errno;
                        return (Stage::Exec, which);
                    }
                }
                _ => return (Stage::Exec, which),
            }
        }
    }
    // SAFETY: errno is this thread's own.
    unsafe {
        *libc::__errno_location() = if refused.is_some() { libc::EACCES } else { libc::ENOENT };
    }
    refused.map_or((Stage::NotFound, 0), |which| (Stage::Exec, which))
}
