//! Knowing a process again that somebody else wrote down.

use super::pinned_process::{PinnedProcess, inode};
use super::procfs::stat;
use fullstop_core::identity::Identity;

/// Who has this pid, as far as one look tells, and its parent.
pub fn glance(pid: i32) -> Option<(Identity, i32)> {
    let stat = stat(pid)?;
    Some((Identity { pid, start_ticks: stat.start_ticks, inode: None }, stat.ppid))
}

/// Who has this pid now.
pub fn identify(pid: i32) -> Option<Identity> {
    let stat = stat(pid)?;
    Some(Identity { pid, start_ticks: stat.start_ticks, inode: inode(pid) })
}

impl PinnedProcess {
    /// Holds the very process that was written down on this boot, in this pid
    /// namespace; nobody, if its pid has passed on.
    ///
    /// Its inode in pidfs is enough. Start times tick at 100 Hz, so where the kernel
    /// has no such inode `also` must recognise it by something else.
    pub fn known(identity: &Identity, also: impl Fn(i32) -> bool) -> Option<PinnedProcess> {
        let held = PinnedProcess::anybody(identity.pid)?;
        let stat = held.stat().filter(|stat| stat.start_ticks == identity.start_ticks)?;
        let same = match identity.inode {
            Some(inode) => held.inode() == Some(inode),
            None => also(stat.pid),
        };
        // Asked about while it was held, and still the same one.
        (same && held.stat().is_some()).then_some(held)
    }
}
