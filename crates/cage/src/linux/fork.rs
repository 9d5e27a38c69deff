//! Making processes: copies with an exit signal of our choice, and children that
//! share our memory until they execute something; either may be born into a cgroup.

use super::before_main::has_threads;
use super::pinned_process::PinnedProcess;
use super::syscall::{Entry, clone_onto};
use fullstop_core::signal::Signal;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Fork {
    Parent(PinnedProcess),
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
    // Where it cannot be told: fullstop itself starts no thread.
    if has_threads() {
        return Err(io::Error::other("a process with threads must not fork"));
    }
    Ok(())
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
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::E2BIG))
}

/// # Safety
/// See [`fork_unchecked`].
pub(super) unsafe fn clone3(exit_signal: Signal, into: Option<BorrowedFd<'_>>) -> io::Result<Fork> {
    let mut pidfd: libc::c_int = -1;
    let args = arguments(exit_signal, into, &mut pidfd);
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

/// For a child with our exit signal, told of by a pidfd, and born in that cgroup.
fn arguments(
    exit_signal: Signal,
    into: Option<BorrowedFd<'_>>,
    pidfd: &mut libc::c_int,
) -> libc::clone_args {
    // SAFETY: all zero is a valid, empty set of arguments.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::from(libc::CLONE_PIDFD.cast_unsigned());
    args.pidfd = (&raw mut *pidfd) as u64;
    args.exit_signal = u64::from(exit_signal.number().cast_unsigned());
    if let Some(cgroup) = into {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    args
}

/// Both machines want a stack to be aligned so.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Row {
    _bytes: [u8; 16],
}

/// 16 KiB. The child is a handful of frames deep, a kilobyte or two where nothing
/// is optimised, and the kernel works on a stack of its own.
const STACK_ROWS: usize = 1024;

/// Runs `entry` in a child that shares our memory, beside us: nothing is copied,
/// and nobody waits. Unlike vfork, for an exec may hang on a dead file server.
///
/// Its stack is never freed: nobody tells when a child that could not execute
/// anything has left it.
///
/// # Safety
/// `entry` and all it calls may write only their own stack and what `given` leaves
/// to them alone: no errno, no allocator, no panic. What they read must never be
/// changed or freed.
pub unsafe fn clone_sharing(
    exit_signal: Signal,
    into: Option<BorrowedFd<'_>>,
    entry: Entry,
    given: *const c_void,
) -> io::Result<PinnedProcess> {
    let mut stack = Box::<[Row]>::new_uninit_slice(STACK_ROWS);
    let mut pidfd: libc::c_int = -1;
    let mut args = arguments(exit_signal, into, &mut pidfd);
    args.flags |= u64::from(libc::CLONE_VM.cast_unsigned());
    args.stack = stack.as_mut_ptr() as u64;
    args.stack_size = size_of_val(&*stack) as u64;
    // SAFETY: the stack is nobody else's and is leaked below; the rest is the
    // caller's.
    let pid = unsafe { clone_onto(&args, entry, given) }.map_err(io::Error::from_raw_os_error)?;
    Box::leak(stack);
    // SAFETY: the kernel has just opened this descriptor for us.
    held(pid.cast_signed(), Some(unsafe { OwnedFd::from_raw_fd(pidfd) }))
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
    held(pid, pidfd).map(Fork::Parent)
}

fn held(pid: impl TryInto<i32>, pidfd: Option<OwnedFd>) -> io::Result<PinnedProcess> {
    let held = pid.try_into().ok().and_then(|pid| PinnedProcess::newborn(pid, pidfd));
    held.ok_or_else(|| io::Error::other("the kernel returned an impossible pid"))
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::super::syscall;
    use super::super::wait::{Change, Waited, wait_for};
    use super::*;
    use fullstop_core::words::Exit;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

    static SEEN: AtomicI32 = AtomicI32::new(0);

    extern "C" fn look_and_leave(given: *const c_void) -> ! {
        // SAFETY: the test passes this.
        let seen = unsafe { &*given.cast::<AtomicI32>() };
        // An error of the child's must not become one of the parent's.
        let errno = syscall::chdir(c"/no/such/directory").err().unwrap_or_default();
        seen.store(errno, SeqCst);
        syscall::exit(7)
    }

    #[test]
    fn a_child_that_shares_our_memory_leaves_us_alone() {
        // SAFETY: the child writes the atomic and its stack, and makes system calls.
        let child = unsafe {
            *libc::__errno_location() = 0;
            clone_sharing(Signal::CHLD, None, look_and_leave, (&raw const SEEN).cast())
        };
        let child = child.expect("clone3");
        let pidfd = child.pidfd().expect("a pidfd");
        poll(&mut [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)], None).expect("poll");
        let errno = io::Error::last_os_error().raw_os_error();
        let change = Change::Exited(Exit::Code(7));
        assert_eq!(wait_for(child.pid()), Waited::Changed { pid: child.pid(), change });
        assert_eq!((SEEN.load(SeqCst), errno), (libc::ENOENT, Some(0)));
    }
}
