//! Hearing signals without handlers, and dying of one on purpose.

use super::syscall;
use fullstop_core::signal::Signal;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The mask this process was given, for the leader.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// Nothing is held back.
    pub fn empty() -> Mask {
        Mask(set_of(&[]))
    }

    /// What this thread holds back.
    pub fn current() -> Mask {
        hold(&[])
    }

    /// Makes it this thread's mask again.
    pub fn restore(&self) {
        let _ = syscall::set_mask(&self.0);
    }

    /// Does this under the mask: a child that is started has it from the beginning.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = Mask::current();
        self.restore();
        let done = work();
        before.restore();
        done
    }
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset makes the set valid, and signals have legal numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.number());
        }
        set.assume_init()
    }
}

/// Holds these signals back from now on; returns what was held back before.
pub fn hold(signals: &[Signal]) -> Mask {
    let (set, mut before) = (set_of(signals), set_of(&[]));
    // SAFETY: both sets are valid.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
    Mask(before)
}

/// Holds back every signal that can be sent, and none that the thread itself causes by a fault;
/// returns what was held back before.
pub fn hold_all() -> Mask {
    const OWN_FAULTS: [libc::c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP];
    let before = Mask::current();
    let mut all = set_of(&[]);
    // SAFETY: sigfillset makes the set valid, and the faults have legal numbers.
    unsafe {
        libc::sigfillset(&raw mut all);
        for fault in OWN_FAULTS {
            libc::sigdelset(&raw mut all, fault);
        }
    }
    Mask(all).restore();
    before
}

/// Sets right what guard and keeper cannot live with.
///
/// The program that started us may have SIGCHLD ignored, and exec keeps that: the kernel
/// would then reap our children for us, and every exit status would be lost. The reader of our
/// messages may be gone before the run is. A log that reaches its limit is to fail, and not to
/// kill.
pub fn shield() {
    set_ignored(Signal::CHLD, false);
    set_ignored(Signal::PIPE, true);
    set_ignored(Signal::XFSZ, true);
}

/// Ignored, or as the kernel deals with it by default.
pub fn set_ignored(signal: Signal, ignored: bool) {
    let _ = syscall::ignore(signal.number(), ignored);
}

/// A signal that came, and its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    pub signal: Signal,
    /// Sent by the kernel itself, which is how a terminal sends.
    pub by_kernel: bool,
    pub sender: i32,
    /// The sender's user.
    pub uid: u32,
}

/// Signals held back, to be read one by one. See signalfd(2).
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    pub fn of(signals: &[Signal]) -> io::Result<Signals> {
        hold(signals);
        let set = set_of(signals);
        // SAFETY: the set is valid.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor for us.
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn next(&self) -> Option<Heard> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is `size` writable bytes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(read) != Ok(size) {
            return None;
        }
        // SAFETY: the kernel has filled it.
        let info = unsafe { info.assume_init() };
        Some(Heard {
            signal: Signal::new(info.ssi_signo.cast_signed())?,
            by_kernel: info.ssi_code > 0,
            sender: info.ssi_pid.cast_signed(),
            uid: info.ssi_uid,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ends this process by `signal`, as the leader ended, without a core of our own.
pub fn die_of(signal: Signal) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let set = set_of(&[signal]);
    // SAFETY: the limit and the set are valid; raise touches no memory.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal.number(), libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal.number());
    }
    // A signal whose default is to be ignored, or pid 1: say it as shells do.
    leave(128 + signal.number())
}

/// Stops this process as the leader was stopped, until somebody continues it.
pub fn stop_self_by(signal: Signal) {
    let signal = match signal {
        Signal::TSTP | Signal::TTIN | Signal::TTOU => signal,
        _ => Signal::STOP,
    };
    // It may be held back, to be heard instead; now it is to take effect. First sent,
    // then let in: the terminal's, if it still waits, is then the same one, and not a
    // second stop once the first was continued.
    let set = set_of(&[signal]);
    // SAFETY: the set is valid; our own pid, and no memory is touched.
    unsafe {
        let mut before = set_of(&[]);
        libc::kill(libc::getpid(), signal.number());
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, &raw mut before);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}

/// Ends this process at once; there is nothing to flush and nobody to tell.
pub fn leave(status: i32) -> ! {
    // SAFETY: never returns, touches no memory.
    unsafe { libc::_exit(status) }
}
