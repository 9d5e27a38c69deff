//! Who is at the other end of a socket. See SO_PEERCRED in unix(7).

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Whoever connected, when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Zero, if it lives in a pid namespace that is not below ours.
    pub pid: i32,
    pub uid: u32,
}

pub fn peer(socket: impl AsFd) -> Option<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: the kernel writes at most `length` bytes, which is what `peer` has.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &raw mut length,
        )
    };
    (done == 0).then_some(Peer { pid: peer.pid, uid: peer.uid })
}
