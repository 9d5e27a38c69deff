//! Whether a process lives that another process wrote down. No process is signalled by what is
//! found out here.

use super::peer::peer;
use super::pinned_process::inode_of;
use super::procfs::stat;
use fullstop_core::identity::Identity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Whether a process lives, as far as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Lives,
    Gone,
    /// The kernel could not be asked, or `/proc` hides the process.
    Unknown,
}

/// Whether the process lives that was written down on this boot, in this pid namespace.
///
/// Where the kernel has no pidfs, two processes of one pid and of one start time (which ticks at
/// 100 Hz) are taken for the same one: it is then said to live.
pub fn presence(written: &Identity) -> Presence {
    let Some(pid) = Pid::from_raw(written.pid.max(0)) else { return Presence::Unknown };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // No process has the pid; or only a thread of another process has.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Presence::Gone,
        Err(_) => return Presence::Unknown,
    };
    let is_same = match (written.inode, inode_of(pidfd.as_fd())) {
        (Some(written), Some(found)) => Some(written == found),
        _ => stat(written.pid).map(|found| found.start_ticks == written.start_ticks),
    };
    match is_same {
        _ if is_dead(&pidfd) => Presence::Gone,
        Some(true) => Presence::Lives,
        Some(false) => Presence::Gone,
        None => Presence::Unknown,
    }
}

/// The process that has made the connection at the other end.
#[derive(Debug)]
pub struct PeerProcess {
    pub identity: Identity,
    /// Becomes readable when the process dies.
    pub pidfd: OwnedFd,
}

/// The process that made the connection at the other end. Nothing, if it is dead, is in a pid
/// namespace that cannot be seen from here, or cannot be held (before kernel 5.3).
pub fn peer_process(socket: impl AsFd) -> Option<PeerProcess> {
    let pid = Pid::from_raw(peer(&socket)?.pid)?;
    // Where the kernel gives no pidfd of the peer (before 6.5), the pid may have passed on. Then
    // the connection has come to its end as well, unless a fork of the dead one holds it.
    let pidfd = peer_pidfd(&socket).or_else(|| pidfd_open(pid, PidfdFlags::empty()).ok())?;
    let pid = pid.as_raw_pid();
    let identity =
        Identity { pid, start_ticks: stat(pid)?.start_ticks, inode: inode_of(pidfd.as_fd()) };
    // It has not died yet, so that its pid was its own while its start time was read.
    (!is_dead(&pidfd)).then_some(PeerProcess { identity, pidfd })
}

/// See SO_PEERPIDFD in unix(7).
fn peer_pidfd(socket: impl AsFd) -> Option<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut pidfd: libc::c_int = -1;
    let mut length = libc::socklen_t::try_from(size_of::<libc::c_int>()).ok()?;
    // SAFETY: the kernel writes at most `length` bytes, which is what `pidfd` has.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut length,
        )
    };
    // SAFETY: the kernel has just opened it for us.
    (done == 0 && pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) })
}

/// Whether all threads of the process have exited, reaped or not.
fn is_dead(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::identify;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_lives_until_it_is_dead_whether_or_not_it_is_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let pid = i32::try_from(child.id()).expect("a pid");
        let identity = identify(pid).expect("it lives");
        assert_eq!(presence(&identity), Presence::Lives);
        let another = Identity {
            start_ticks: identity.start_ticks + 1,
            inode: identity.inode.map(|inode| inode + 1),
            ..identity
        };
        assert_eq!(presence(&another), Presence::Gone, "the pid of another process");
        let pidfd = pidfd_open(Pid::from_raw(pid).expect("a pid"), PidfdFlags::empty());
        drop(child.stdin.take());
        assert!(crate::linux::testing::is_ready(pidfd.expect("a pidfd")));
        assert_eq!(presence(&identity), Presence::Gone, "a zombie");
        child.wait().expect("reaped");
        assert_eq!(presence(&identity), Presence::Gone, "reaped");
        assert_eq!(presence(&Identity { pid: 0, ..identity }), Presence::Unknown);
    }

    #[test]
    fn the_peer_of_a_pair_of_sockets_is_who_made_it() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = rustix::process::getpid().as_raw_pid();
        let peer = peer_process(&one).expect("ourselves");
        assert_eq!(Some(peer.identity), identify(own));
        assert!(!is_dead(&peer.pidfd));
    }
}
