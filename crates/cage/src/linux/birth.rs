//! The leader's birth: from clone to exec.
//!
//! The child tells a failure through a pipe that exec closes. It is a plain copy,
//! not a vfork: an exec that hangs on a dead file server must not hang its keeper.

use super::fork::{Fork, fork_unchecked, is_refusal};
use super::held::Held;
use super::origin::Origin;
use super::program::why_not;
use super::signals::{Mask, set_disposition};
use crate::{Command, SpawnError};
use fullstop_core::signal::Signal;
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
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
    Cgroup = 1,
    Cwd = 2,
    /// No candidate was there.
    NotFound = 3,
    /// One was, and could not be executed.
    Exec = 4,
}

pub fn bear(
    command: Command,
    mask: &Mask,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<Birth, SpawnError> {
    let os = |what| move |source: io::Error| SpawnError::Os { what, source };
    let (news, teller) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| os("make a pipe")(errno.into()))?;
    rustix::fs::fcntl_setfl(&news, OFlags::NONBLOCK)
        .map_err(|errno| os("make a pipe")(errno.into()))?;
    let exec = Exec::new(&command);
    // SAFETY: the child only runs `become_leader`, which is async-signal-safe.
    let forked = unsafe { fork_unchecked(Signal::CHLD, cgroup) };
    let (forked, enter) = match forked {
        // The cgroup is entered by the child itself then.
        Err(error) if cgroup.is_some() && is_refusal(&error) => {
            // SAFETY: as above.
            (unsafe { fork_unchecked(Signal::CHLD, None) }, cgroup)
        }
        other => (other, None),
    };
    match forked.map_err(os("make a process"))? {
        Fork::Parent(leader) => Ok(Birth { leader, news, command }),
        Fork::Child => become_leader(&exec, &command, mask, enter, teller.as_raw_fd()),
    }
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
        if stage == Stage::Cgroup as i32 {
            return SpawnError::Os { what: "enter the cgroup", source };
        }
        if stage == Stage::Cwd as i32 {
            let cwd = self.command.cwd.as_deref().unwrap_or_default();
            return SpawnError::Cwd { path: cwd.to_string_lossy().into_owned(), source };
        }
        let there = which.filter(|_| stage == Stage::Exec as i32);
        why_not(&self.command, there, source)
    }

    /// The command again, for another try.
    pub fn into_command(self) -> Command {
        self.command
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
    exec: &Exec,
    command: &Command,
    mask: &Mask,
    cgroup: Option<BorrowedFd<'_>>,
    teller: RawFd,
) -> ! {
    let (stage, which) = match prepare(command, mask, cgroup) {
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

fn prepare(command: &Command, mask: &Mask, cgroup: Option<BorrowedFd<'_>>) -> Result<(), Stage> {
    // SAFETY: async-signal-safe calls with pointers to strings that live on.
    unsafe {
        if let Some(cgroup) = cgroup {
            let procs = libc::openat(
                cgroup.as_raw_fd(),
                c"cgroup.procs".as_ptr(),
                libc::O_WRONLY | libc::O_CLOEXEC,
            );
            if procs < 0 || libc::write(procs, c"0".as_ptr().cast(), 1) != 1 {
                return Err(Stage::Cgroup);
            }
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
fn execute(exec: &Exec, command: &Command) -> (Stage, i32) {
    let mut refused = None;
    for (which, file) in (0..).zip(&command.candidates) {
        // SAFETY: all pointers are to strings of this process, in lists that end
        // with null; the script list is only changed in this copy of the memory.
        unsafe {
            libc::execve(file.as_ptr(), exec.argv.as_ptr(), exec.env.as_ptr());
            let errno = *libc::__errno_location();
            match errno {
                libc::ENOEXEC => {
                    let script = exec.script.as_ptr().cast_mut();
                    *script.add(1) = file.as_ptr();
                    libc::execve(SHELL.as_ptr(), script, exec.env.as_ptr());
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

/// A census may hold many pidfds. Called once the leader has its own limits.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
