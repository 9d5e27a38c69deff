//! Making processes: fork with an exit signal of our choice, and clone3 into a cgroup.

use super::held::Held;
use fullstop_core::signal::Signal;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Fork {
    Parent(Held),
    Child,
}

/// The libc crate truncates it to zero.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A plain copy of this process, whose death is told by `exit_signal`.
///
/// It is refused where another thread runs: the copy would find that thread's
/// locks held for ever.
pub fn fork(exit_signal: Signal) -> io::Result<Fork> {
    refuse_threads()?;
    // SAFETY: there is one thread, so the child may go on as the parent could.
    unsafe { fork_unchecked(exit_signal, None) }
}

fn refuse_threads() -> io::Result<()> {
    /// A directory's links are itself, its name above, and one for each below.
    const ONE_THREAD: u64 = 3;
    match fs::metadata("/proc/self/task") {
        Ok(tasks) if tasks.nlink() > ONE_THREAD => {
            Err(io::Error::other("a process with threads must not fork"))
        }
        // Without /proc there is nobody to ask; fullstop itself starts no thread.
        _ => Ok(()),
    }
}

/// # Safety
/// With more than one thread the child may only call what is async-signal-safe.
pub unsafe fn fork_unchecked(
    exit_signal: Signal,
    into: Option<BorrowedFd<'_>>,
) -> io::Result<Fork> {
    // SAFETY: passed on to the caller.
    match unsafe { clone3(exit_signal, into) } {
        // Emulators and seccomp filters refuse it in several ways. A cgroup that
        // cannot be entered at birth is entered before exec (see birth.rs).
        Err(error) if into.is_none() && is_refusal(&error) => {
            // SAFETY: passed on to the caller.
            unsafe { clone(exit_signal) }
        }
        other => other,
    }
}

/// Errors that speak of the system call and not of the process asked for.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::E2BIG))
}

/// # Safety
/// See [`fork_unchecked`].
unsafe fn clone3(exit_signal: Signal, into: Option<BorrowedFd<'_>>) -> io::Result<Fork> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all zero is a valid, empty set of arguments.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::from(libc::CLONE_PIDFD.cast_unsigned());
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = u64::from(exit_signal.number().cast_unsigned());
    if let Some(cgroup) = into {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: the arguments are as long as said; without CLONE_VM the child has a
    // copy of this memory and this stack.
    let done =
        unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    match done {
        0 => Ok(Fork::Child),
        // SAFETY: the kernel has just opened this descriptor for us.
        pid if pid > 0 => parent(pid, Some(unsafe { OwnedFd::from_raw_fd(pidfd) })),
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// See [`fork_unchecked`].
unsafe fn clone(exit_signal: Signal) -> io::Result<Fork> {
    let null = std::ptr::null::<u8>();
    // SAFETY: no memory is shared and no pointer is followed. The order of the
    // arguments differs between machines, but the ones behind the flags are null.
    let done = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(exit_signal.number()),
            null,
            null,
            null,
            null,
        )
    };
    match done {
        0 => Ok(Fork::Child),
        pid if pid > 0 => parent(pid, None),
        _ => Err(io::Error::last_os_error()),
    }
}

fn parent(pid: libc::c_long, pidfd: Option<OwnedFd>) -> io::Result<Fork> {
    let held = i32::try_from(pid).ok().and_then(|pid| Held::newborn(pid, pidfd));
    held.map(Fork::Parent).ok_or_else(|| io::Error::other("the kernel returned an impossible pid"))
}
