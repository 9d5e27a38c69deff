//! Waiting for children. `__WALL` always: without it a live clone child reads as
//! "no children". See waitid(2).

use fullstop_core::signal::Signal;
use fullstop_core::words::Exit;
use std::io;
use std::mem::MaybeUninit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// ECHILD: there is no child at all.
    Nobody,
    /// There are children, and nothing to tell of them.
    NotYet,
    /// The kernel would not say, which is no proof of anything.
    Unknown,
    Changed {
        pid: i32,
        change: Change,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Exited(Exit),
    Stopped(Signal),
    Continued,
}

impl Waited {
    /// The child is no more, and not to be waited for again.
    pub fn is_gone(self) -> bool {
        matches!(self, Waited::Nobody | Waited::Changed { change: Change::Exited(_), .. })
    }
}

const EVERYTHING: i32 = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED;

/// Whatever has happened to any child; the dead are reaped.
pub fn wait_any() -> Waited {
    wait(libc::P_ALL, 0, EVERYTHING | libc::WNOHANG)
}

/// Whatever has happened to this child; it is reaped if dead.
pub fn wait_for(pid: i32) -> Waited {
    match libc::id_t::try_from(pid) {
        Ok(id) => wait(libc::P_PID, id, EVERYTHING | libc::WNOHANG),
        Err(_) => Waited::Nobody,
    }
}

/// Whether there is any child, dead or alive. Nobody is reaped.
pub fn has_children() -> bool {
    wait(libc::P_ALL, 0, EVERYTHING | libc::WNOHANG | libc::WNOWAIT) != Waited::Nobody
}

/// Whether this is a child of ours that was not waited for yet. Nobody is reaped.
pub fn is_child(pid: i32) -> bool {
    matches!(look_at(pid), Waited::NotYet | Waited::Changed { .. })
}

/// Whether this is a child of ours that is dead. Nobody is reaped.
pub fn is_dead_child(pid: i32) -> bool {
    matches!(look_at(pid), Waited::Changed { change: Change::Exited(_), .. })
}

fn look_at(pid: i32) -> Waited {
    match libc::id_t::try_from(pid) {
        Ok(id) if id > 0 => wait(libc::P_PID, id, EVERYTHING | libc::WNOHANG | libc::WNOWAIT),
        _ => Waited::Nobody,
    }
}

fn wait(kind: libc::idtype_t, id: libc::id_t, options: i32) -> Waited {
    /// A fault that passes must not cost us the only news of a death.
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` is a writable siginfo, all zero is a valid one.
        let (done, info) = unsafe {
            let done = libc::waitid(kind, id, info.as_mut_ptr(), options | libc::__WALL);
            (done, info.assume_init())
        };
        if done == 0 {
            return changed(&info);
        }
        if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            return Waited::Nobody;
        }
    }
    Waited::Unknown
}

fn changed(info: &libc::siginfo_t) -> Waited {
    // SAFETY: waitid fills these fields, or leaves the zeroes.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Waited::NotYet;
    }
    let signal = Signal::new(status);
    let change = match (info.si_code, signal) {
        (libc::CLD_EXITED, _) => Change::Exited(Exit::Code(status)),
        (libc::CLD_KILLED | libc::CLD_DUMPED, Some(signal)) => Change::Exited(Exit::Signal(signal)),
        (libc::CLD_STOPPED | libc::CLD_TRAPPED, Some(signal)) => Change::Stopped(signal),
        (libc::CLD_CONTINUED, _) => Change::Continued,
        _ => Change::Exited(Exit::Unknown),
    };
    Waited::Changed { pid, change }
}
